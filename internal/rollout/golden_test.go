// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/rollout"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()

	file := filepath.Join("testdata", name)

	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s differs (go test -update writes it anew):\n%s", file, diff)
	}
}

// transcript is a world in which somebody does something now and then, and what is decided until there is nothing left to do.
type transcript struct {
	*world

	t    *testing.T
	text strings.Builder
	last string
}

func (s *transcript) say(format string, args ...any) {
	fmt.Fprintf(&s.text, "%s  ## %s\n", s.now.Format(time.TimeOnly), fmt.Sprintf(format, args...))
	s.last = ""
}

// step decides once, carries that out, and lets half a minute go by.
func (s *transcript) step() rollout.Decision {
	d := s.decide()

	if text := line(d); text != s.last {
		fmt.Fprintf(&s.text, "%s  %s\n", s.now.Format(time.TimeOnly), text)
		s.last = text
	}

	s.apply(d.Action, false)

	if len(s.broken) > 0 {
		s.t.Fatalf("%s\n%s", strings.Join(s.broken, "; "), &s.text)
	}

	s.tick()

	return d
}

// until goes on until the decision has a reason.
func (s *transcript) until(reason string) {
	for range 400 {
		if d := s.step(); d.Reason == reason {
			return
		}
	}

	s.t.Fatalf("it never says %s\n%s", reason, &s.text)
}

// untilAction goes on until something is done.
func (s *transcript) untilAction(name string) {
	for range 400 {
		if d := s.step(); rollout.Name(d.Action) == name {
			return
		}
	}

	s.t.Fatalf("it never does %s\n%s", name, &s.text)
}

// steps goes on for a while.
func (s *transcript) steps(n int) {
	for range n {
		s.step()
	}
}

const (
	rolling  = controlplanev1.RollingUpdateRollout
	inPlace  = controlplanev1.InPlaceRollout
	onDelete = controlplanev1.OnDeleteRollout
	upToDate = controlplanev1.PlanUpToDateReason
)

