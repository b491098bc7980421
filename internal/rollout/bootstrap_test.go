// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"
	"time"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/etcd"
	"github.com/maesh-dev/ichor/internal/rollout"
)

// TestGoesBesideBootstrap is about cp02, which is at its hook while etcd is to be bootstrapped on cp01.
func TestGoesBesideBootstrap(t *testing.T) {
	t.Parallel()

	silent := func(i int) func(*rollout.Snapshot) {
		return func(s *rollout.Snapshot) { s.Machines[i].Etcd = etcd.View{Problem: "no answer"} }
	}

	called := func(s *rollout.Snapshot) { s.Machines[0].BootstrapCalled = s.Now.Add(-time.Minute) }
	deleted := func(s *rollout.Snapshot) { s.Machines[0].Deletion = &rollout.Deletion{Since: s.Now, AtHook: true} }

	cases := map[string]struct {
		recorded bool
		changes  []func(*rollout.Snapshot)
		released string
	}{
		"nothing is recorded yet":        {false, nil, ""},
		"about to be called":             {true, nil, ""},
		"called":                         {true, []func(*rollout.Snapshot){called}, ""},
		"called, and it is silent since": {true, []func(*rollout.Snapshot){called, silent(1)}, ""},
		"it is what the call waits for":  {true, []func(*rollout.Snapshot){silent(1)}, "cp02"},
		"both are silent and go":         {false, []func(*rollout.Snapshot){silent(0), silent(1), deleted}, "cp01"},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := settled(2)
			uninitialized(&s)

			if mark := (rollout.BootstrapMark{Set: true, Record: rollout.BootstrapRecord{Machine: "cp01"}}); tc.recorded {
				s.ControlPlane.Bootstrap, s.ControlPlane.BundleBootstrap = mark, mark
			}

			for i := range s.Machines {
				strange(&s, i)
				s.Machines[i].AddressRecorded = true
			}

			s.Machines[1].Deletion = &rollout.Deletion{Since: s.Now, AtHook: true}
			for _, change := range tc.changes {
				change(&s)
			}

			released := ""
			d := rollout.Plan(s)
			if hook, ok := d.Action.(rollout.ReleaseHook); ok {
				released = hook.Machine
			}

			if released != tc.released {
				t.Errorf("%q is let go, want %q: %s: %s", released, tc.released, d.Reason, d.Message)
			}
		})
	}
}

// TestLetGoBeforeItAnswered is about the only machine, which was let go before an API server had answered, and whose etcd and API server came up
// after that.
func TestLetGoBeforeItAnswered(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		change func(*rollout.Snapshot)
		name   string
	}{
		"let go": {func(*rollout.Snapshot) {}, "Wait"},
		"let go, and there is another in its etcd": {func(s *rollout.Snapshot) { s.Machines = append(s.Machines, settled(2).Machines[1]) }, "AddHook"},
		"kept": {func(s *rollout.Snapshot) { s.Machines[0].Hook = true }, "RecordBootstrap"},
		"initialized before, and its hook was taken off": {func(s *rollout.Snapshot) {
			s.ControlPlane.Bootstrap.Record.Done, s.ControlPlane.BundleBootstrap.Record.Done = true, true
		}, "AddHook"},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := settled(1)
			uninitialized(&s)

			mark := rollout.BootstrapMark{Set: true, Record: rollout.BootstrapRecord{Machine: "cp01"}}
			s.ControlPlane.Bootstrap, s.ControlPlane.BundleBootstrap = mark, mark
			s.Machines[0].Hook, s.Machines[0].NodeName = false, "cp01"
			leaving(&s, 0, stages[atHook])
			tc.change(&s)

			if d := rollout.Plan(s); rollout.Name(d.Action) != tc.name {
				t.Errorf("%s %s: %s, want %s", rollout.Name(d.Action), d.Reason, d.Message, tc.name)
			}
		})
	}
}

