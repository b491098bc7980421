// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/maesh-dev/ichor/internal/prose"
)

// claim is a member list and the machines whose nodes report it.
type claim struct {
	members []Member
	hosts   []*Host // those that are voters of it, by their own word
	others  int     // those that are not
}

// same is true for lists, each in order, that have the same members and the same voters.
func same(a, b []Member) bool {
	return slices.EqualFunc(a, b, func(a, b Member) bool { return a.ID == b.ID && a.Learner == b.Learner })
}

// ordered is a list in order. The list itself stays as it is.
func ordered(members []Member) []Member {
	if slices.IsSortedFunc(members, byID) {
		return members
	}

	return slices.SortedFunc(slices.Values(members), byID)
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
		c.Problem = fmt.Sprintf("the etcd members of %s have another member list than the quorum has", prose.Names(behind))
	}

	return list.members
}

// claimsOf groups the nodes by the lists that they report. The list that most of its voters report comes first.
func claimsOf(hosts []Host) []*claim {
	var found []*claim

	for i := range hosts {
		view := &hosts[i].View
		if !view.Answered || len(view.Members) == 0 {
			continue
		}

		members := ordered(view.Members)

		at := slices.IndexFunc(found, func(each *claim) bool { return same(each.members, members) })
		if at < 0 {
			at = len(found)
			found = append(found, &claim{members: members})
		}

		if voter(members, view.Self) {
			found[at].hosts = append(found[at].hosts, &hosts[i])
		} else {
			found[at].others++
		}
	}

	// The last comparison has no meaning but that the order of hosts makes no difference.
	slices.SortFunc(found, func(a, b *claim) int {
		return cmp.Or(len(b.hosts)-len(a.hosts), b.others-a.others, slices.CompareFunc(a.members, b.members, byIDAndVote))
	})

	return found
}

func byIDAndVote(a, b Member) int {
	switch {
	case a.ID != b.ID:
		return byID(a, b)
	case a.Learner == b.Learner:
		return 0
	case a.Learner:
		return 1
	default:
		return -1
	}
}

func voter(members []Member, id MemberID) bool {
	return id != 0 && slices.ContainsFunc(members, func(m Member) bool { return m.ID == id && !m.Learner })
}

// quorum is the leader that a quorum of the list's voters follows.
func (l *claim) quorum() (MemberID, bool) {
	if leader, most := l.followed(); most >= Quorum(l.voters()) {
		return leader, true
	}

	return 0, false
}

// followed is the leader that most of the list's voters follow, and how many. Voters are counted by member, since two machines may show the
// same node for a while.
func (l *claim) followed() (leader MemberID, most int) {
	for i, host := range l.hosts {
		if !voter(l.members, host.View.Leader) {
			continue
		}

		followers := 0

		for j, other := range l.hosts {
			first := slices.IndexFunc(l.hosts, func(h *Host) bool { return h.View.Self == other.View.Self && h.View.Leader == host.View.Leader })
			if first == j {
				followers++
			}
		}

		if followers > most {
			leader, most = l.hosts[i].View.Leader, followers
		}
	}

	return leader, most
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
	_, followers := l.followed()

	return fmt.Sprintf("%d of %d voting etcd members report the member list and follow one leader, %d are needed", followers, voters, Quorum(voters))
}

func (l *claim) reporters() string {
	var out []string
	for _, host := range l.hosts {
		out = append(out, host.Name)
	}

	return "that of " + prose.Names(out)
}

// dissenters are the machines whose nodes report another list than this one, and have a vote by either.
func dissenters(list *claim, hosts []Host) []string {
	var out []string

	for i := range hosts {
		view := &hosts[i].View
		if !view.Answered || len(view.Members) == 0 || same(list.members, ordered(view.Members)) {
			continue
		}

		if voter(list.members, view.Self) || voter(view.Members, view.Self) {
			out = append(out, hosts[i].Name)
		}
	}

	return out
}
