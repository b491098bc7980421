// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/rollout"
)

var (
	seeds   = flag.Uint64("seeds", 10_000, "how many interleavings of events to draw")
	oneSeed = flag.Uint64("seed", 0, "draw only this one, and print what happens")
)

// history is what has happened in a world, for the message of a failure. What is said again and again is there once.
type history []happened

type happened struct {
	at       time.Time
	event    string
	decision rollout.Decision
}

func (h *history) add(event string, args ...any) {
	*h = append(*h, happened{event: fmt.Sprintf(event, args...)})
}

func (h *history) decided(at time.Time, d rollout.Decision) {
	if n := len(*h); n == 0 || (*h)[n-1].event != "" || rollout.Name((*h)[n-1].decision.Action) != rollout.Name(d.Action) || (*h)[n-1].decision.Message != d.Message {
		*h = append(*h, happened{at: at, decision: d})
	}
}

func (h *history) String() string {
	var b strings.Builder

	for _, each := range *h {
		if each.event != "" {
			fmt.Fprintf(&b, "          %s\n", each.event)
		} else {
			fmt.Fprintf(&b, "%s  %s\n", each.at.Format(time.TimeOnly), line(each.decision))
		}
	}

	return b.String()
}

// line is a decision in a transcript.
func line(d rollout.Decision) string {
	return fmt.Sprintf("%-18s %s: %s", rollout.Name(d.Action), d.Reason, d.Message)
}

// TestInterleavings draws orders of events: users that scale, change and delete, machines that die and nodes out of reach, controllers that
// are killed between two writes and forget, status that is lost. In every one the quorum is kept, one machine at a time goes, etcd is
// bootstrapped once, and at the end everything is as the spec wants it.
func TestInterleavings(t *testing.T) {
	t.Parallel()

	if *oneSeed != 0 {
		interleave(t, *oneSeed)

		return
	}

	const shards = 4

	for shard := range uint64(shards) {
		t.Run(fmt.Sprint(shard), func(t *testing.T) {
			t.Parallel()

			for seed := shard + 1; seed <= *seeds && !t.Failed(); seed += shards {
				interleave(t, seed)
			}
		})
	}
}

func interleave(t *testing.T, seed uint64) {
	t.Helper()

	rng := rand.New(rand.NewPCG(seed, 7))
	w := newWorld([]int32{1, 3, 3, 3, 5}[rng.IntN(5)], controlplanev1.RollingUpdateRollout)

	if none := int32(0); *w.spec.Replicas >= 3 && rng.IntN(3) == 0 {
		w.spec.Rollout.Strategy.RollingUpdate.MaxSurge = &none
	}

	var h history

	step := func(half bool) rollout.Decision {
		d := rollout.Plan(w.snapshot())

		h.decided(w.now, d)
		w.apply(d.Action, half)

		if len(w.broken) > 0 {
			t.Fatalf("-seed %d: %s\n%s", seed, strings.Join(w.broken, "; "), &h)
		}

		return d
	}

	for range 40 {
		if rng.IntN(3) == 0 {
			w.event(rng, &h)
		}

		for range 1 + rng.IntN(2) {
			step(rng.IntN(10) == 0)
		}

		w.tick()
	}

	w.heal(&h)

	for range 1500 {
		d := step(false)

		if d.Action == (rollout.Rest{}) {
			w.settled(t, seed, &h)

			return
		}

		if asked(d) {
			return // a person has to decide; that this is so for a reason is what the tables show
		}

		w.tick()
	}

	t.Fatalf("-seed %d: it does not end\n%s", seed, &h)
}

// event is something that happens to the world from outside. It never costs the quorum: that is what decisions are held to.
func (w *world) event(rng *rand.Rand, h *history) {
	all := w.sorted()
	if len(all) == 0 {
		return
	}

	n := all[rng.IntN(len(all))]

	switch rng.IntN(14) {
	case 0:
		if n.up && w.spare(n) {
			h.add("%s dies", n.Name)
			w.kill(n)
		}
	case 1, 2:
		n.reachable = !n.reachable
		h.add("%s reachable: %t", n.Name, n.reachable)
	case 3:
		h.add("a user deletes %s", n.Name)
		w.userDeletes(n)
	case 4:
		replicas := []int32{1, 3, 5}[rng.IntN(3)]
		if surge := w.spec.Rollout.Strategy.RollingUpdate.MaxSurge; surge == nil || *surge > 0 || replicas >= 3 {
			h.add("a user wants %d replicas", replicas)
			w.spec.Replicas = &replicas
		}
	case 5:
		w.spec.Version = fmt.Sprintf("v1.35.%d", rng.IntN(100))
		h.add("a user wants %s", w.spec.Version)
	case 6:
		w.template = fmt.Sprintf("t%d", rng.IntN(100))
		h.add("a user wants template %s", w.template)
	case 7:
		w.initialized = false
		clear(w.orphans)
		h.add("status is lost")
	case 8:
		n.leaveFails = !n.leaveFails
		h.add("%s cannot leave etcd: %t", n.Name, n.leaveFails)
	case 9:
		w.paused = !w.paused
		h.add("paused: %t", w.paused)
	case 10:
		w.cluster.FailureDomains = [][]string{nil, {"a"}, {"a", "b", "c"}, {"b", "d"}}[rng.IntN(4)]
		h.add("failure domains %v", w.cluster.FailureDomains)
	case 11:
		n.DeleteRequested = true
		h.add("a user wants %s to go first", n.Name)
	case 12:
		if n.stage > 0 && w.spare(n) && w.initialized {
			h.add("the Machine %s is torn out", n.Name)
			w.destroy(n)
		}
	case 13:
		if !n.up && !n.dead && n.coming > 0 {
			h.add("%s never comes up", n.Name)
			w.kill(n)
		}
	}
}

// spare is true when a machine can be lost without the quorum.
func (w *world) spare(n *node) bool {
	if m := w.members[n.member]; m == nil {
		return w.bootstraps > 0
	} else if m.learner {
		return true
	}

	up, voters := 0, 0

	for id, m := range w.members {
		if m.learner {
			continue
		}

		voters++

		if host := w.machines[m.host]; host != nil && host.up && host.member == id && host != n {
			up++
		}
	}

	return up > voters/2
}

// heal ends what people and networks can end.
func (w *world) heal(h *history) {
	h.add("everything is mended that can be")

	w.paused = false

	for _, n := range w.machines {
		n.reachable = true
	}
}

// settled says whether everything is as it should be when nothing is left to do.
func (w *world) settled(t *testing.T, seed uint64, h *history) {
	t.Helper()

	for _, n := range w.sorted() {
		if n.stage > 0 || n.version != w.spec.Version || n.template != w.template || !n.up || w.members[n.member] == nil || !n.Hook {
			w.against("%s is not as it should be", n.Name)
		}
	}

	if len(w.machines) != int(*w.spec.Replicas) || len(w.members) != len(w.machines) {
		w.against("%d machines and %d members, and replicas is %d", len(w.machines), len(w.members), *w.spec.Replicas)
	}

	if w.remediation != nil || w.bootstraps != 1 {
		w.against("remediation %v, %d bootstraps", w.remediation, w.bootstraps)
	}

	if len(w.broken) > 0 {
		t.Fatalf("-seed %d: %s\n%s", seed, strings.Join(w.broken, "; "), h)
	}
}