// TestBootstrapAgain is about two machines without etcd data, and a record that names cp01 in one place or both.
//
// contract: etcd is bootstrapped once, whatever of status is lost.
func TestBootstrapAgain(t *testing.T) {
	t.Parallel()

	called := func(ago time.Duration) func(*rollout.Snapshot) {
		return func(s *rollout.Snapshot) { s.Machines[0].BootstrapCalled = s.Now.Add(-ago) }
	}

	going := func(hook bool) func(*rollout.Snapshot) {
		return func(s *rollout.Snapshot) {
			s.Machines[1].Hook, s.Machines[1].Deletion = hook, &rollout.Deletion{Since: s.Now, AtHook: hook}
		}
	}

	vanished := func(s *rollout.Snapshot) { s.Machines = s.Machines[1:] }

	cases := map[string]struct {
		own, bundle  bool
		change       func(*rollout.Snapshot)
		name, reason string
	}{
		"never called":             {true, true, func(*rollout.Snapshot) {}, "Bootstrap", controlplanev1.PlanBootstrappingReason},
		"called a moment ago":      {true, true, called(time.Second), "Wait", controlplanev1.PlanBootstrappingReason},
		"called nearly 5 min. ago": {true, true, called(rollout.BootstrapWait - 1), "Wait", controlplanev1.PlanBootstrappingReason},
		"called 5 minutes ago":     {true, true, called(rollout.BootstrapWait), "Bootstrap", controlplanev1.PlanBootstrappingReason},
		"called, and now it does not answer": {true, true, func(s *rollout.Snapshot) {
			called(time.Minute)(s)
			s.Machines[0].Etcd = etcd.View{Problem: "no answer"}
		}, "Wait", controlplanev1.PlanBootstrappingReason},
		"called long ago, and now it does not answer": {true, true, func(s *rollout.Snapshot) {
			called(time.Hour)(s)
			s.Machines[0].Etcd = etcd.View{Problem: "no answer"}
		}, "Wait", controlplanev1.PlanBootstrapUnprovenReason},
		"only on the control plane":                          {true, false, func(*rollout.Snapshot) {}, "RecordBootstrap", controlplanev1.PlanRecordingReason},
		"only on the Secret":                                 {false, true, func(*rollout.Snapshot) {}, "RecordBootstrap", controlplanev1.PlanRecordingReason},
		"the machine is gone":                                {true, true, vanished, "Wait", controlplanev1.PlanBootstrapMachineGoneReason},
		"the machine is gone, removed from the Secret":       {true, false, vanished, "Wait", controlplanev1.PlanBootstrapMachineGoneReason},
		"the machine is gone, removed from the controlplane": {false, true, vanished, "Wait", controlplanev1.PlanBootstrapMachineGoneReason},
		"the machine is gone, removed from both":             {false, false, vanished, "RecordBootstrap", controlplanev1.PlanRecordingReason},
		"another goes, and leaves etcd if it has joined":     {true, true, going(true), "Bootstrap", controlplanev1.PlanBootstrappingReason},
		"another goes, and nothing keeps it":                 {true, true, going(false), "Wait", controlplanev1.PlanMachineDeletingReason},
		"no record, another goes, and nothing keeps it":      {false, false, going(false), "Wait", controlplanev1.PlanMachineDeletingReason},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := settled(2)
			uninitialized(&s)

			mark := rollout.BootstrapMark{Set: true, Record: rollout.BootstrapRecord{Machine: "cp01"}}
			if tc.own {
				s.ControlPlane.Bootstrap = mark
			}

			if tc.bundle {
				s.ControlPlane.BundleBootstrap = mark
			}

			for i := range s.Machines {
				strange(&s, i)
				s.Machines[i].AddressRecorded = true
			}

			tc.change(&s)

			if d := rollout.Plan(s); rollout.Name(d.Action) != tc.name || d.Reason != tc.reason {
				t.Errorf("%s %s, want %s %s: %s", rollout.Name(d.Action), d.Reason, tc.name, tc.reason, d.Message)
			}
		})
	}
}
