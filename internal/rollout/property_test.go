// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/rollout"
)

var (
	seeds   = flag.Uint64("seeds", 10_000, "how many interleavings of events to draw")
	oneSeed = flag.Uint64("seed", 0, "draw only this one, and print what happens")
)

// maxAsked is how many of a thousand interleavings may end with a question to a person: with what nobody but a person can decide.
const maxAsked = 2

// history is what has happened in a world, for the message of a failure. What is said again and again is there once. Nil records nothing.
type history []happened

type happened struct {
	at       time.Time
	event    string
	decision rollout.Decision
}

func (h *history) add(event string, args ...any) {
	if h != nil {
		*h = append(*h, happened{event: fmt.Sprintf(event, args...)})
	}
}

func (h *history) decided(at time.Time, d rollout.Decision) {
	if h == nil {
		return
	}

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

// TestInterleavings draws orders of events: users that scale, change and delete, machines that die and nodes out of reach, operations in place,
// addresses that come back, controllers that are killed between two writes and forget, status that is lost, nodes that go on for a while after
// their Machine was let go. In every one the quorum is kept, one machine at a time goes, what was let go is not kept again, etcd is bootstrapped
// once, and at the end everything is as the spec wants it, but for the few that end with a question: those are counted, and are held to the same.
//
// contract: etcd is bootstrapped once and keeps its quorum, whatever is killed or lost.
func TestInterleavings(t *testing.T) {
	t.Parallel()

	if *oneSeed != 0 {
		var h history

		ending, fault := interleave(*oneSeed, &h)
		t.Logf("%s\n%s", &h, ending)

		if fault != "" {
			t.Errorf("%s", fault)
		}

		return
	}

	var (
		shards  = uint64(runtime.GOMAXPROCS(0))
		endings = make([]map[string]uint64, shards)
		group   sync.WaitGroup
	)

	for shard := range shards {
		endings[shard] = map[string]uint64{}

		group.Go(func() {
			for seed := shard + 1; seed <= *seeds && !t.Failed(); seed += shards {
				ending, fault := interleave(seed, nil)
				endings[shard][ending]++

				if fault != "" {
					var h history // the same again, and noted down

					interleave(seed, &h)
					t.Errorf("-seed %d: %s\n%s", seed, fault, &h)
				}
			}
		})
	}

	group.Wait()

	all := map[string]uint64{}
	for _, some := range endings {
		for ending, n := range some {
			all[ending] += n
		}
	}

	for _, ending := range slices.Sorted(maps.Keys(all)) {
		t.Logf("%6d %s", all[ending], ending)
	}

	if asked := *seeds - all[upToDate]; !t.Failed() && asked*1000 > *seeds*maxAsked+999 {
		t.Errorf("%d of %d interleavings end with a question to a person, want at most %d of 1000", asked, *seeds, maxAsked)
	}
}

// interleave draws one order of events. It gives the reason of the last decision, and what was wrong.
func interleave(seed uint64, h *history) (ending, fault string) {
	rng := rand.New(rand.NewPCG(seed, 7))
	w := newWorld([]int32{1, 3, 3, 3, 5, 5}[rng.IntN(6)], controlplanev1.RollingUpdateRollout)
	w.rng, w.strict = rng, rng.IntN(2) == 0

	if none := int32(0); *w.spec.Replicas >= 3 && rng.IntN(3) == 0 {
		w.spec.Rollout.Strategy.RollingUpdate.MaxSurge = &none
	}

	if rng.IntN(6) == 0 {
		w.foreignControlPlane()
		h.add("a control plane of this cluster lives elsewhere, with %d machines", len(w.nodes)-len(w.here()))
	}

	step := func(half bool) rollout.Decision {
		d := w.decide()

		h.decided(w.now, d)
		w.apply(d.Action, half)

		return d
	}

	for range 40 {
		if rng.IntN(3) == 0 {
			w.event(h)
		}

		for range 1 + rng.IntN(2) {
			step(rng.IntN(10) == 0)
		}

		if w.tick(); len(w.broken) > 0 {
			return "", strings.Join(w.broken, "; ")
		}
	}

	w.heal(h)

	questions := 0

	for range 750 {
		d := step(false)

		switch {
		case d.Action == (rollout.Rest{}):
			w.settled()

			return d.Reason, strings.Join(w.broken, "; ")
		case d.Reason == controlplanev1.PlanBootstrapMachineGoneReason && w.nothingLeft():
			h.add("a user does what the message says: a record is removed, and then the other")

			if w.own.Set && (seed%2 == 0 || !w.bundle.Set) {
				w.own = rollout.BootstrapMark{}
			} else {
				w.bundle = rollout.BootstrapMark{}
			}

			if !w.own.Set && !w.bundle.Set { // whoever deletes the only machine while its etcd starts begins anew
				w.members, w.list, w.leader, w.bootstraps = nil, nil, 0, 0
			}
		case !asked(d):
			questions = 0
		default:
			if questions++; questions == 30 { // for half an hour: nothing will change that
				// Who deletes the only machine before anybody could know that the control plane was initialized loses etcd.
				if d.Reason != controlplanev1.PlanBootstrapMachineGoneReason {
					w.kept()
				}

				return d.Reason, strings.Join(w.broken, "; ")
			}
		}

		w.tick()

		if w.tick(); len(w.broken) > 0 {
			return "", strings.Join(w.broken, "; ")
		}
	}

	return "", "it does not end"
}

// nothingLeft is true when no machine has anything of an etcd that was bootstrapped.
func (w *world) nothingLeft() bool {
	return !slices.ContainsFunc(w.nodes, func(n *node) bool { return n.data })
}

// asked is true when a decision waits for a person.
func asked(d rollout.Decision) bool {
	return slices.Contains([]string{
		controlplanev1.PlanBootstrapMachineGoneReason, controlplanev1.PlanBootstrapRecordInvalidReason, controlplanev1.PlanOnDeleteReason,
		controlplanev1.PlanInPlaceReason, controlplanev1.PlanInPlaceImpossibleReason, controlplanev1.PlanCannotBeRemediatedReason,
	}, d.Reason)
}

// event is something that happens to the world from outside. It never costs the quorum: that is what decisions are held to.
func (w *world) event(h *history) {
	rng, here := w.rng, w.here()

	if w.elsewhere() && rng.IntN(4) == 0 {
		w.foreignEvent(h)

		return
	}

	if len(here) == 0 {
		return
	}

	n := here[rng.IntN(len(here))]

	switch rng.IntN(22) {
	case 0, 1:
		if n.up && w.spare(n) {
			h.add("%s dies", n.Name)
			w.kill(n)
		}
	case 2, 3:
		n.reachable, n.earlier = !n.reachable, nil
		h.add("%s reachable: %t", n.Name, n.reachable)
	case 4:
		h.add("a user deletes %s", n.Name)
		w.userDeletes(n)
	case 5:
		replicas := []int32{1, 3, 5}[rng.IntN(3)]
		if surge := w.spec.Rollout.Strategy.RollingUpdate.MaxSurge; surge == nil || *surge > 0 || replicas >= 3 {
			h.add("a user wants %d replicas", replicas)
			w.spec.Replicas = &replicas
		}
	case 6:
		w.spec.Version = fmt.Sprintf("v1.35.%d", rng.IntN(100))
		h.add("a user wants %s", w.spec.Version)
	case 7:
		w.template = fmt.Sprintf("t%d", rng.IntN(100))
		h.add("a user wants template %s", w.template)
	case 8:
		h.add("status is lost")
		w.move(func() int { return rng.IntN(5) })
	case 9:
		n.leaveFails = !n.leaveFails
		h.add("%s cannot leave etcd: %t", n.Name, n.leaveFails)
	case 10:
		n.forwardFails = !n.forwardFails
		h.add("%s cannot give up leadership: %t", n.Name, n.forwardFails)
	case 11:
		w.paused = !w.paused
		h.add("paused: %t", w.paused)
	case 12:
		w.cluster.FailureDomains = [][]string{nil, {"a"}, {"a", "b", "c"}, {"b", "d"}}[rng.IntN(4)]
		h.add("failure domains %v", w.cluster.FailureDomains)
	case 13:
		n.DeleteRequested = true
		h.add("a user wants %s to go first", n.Name)
	case 14:
		if n.stage > 0 && w.spare(n) && w.initialized {
			h.add("the Machine %s is torn out", n.Name)
			w.destroy(n)
		}
	case 15:
		if !n.up && !n.dead && n.coming > 0 {
			h.add("%s never comes up", n.Name)
			w.kill(n)
		}
	case 16, 17:
		n.ails = !n.ails
		h.add("the Talos of %s ails: %t", n.Name, n.ails)
	case 18:
		h.add("the Talos of all machines ails")

		for _, n := range w.nodes {
			n.ails = true
		}
	case 19:
		n.suffers = !n.suffers
		h.add("a MachineHealthCheck looks at the Talos of %s: %t", n.Name, n.suffers)
	default:
		if n.up && n.stage == 0 && n.joined && !w.busy(nil) && w.spare(n) {
			n.Operation = "upgrade to Talos v1.14.1"
			h.add("an operation in place begins on %s", n.Name)
		}
	}
}

// heal ends what people and networks can end. What ails machines a user mends in the spec: those that are made of it are well.
func (w *world) heal(h *history) {
	h.add("everything is mended that can be")

	w.paused = false
	w.foreignEnds(h)

	for _, n := range w.nodes {
		n.reachable, n.earlier = true, nil

		if n.ails {
			w.template = "mended"
		}
	}
}

// kept says what must be so at any end.
func (w *world) kept() {
	if w.bootstraps > 1 || (w.bootstraps == 1 && !w.quorum(0)) {
		w.against("%d bootstraps, quorum: %t", w.bootstraps, w.quorum(0))
	}

	for _, n := range w.nodes {
		if n.stage == 0 && !n.Hook {
			w.against("%s has no hook", n.Name)
		}
	}
}

// settled says whether everything is as it should be when nothing is left to do.
func (w *world) settled() {
	w.kept()

	for _, n := range w.nodes {
		if n.stage > 0 || n.version != w.spec.Version || n.template != w.template || !n.up || w.memberBy(n.member) == nil {
			w.against("%s is not as it should be", n.Name)
		}
	}

	if len(w.nodes) != int(*w.spec.Replicas) || len(w.members) != len(w.nodes) {
		w.against("%d machines and %d members, and replicas is %d", len(w.nodes), len(w.members), *w.spec.Replicas)
	}

	if w.remediation != nil || w.bootstraps != 1 {
		w.against("remediation %v, %d bootstraps", w.remediation, w.bootstraps)
	}
}
