// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/maesh-dev/ichor/internal/etcd"
)

// TestVerdictsKeepQuorum draws clusters in which nodes are silent, behind, or ill, and compares each verdict with what it promises,
// counted from the truth that the nodes were drawn from.
func TestVerdictsKeepQuorum(t *testing.T) {
	t.Parallel()

	for seed := range uint64(20_000) {
		rng := rand.New(rand.NewPCG(seed, 0))
		n := 1 + rng.IntN(7)
		hosts := world(n)
		well := map[etcd.MemberID]bool{}

		for i := range hosts {
			switch rng.IntN(6) {
			case 0:
				silent(hosts, hosts[i].Name)
			case 1:
				hosts[i].View.Errors = []string{"ill"}
			default:
				well[etcd.MemberID(i+1)] = true
			}
		}

		// The leader is one that is well, if any is.
		for id := range etcd.MemberID(n) {
			if well[id+1] {
				led(hosts, id+1)

				break
			}
		}

		rng.Shuffle(len(hosts), func(i, j int) { hosts[i], hosts[j] = hosts[j], hosts[i] })

		cluster := etcd.Assess(hosts)

		if cluster.MayAdd().OK && n > 1 && len(well) < n {
			t.Fatalf("seed %d: with %d of %d members well, one more is allowed", seed, len(well), n)
		}

		for id := range etcd.MemberID(n) {
			left := len(well)
			if well[id+1] {
				left--
			}

			verdict := cluster.MayRemove(id + 1)

			switch {
			case verdict.OK && n == 1:
				t.Fatalf("seed %d: the last member may be removed", seed)
			case verdict.OK && left < etcd.Quorum(n-1):
				t.Fatalf("seed %d: %d of %d members stay well, and member %s may be removed", seed, left, n-1, id+1)
			case cluster.MaySpare(id+1).OK && left < etcd.Quorum(n):
				t.Fatalf("seed %d: %d members stay well of %d, and member %s may be spared", seed, left, n, id+1)
			case !verdict.OK && len(well) == n && n > 1:
				t.Fatalf("seed %d: all %d members are well, and member %s may not be removed: %s", seed, n, id+1, verdict.Message)
			case !verdict.OK && verdict.Message == "":
				t.Fatalf("seed %d: a no without a word", seed)
			}
		}
	}
}

// TestOneListHasAQuorum draws two configurations that follow each other in raft, of which a member was removed or added, and nodes that have
// either or do not answer. Raft has the newer one once a quorum of its voters has it: then the older one is never agreed upon by itself, nobody
// is told of two clusters, and what nobody contradicts is agreed.
func TestOneListHasAQuorum(t *testing.T) {
	t.Parallel()

	seen := map[etcd.Agreement]int{}

	for seed := range uint64(20_000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		n := 2 + rng.IntN(6)

		var smaller []etcd.Member
		for i := range n - 1 {
			smaller = append(smaller, member(i+1))
		}

		larger := append(slices.Clone(smaller), member(n))

		older, newer := larger, smaller
		if rng.IntN(2) == 0 {
			older, newer = smaller, larger
		}

		hosts := world(n)
		have, all := map[int]int{}, map[int]int{} // how many voters of the newer list, and how many nodes, report which length

		for i := range hosts {
			hosts[i].View.Members = older
			if rng.IntN(2) == 0 {
				hosts[i].View.Members = newer
			}

			if i == n-1 && len(newer) < n {
				hosts[i].View.Members = older // it was removed before it could know
			}

			if rng.IntN(4) == 0 {
				silent(hosts, hosts[i].Name)

				continue
			}

			if all[len(hosts[i].View.Members)]++; i < len(newer) {
				have[len(hosts[i].View.Members)]++
			}
		}

		cluster := etcd.Assess(hosts)
		seen[cluster.Agreement]++

		committed := have[len(newer)] >= etcd.Quorum(len(newer))

		switch {
		case cluster.Agreement == etcd.Divided:
			t.Fatalf("seed %d: one cluster is taken for two: %s", seed, cluster.Problem)
		case committed && cluster.Agreement == etcd.Agreed && len(cluster.Members) != len(newer):
			t.Fatalf("seed %d: a quorum has the newer list, and the older one is agreed upon", seed)
		case cluster.Agreement == etcd.Agreed && all[len(older)] > 0 && all[len(newer)] > 0:
			t.Fatalf("seed %d: nodes have both lists, and all is agreed", seed)
		case committed && all[len(older)] == 0 && cluster.Agreement != etcd.Agreed:
			t.Fatalf("seed %d: a quorum has the newer list and nobody who votes another, and that is not agreed: %s", seed, cluster.Problem)
		}
	}

	for _, agreement := range []etcd.Agreement{etcd.NoQuorum, etcd.Unsettled, etcd.Agreed} {
		if seen[agreement] < 100 {
			t.Errorf("%d draws were %d: too few to tell anything", seen[agreement], agreement)
		}
	}
}
