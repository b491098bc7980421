// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/maesh-dev/ichor/internal/prose"
)

// Reason is why a Verdict is as it is.
type Reason string

// Reasons of verdicts.
const (
	// OK is the reason of a yes.
	OK Reason = "OK"

	// NotMember is when the member is not, or no longer, in the list.
	NotMember Reason = "NotMember"

	// LastMember is when it is the only voter: without it there is no etcd.
	LastMember Reason = "LastMember"

	// MembersUnknown is when no member list can be trusted: no quorum, no list at all, or two clusters.
	MembersUnknown Reason = "MembersUnknown"

	// MembersChanging is when a change has not reached all voters yet, or a new member is still joining.
	MembersChanging Reason = "MembersChanging"

	// QuorumAtRisk is when too few healthy voters would be left.
	QuorumAtRisk Reason = "QuorumAtRisk"

	// AlarmRaised is when etcd has an alarm, with which a new member helps nobody.
	AlarmRaised Reason = "AlarmRaised"
)

// Verdict is a yes or a no, with a reason for programs and a sentence for people.
type Verdict struct {
	OK      bool
	Reason  Reason
	Message string
}

func no(reason Reason, format string, args ...any) Verdict {
	return Verdict{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// MayRemove says whether a member may be removed now. Yes means that afterwards a quorum of the voters that are left is healthy.
func (c Cluster) MayRemove(id MemberID) Verdict {
	if verdict := c.trusted(); !verdict.OK {
		return verdict
	}

	m, ok := c.Member(id)

	switch {
	case !ok:
		return no(NotMember, "%s is no etcd member", id)
	case !m.Learner && c.Voters() == 1:
		return no(LastMember, "%s is the last etcd member", m)
	}

	if joining := c.joining(id); joining != "" {
		return no(MembersChanging, "etcd member %s is still joining", joining)
	}

	left := c.Voters()
	if !m.Learner {
		left--
	}

	if healthy := c.healthyBeside(id); healthy < Quorum(left) {
		return no(QuorumAtRisk, "without etcd member %s, %d of %d voting members would be healthy and %d are needed: %s",
			m, healthy, left, Quorum(left), c.complaints(id))
	}

	return Verdict{OK: true, Reason: OK, Message: fmt.Sprintf("without etcd member %s, %d of %d voting members are healthy, %d are needed",
		m, c.healthyBeside(id), left, Quorum(left))}
}

// MaySpare says whether a member may be removed whose machine nobody knows. It is stricter than MayRemove: even if the member is well,
// the others must be a quorum of all members of now.
func (c Cluster) MaySpare(id MemberID) Verdict {
	verdict := c.MayRemove(id)
	if !verdict.OK {
		return verdict
	}

	if healthy := c.healthyBeside(id); healthy < Quorum(c.Voters()) {
		return no(QuorumAtRisk, "beside etcd member %s, %d voting members are healthy, and %d are needed to spare one",
			id, healthy, Quorum(c.Voters()))
	}

	return verdict
}

// MayAdd says whether a member may be added now. Yes means that every voter is healthy: then the quorum is healthy even if the new member
// never starts, but for the second member of all, for which there is no such thing. A quorum of the later members would be enough for etcd of
// now; that of Talos 1.12 and 1.13 (3.6.7, 3.6.9) takes no member in while it is not connected to every voter, and whoever asks waits in vain.
func (c Cluster) MayAdd() Verdict {
	if verdict := c.trusted(); !verdict.OK {
		return verdict
	}

	if joining := c.joining(0); joining != "" {
		return no(MembersChanging, "etcd member %s is still joining", joining)
	}

	if len(c.Alarms) > 0 {
		return no(AlarmRaised, "%s", c.alarms())
	}

	if c.Healthy() < c.Voters() {
		return no(QuorumAtRisk, "etcd takes no member in before every voting one is healthy, and %d of %d are: %s", c.Healthy(), c.Voters(), c.complaints(0))
	}

	return Verdict{OK: true, Reason: OK, Message: fmt.Sprintf("%d of %d voting etcd members are healthy", c.Healthy(), c.Voters())}
}

// HasQuorum says whether a quorum of the members is healthy now.
func (c Cluster) HasQuorum() Verdict {
	if verdict := c.trusted(); !verdict.OK {
		return verdict
	}

	if c.Healthy() < Quorum(c.Voters()) {
		return no(QuorumAtRisk, "%d of %d voting etcd members are healthy and %d are needed: %s", c.Healthy(), c.Voters(), Quorum(c.Voters()), c.complaints(0))
	}

	return Verdict{OK: true, Reason: OK, Message: fmt.Sprintf("%d of %d voting etcd members are healthy", c.Healthy(), c.Voters())}
}

// Heirs are the members that may take over leadership from one, the best first: healthy voters, those of the preferred machines in
// their order before the others, then the one that has applied most.
func (c Cluster) Heirs(of MemberID, preferred []string) []MemberState {
	rank := func(m MemberState) int {
		if at := slices.Index(preferred, m.Host); at >= 0 {
			return at
		}

		return len(preferred)
	}

	var out []MemberState

	for _, m := range c.Members {
		if m.ID != of && !m.Learner && m.Healthy() {
			out = append(out, m)
		}
	}

	applied := func(m MemberState) uint64 { return c.host(m.Host).View.Applied }

	slices.SortStableFunc(out, func(a, b MemberState) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(applied(b), applied(a)))
	})

	return out
}

// trusted says whether the member list can be built upon.
func (c Cluster) trusted() Verdict {
	switch c.Agreement {
	case Agreed:
		return Verdict{OK: true, Reason: OK}
	case Unsettled:
		return no(MembersChanging, "%s", c.Problem)
	case NoMembers, NoQuorum, Divided:
	}

	return no(MembersUnknown, "%s", c.Problem)
}

// joining is a member beside one that has not become a voter, or has not started.
func (c Cluster) joining(beside MemberID) string {
	for _, m := range c.Members {
		if m.ID != beside && (m.Learner || m.Name == "") {
			return m.String()
		}
	}

	return ""
}

// alarms are all alarms in words, bounded, in the order of the members.
func (c Cluster) alarms() string {
	out := make([]string, 0, len(c.Alarms))
	for _, alarm := range c.Alarms {
		out = append(out, fmt.Sprintf("%s has the alarm %s", alarm.Of(), alarm))
	}

	return prose.InOrder(out)
}

// complaints say what is wrong with the members beside one.
func (c Cluster) complaints(beside MemberID) string {
	var out []string

	for _, m := range c.Members {
		if m.ID != beside && !m.Healthy() {
			out = append(out, fmt.Sprintf("%s %s", m, m.Problem))
		}
	}

	if len(out) == 0 {
		return "there are too few"
	}

	return prose.Names(out)
}
