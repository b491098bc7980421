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

		if cluster.MayAdd().OK && n > 1 && len(well) < etcd.Quorum(n+1) {
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

// TestOneListHasAQuorum draws two configurations that follow each other in raft, and nodes that have either: no draw has the
// older one judged the one that counts once a quorum of the newer one's voters has the newer one.
func TestOneListHasAQuorum(t *testing.T) {
	t.Parallel()

	for seed := range uint64(5_000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		n := 2 + rng.IntN(6)

		var before []etcd.Member
		for i := range n {
			before = append(before, member(i+1))
		}

		after := slices.Delete(slices.Clone(before), n-1, n)
		hosts, newer := world(n), 0

		for i := range n - 1 {
			if rng.IntN(2) == 0 {
				hosts[i].View.Members = after
				newer++
			}
		}

		cluster := etcd.Assess(hosts)

		switch {
		case cluster.Agreement == etcd.Divided && newer >= etcd.Quorum(n-1) && n-newer >= etcd.Quorum(n):
			t.Fatalf("seed %d: a quorum of both cannot be", seed)
		case cluster.Agreement == etcd.Agreed && newer > 0 && newer < n-1:
			t.Fatalf("seed %d: %d of %d have the newer list, and all is agreed", seed, newer, n-1)
		case newer == n-1 && len(cluster.Members) != n-1:
			t.Fatalf("seed %d: everybody that is left has the newer list, and the older one counts", seed)
		}
	}
}
