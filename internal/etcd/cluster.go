// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"cmp"
	"fmt"
)

// Agreement says how far the nodes agree on the members.
type Agreement int

const (
	// NoMembers is when no node has a member list: etcd was never bootstrapped, or nobody answers.
	NoMembers Agreement = iota

	// NoQuorum is when no member list is reported by a quorum of its own voters that follow one leader.
	NoQuorum

	// Divided is when two different clusters each have a quorum. Only people can mend that.
	Divided

	// Unsettled is when there is a quorum for one list, and a node that has a vote by it, or by its own, has another one still, or already.
	Unsettled

	// Agreed is when a quorum of a list's own voters reports it, and no node that has a vote disagrees.
	Agreed
)

// Evidence says how a member was found to be a machine's.
type Evidence int

const (
	// NoEvidence is a member that no machine is known to have.
	NoEvidence Evidence = iota

	// ByNameOrAddress is a member whose name or whose address is a machine's that does not deny it. It keeps the member from being an orphan.
	ByNameOrAddress

	// ByNameAndAddress is a member whose address is one machine's alone, and whose name too, unless it has not started.
	ByNameAndAddress

	// ByRecord is a member that the machine's node has said it was, earlier.
	ByRecord

	// BySelf is a member that the machine's node says it is.
	BySelf
)

// maxLag is how many raft entries a voter may be behind the farthest and still count as healthy. Nodes are asked one after the other,
// so a busy cluster that is well shows some; a member that has to catch up from a snapshot (etcd takes one every 10,000 entries) shows
// more.
const maxLag = 10_000

// MemberState is a member and what is known of it.
type MemberState struct {
	Member

	// Host is the name of the machine that the member is on, by Evidence; empty without any.
	Host     string
	Evidence Evidence

	// Candidates are all machines that the member may be on when its Evidence is ByNameOrAddress.
	Candidates []string

	// Left is true for a member by record whose machine's node says that it runs another, or has no etcd data: it lost its data, and the
	// member with it.
	Left bool

	// Pending is true for a member that has not started, at whose address a node says that it has no etcd data: it is about to start there, or
	// the address was another machine's and it never will.
	Pending bool

	// Problem says why the member does not count as healthy; empty when it does.
	Problem string
}

// Healthy is true for a member whose own node says that it is well. Learners can be healthy and have no vote.
func (m MemberState) Healthy() bool { return m.Problem == "" }

// String names a member for people.
func (m MemberState) String() string {
	switch {
	case m.Host != "" && m.Evidence >= ByNameAndAddress:
		return fmt.Sprintf("%s (Machine %s)", m.ID, m.Host)
	case m.Name != "":
		return fmt.Sprintf("%s (%q)", m.ID, m.Name)
	default:
		return fmt.Sprintf("%s (never started)", m.ID)
	}
}

// Cluster is the state of an etcd cluster. The zero value is one without members.
type Cluster struct {
	Agreement Agreement

	// Problem says why the Agreement is not Agreed, in words for people.
	Problem string

	// Members of the list that has a quorum, by ID. Without a quorum, those of the list that most voters report.
	Members []MemberState

	// Leader that a quorum follows, or zero.
	Leader MemberID

	// Alarms that any member of the list reports.
	Alarms []Alarm

	hosts  []Host
	byName map[string]*Host // only of many
}

// many is from how many on things are looked up in a map.
const many = 16

// Assess judges what the nodes say. Hosts are all control-plane machines of the cluster, whoever owns them, deleted ones included as
// long as they exist.
func Assess(hosts []Host) Cluster {
	c := Cluster{hosts: hosts}

	if len(hosts) >= many {
		c.byName = make(map[string]*Host, len(hosts))
		for i := range hosts {
			c.byName[hosts[i].Name] = &hosts[i]
		}
	}

	list := c.agree(hosts)
	if len(list) == 0 {
		return c
	}

	c.Members = make([]MemberState, len(list))
	for i := range list {
		c.Members[i] = MemberState{Member: list[i]}
	}

	c.match(hosts)
	c.collectAlarms(hosts)
	c.judge()

	return c
}

// host finds a machine by its name.
func (c *Cluster) host(name string) *Host {
	if c.byName != nil {
		return c.byName[name]
	}

	for i := range c.hosts {
		if c.hosts[i].Name == name {
			return &c.hosts[i]
		}
	}

	return nil
}

// Quorum is how many of a number of voters must agree.
func Quorum(voters int) int { return voters/2 + 1 }

// Voters is how many members have a vote.
func (c Cluster) Voters() int {
	return count(c.Members, func(m MemberState) bool { return !m.Learner })
}

// Healthy is how many voters are healthy.
func (c Cluster) Healthy() int { return c.healthyBeside(0) }

// healthyBeside is how many voters beside one are healthy.
func (c Cluster) healthyBeside(id MemberID) int {
	return count(c.Members, func(m MemberState) bool { return !m.Learner && m.ID != id && m.Healthy() })
}

// Member finds a member by its ID.
func (c Cluster) Member(id MemberID) (MemberState, bool) {
	for _, m := range c.Members {
		if m.ID == id {
			return m, true
		}
	}

	return MemberState{}, false
}

// MembersOf are the members that are certainly a machine's: by its node's word, now or earlier, or by name and address both. There is
// more than one when a node has lost its data and joined again.
func (c Cluster) MembersOf(host string) []MemberState {
	var out []MemberState

	for _, m := range c.Members {
		if m.Host == host && m.Evidence >= ByNameAndAddress {
			out = append(out, m)
		}
	}

	return out
}

// Unowned are the members that no machine certainly has, or has lost. Those whose Evidence is ByNameOrAddress may be a machine's.
func (c Cluster) Unowned() []MemberState {
	var out []MemberState

	for _, m := range c.Members {
		if m.Evidence < ByNameAndAddress || m.Left {
			out = append(out, m)
		}
	}

	return out
}

// Orphan is true for a member that no machine has.
func (m MemberState) Orphan() bool { return m.Evidence == NoEvidence || m.Left }

// Accounted says whether a machine's part in etcd is known: it has a member for certain, or its node says that it has no etcd data, or
// the member that it had is in the list no longer.
func (c Cluster) Accounted(host string) bool {
	h := c.host(host)

	switch {
	case h == nil:
		return false
	case len(c.MembersOf(host)) > 0:
		return true
	case h.View.Answered && h.View.Data == DataAbsent:
		return true
	default:
		return len(h.Recorded) > 0
	}
}

func count(members []MemberState, ok func(MemberState) bool) int {
	n := 0

	for _, m := range members {
		if ok(m) {
			n++
		}
	}

	return n
}

func byID(a, b Member) int { return cmp.Compare(a.ID, b.ID) }