// contract: a member leaves at the hook and one machine at a time goes; a whole control plane waits for its workers and goes at once;
// nothing is done while paused.
func TestTranscripts(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		replicas int32
		strategy controlplanev1.RolloutStrategyType
		play     func(*transcript)
	}{
		"three machines from nothing": {3, rolling, func(s *transcript) { s.until(upToDate) }},
		"scale from three to one and back": {3, rolling, func(s *transcript) {
			s.until(upToDate)
			s.say("a user wants 1 replica")
			*s.spec.Replicas = 1
			s.until(upToDate)
			s.say("a user wants 3 replicas")
			*s.spec.Replicas = 3
			s.until(upToDate)
		}},
		"a new version, one more machine at a time": {3, rolling, func(s *transcript) {
			s.until(upToDate)
			s.say("a user wants v1.36.1")
			s.spec.Version = "v1.36.1"
			s.until(upToDate)
		}},
		"a new template, one machine fewer at a time": {3, rolling, func(s *transcript) {
			s.spec.Rollout.Strategy.RollingUpdate.MaxSurge = new(int32)
			s.until(upToDate)
			s.say("a user wants template t2")
			s.template = "t2"
			s.until(upToDate)
		}},
		"changes in place are left alone": {3, inPlace, func(s *transcript) {
			s.until(upToDate)
			s.say("a user wants v1.36.1")
			s.spec.Version = "v1.36.1"
			s.steps(2)
			s.say("a user wants template t2")
			s.template = "t2"
			s.steps(2)
			s.say("a user allows the fallback")
			s.spec.Rollout.Strategy.InPlace.Fallback = controlplanev1.ReplaceFallback
			s.steps(3)
		}},
		"machines are replaced when they are deleted": {3, onDelete, func(s *transcript) {
			s.until(upToDate)
			s.say("a user wants v1.36.1")
			s.spec.Version = "v1.36.1"
			s.steps(2)

			for range 3 {
				name := s.oldestOutdated()
				s.say("a user deletes Machine %s", name)
				s.userDeletes(s.node(name))
				s.until(controlplanev1.PlanScalingUpReason)
				s.steps(8)
			}
		}},
		"a user deletes a machine": {3, rolling, func(s *transcript) {
			s.until(upToDate)
			s.say("a user deletes Machine cp01, the leader")
			s.userDeletes(s.node("cp01"))
			s.until(upToDate)
		}},
		"a user deletes the only machine": {1, rolling, func(s *transcript) {
			s.until(upToDate)
			s.say("a user deletes Machine cp01")
			s.userDeletes(s.node("cp01"))
			s.until(upToDate)
		}},
		"a member that does not leave": {3, rolling, func(s *transcript) {
			s.until(upToDate)
			s.say("a user deletes Machine cp02, whose member cannot leave")
			s.node("cp02").leaveFails = true
			s.userDeletes(s.node("cp02"))
			s.until(upToDate)
		}},
		"a machine dies": {3, rolling, func(s *transcript) {
			s.until(upToDate)
			s.say("Machine cp03 dies")
			s.kill(s.node("cp03"))
			s.until(upToDate)
		}},
		"a machine dies and another is to go": {3, rolling, func(s *transcript) {
			s.until(upToDate)
			s.say("Machine cp03 dies, and a user deletes Machine cp02")
			s.kill(s.node("cp03"))
			s.userDeletes(s.node("cp02"))
			s.until(upToDate)
		}},
		"a Machine is torn out and its member stays": {3, rolling, func(s *transcript) {
			s.until(upToDate)
			s.say("Machine cp03 is torn out with its infrastructure")
			s.destroy(s.node("cp03"))
			s.until(upToDate)
		}},
		"status is lost and nobody answers": {3, rolling, func(s *transcript) {
			s.until(upToDate)
			s.say("a move loses status, and no node answers any more")
			s.move(func() int { return 3 })

			for _, n := range s.nodes {
				n.reachable = false
			}

			s.steps(2)
			s.say("the records are lost too")
			s.own, s.bundle = rollout.BootstrapMark{}, rollout.BootstrapMark{}
			s.steps(3)
			s.say("one node answers: it has data")
			s.node("cp02").reachable = true
			s.steps(4)
		}},
		"killed between the record and the call": {1, rolling, func(s *transcript) {
			s.untilAction("RecordBootstrap")
			s.say("the controller is killed before the call, and the record on the control plane is lost")
			s.own = rollout.BootstrapMark{}
			s.until(upToDate)
		}},
		"the machine of the record is gone": {1, rolling, func(s *transcript) {
			s.untilAction("RecordBootstrap")
			s.say("a user deletes Machine cp01 before etcd is bootstrapped on it")
			s.userDeletes(s.node("cp01"))
			s.until(controlplanev1.PlanBootstrapMachineGoneReason)
			s.say("the user removes the record from the control plane")
			s.own = rollout.BootstrapMark{}
			s.steps(3)
			s.say("and then the one from the Secret")
			s.bundle = rollout.BootstrapMark{}
			s.until(upToDate)
		}},
		"etcd does not start after it was bootstrapped": {1, rolling, func(s *transcript) {
			s.step()
			s.node("cp01").startFails = true
			s.say("what Machine cp01 does after Bootstrap will be lost")
			s.untilAction("Bootstrap")
			s.steps(4)
			s.say("the next time it will not")
			s.node("cp01").startFails = false
			s.until(upToDate)
		}},
		"the whole control plane is deleted": {3, rolling, func(s *transcript) {
			s.until(upToDate)
			s.workers = []string{"w-2", "w-1"}
			s.deleting = true
			s.say("the control plane is deleted; no node answers")

			for _, n := range s.nodes {
				n.reachable = false
			}

			s.steps(2)
			s.say("the workers are gone")
			s.workers = nil

			for !s.gone {
				s.step()
			}
		}},
		"deleted before anything came up": {1, rolling, func(s *transcript) {
			s.steps(2)
			s.say("the control plane is deleted, and its Cluster does not exist any more")
			s.deleting, s.clusterGone = true, true

			for !s.gone {
				s.step()
			}
		}},
		"paused in the middle": {3, rolling, func(s *transcript) {
			s.until(upToDate)
			s.spec.Version = "v1.36.1"
			s.step()
			s.say("paused")
			s.paused = true
			s.steps(3)
			s.say("resumed")
			s.paused = false
			s.until(upToDate)
		}},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := &transcript{world: newWorld(tc.replicas, tc.strategy), t: t}
			tc.play(s)
			golden(t, strings.ReplaceAll(strings.ReplaceAll(name, " ", "-"), ",", "")+".golden", s.text.String())
		})
	}
}

func (s *transcript) oldestOutdated() string {
	for _, n := range s.nodes {
		if n.version != s.spec.Version {
			return n.Name
		}
	}

	s.t.Fatal("no machine is outdated")

	return ""
}

// TestGates writes the safety specification for reading.
func TestGates(t *testing.T) {
	t.Parallel()

	var b strings.Builder

	gates := rollout.Gates()
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		fmt.Fprintf(&b, "%s\n", name)

		for i, why := range gates[name] {
			fmt.Fprintf(&b, "%4d. %s\n", i+1, why)
		}
	}

	golden(t, "gates.golden", b.String())
}
