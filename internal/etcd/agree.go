// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// claim is a member list and the machines whose nodes report it.
type claim struct {
	members []Member
	hosts   []*Host // those that are voters of it, by their own word
	others  int     // those that are not
}

// key identifies a list: who is in it, and who has a vote.
func key(members []Member) string {
	var b strings.Builder

	for _, m := range members {
		fmt.Fprintf(&b, "%x:%t;", uint64(m.ID), m.Learner)
	}

	return b.String()
}

// agree finds the list that counts.
func (c *Cluster) agree(hosts []Host) []Member {
	claims := claimsOf(hosts)
	if len(claims) == 0 {
		c.Problem = "no node reports etcd members"

		return nil
	}

	var valid []*claim

	for _, each := range claims {
		if _, ok := each.quorum(); ok {
			valid = append(valid, each)
		}
	}

	switch len(valid) {
	case 0:
		best := claims[0] // the one that most of its voters report
		c.Agreement = NoQuorum
		c.Problem = best.shortfall()

		return best.members
	case 1:
	default:
		c.Agreement = Divided
		c.Problem = "two member lists have a quorum each, so there are two etcd clusters: " + valid[0].reporters() + " and " + valid[1].reporters()

		return valid[0].members
	}

	list := valid[0]
	c.Leader, _ = list.quorum()
	c.Agreement = Agreed

	if behind := dissenters(list, hosts); len(behind) > 0 {
		c.Agreement = Unsettled
		c.Problem = fmt.Sprintf("the etcd members of %s have another member list than the quorum has", names(behind))
	}

	return list.members
}

// claimsOf groups the nodes by the lists that they report. The list that most of its voters report comes first.
func claimsOf(hosts []Host) []*claim {
	found := map[string]*claim{}

	for i := range hosts {
		view := &hosts[i].View
		if !view.Answered || len(view.Members) == 0 {
			continue
		}

		members := slices.SortedFunc(slices.Values(view.Members), byID)
		id := key(members)

		if found[id] == nil {
			found[id] = &claim{members: members}
		}

		if voter(members, view.Self) {
			found[id].hosts = append(found[id].hosts, &hosts[i])
		} else {
			found[id].others++
		}
	}

	out := make([]*claim, 0, len(found))
	for _, id := range slices.Sorted(maps.Keys(found)) {
		out = append(out, found[id])
	}

	slices.SortStableFunc(out, func(a, b *claim) int {
		if len(a.hosts) != len(b.hosts) {
			return len(b.hosts) - len(a.hosts)
		}

		return b.others - a.others
	})

	return out
}

func voter(members []Member, id MemberID) bool {
	return id != 0 && slices.ContainsFunc(members, func(m Member) bool { return m.ID == id && !m.Learner })
}

// quorum is the leader that a quorum of the list's voters follows.
func (l *claim) quorum() (MemberID, bool) {
	following := map[MemberID]map[MemberID]bool{}

	for _, host := range l.hosts {
		leader := host.View.Leader
		if !voter(l.members, leader) {
			continue
		}

		if following[leader] == nil {
			following[leader] = map[MemberID]bool{}
		}

		// By member, since two machines may show the same node for a while.
		following[leader][host.View.Self] = true
	}

	for leader, members := range following {
		if len(members) >= Quorum(l.voters()) {
			return leader, true
		}
	}

	return 0, false
}

func (l *claim) voters() int {
	n := 0

	for _, m := range l.members {
		if !m.Learner {
			n++
		}
	}

	return n
}

// shortfall says why a list has no quorum.
func (l *claim) shortfall() string {
	voters := l.voters()

	return fmt.Sprintf("%d of %d voting etcd members report the member list and follow one leader, %d are needed",
		l.followers(), voters, Quorum(voters))
}

// followers is how many voters follow the leader that most follow.
func (l *claim) followers() int {
	following, most := map[MemberID]int{}, 0

	for _, host := range l.hosts {
		if voter(l.members, host.View.Leader) {
			following[host.View.Leader]++
			most = max(most, following[host.View.Leader])
		}
	}

	return most
}

func (l *claim) reporters() string {
	var out []string
	for _, host := range l.hosts {
		out = append(out, host.Name)
	}

	return "that of " + names(out)
}

// dissenters are the machines whose nodes are voters of the list and report another one.
func dissenters(list *claim, hosts []Host) []string {
	want := key(list.members)

	var out []string

	for i := range hosts {
		view := &hosts[i].View
		if !view.Answered || len(view.Members) == 0 || !voter(list.members, view.Self) {
			continue
		}

		if key(slices.SortedFunc(slices.Values(view.Members), byID)) != want {
			out = append(out, hosts[i].Name)
		}
	}

	return out
}
