// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"strings"
	"testing"
	"time"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/etcd"
	"github.com/maesh-dev/ichor/internal/rollout"
)

// TestServedElsewhere is about a cluster whose API server answers, or has answered, before anything of it was begun here: no first machine is
// made, and etcd is bootstrapped on none that there is. Without the answer each case is one that begins something, so that it is asked for.
//
// contract: etcd is never bootstrapped beside a control plane of the cluster that lives.
func TestServedElsewhere(t *testing.T) {
	t.Parallel()

	empty := func(machines int32) rollout.Snapshot {
		s := settled(machines)
		uninitialized(&s)

		for i := range s.Machines {
			strange(&s, i)
			s.Machines[i].AddressRecorded = true
		}

		return s
	}

	recorded := func(called time.Duration) func(*rollout.Snapshot) {
		return func(s *rollout.Snapshot) {
			mark := rollout.BootstrapMark{Set: true, Record: rollout.BootstrapRecord{Machine: "cp01"}}
			s.ControlPlane.Bootstrap, s.ControlPlane.BundleBootstrap = mark, mark

			if called > 0 {
				s.Machines[0].BootstrapCalled = s.Now.Add(-called)
			}
		}
	}

	cases := map[string]struct {
		machines int32
		change   func(*rollout.Snapshot)
		begins   string
	}{
		"no machine":                  {0, func(*rollout.Snapshot) {}, "CreateMachine"},
		"an empty machine":            {1, func(*rollout.Snapshot) {}, "RecordBootstrap"},
		"a record, and no call":       {1, recorded(0), "Bootstrap"},
		"a call that came to nothing": {2, recorded(time.Hour), "Bootstrap"},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := empty(tc.machines)
			tc.change(&s)

			if d := rollout.Plan(s); rollout.Name(d.Action) != tc.begins || !rollout.Begins(s) {
				t.Fatalf("without an answer: %s, want %s: %s; begins: %t", rollout.Name(d.Action), tc.begins, d.Message, rollout.Begins(s))
			}

			s.ControlPlane.Serving = true

			if d := rollout.Plan(s); d.Action != (rollout.RecordServing{}) || d.Reason != controlplanev1.PlanServedElsewhereReason {
				t.Errorf("it answers: %s %s: %s", rollout.Name(d.Action), d.Reason, d.Message)
			}

			s.ControlPlane.Serving, s.ControlPlane.ServedElsewhere = false, true

			d := rollout.Plan(s)
			if d.Action != (rollout.Wait{}) || d.Reason != controlplanev1.PlanServedElsewhereReason ||
				!strings.Contains(d.Message, controlplanev1.ServedElsewhereAnnotation) {
				t.Errorf("it has answered, and does not now: %s %s: %s", rollout.Name(d.Action), d.Reason, d.Message)
			}

			if rollout.Begins(s) {
				t.Error("it is asked again, and nothing hangs on the answer")
			}
		})
	}
}

// TestServedElsewhereGoesOn has what is noted down keep nothing from going on but the bootstrap: machines with etcd data are those that were
// brought, one that is deleted may go, and a member on none of them stays.
func TestServedElsewhereGoesOn(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		machines     int32
		change       func(*rollout.Snapshot)
		name, reason string
	}{
		"its Machines are brought": {3, uninitialized, "RecordBootstrap", controlplanev1.PlanRecordingReason},
		"the empty one is deleted": {1, func(s *rollout.Snapshot) {
			uninitialized(s)
			strange(s, 0)
			s.Machines[0].AddressRecorded = true
			leaving(s, 0, stages[atHook])
		}, "ReleaseHook", controlplanev1.PlanReleasingReason},
		"the whole control plane is deleted": {1, func(s *rollout.Snapshot) {
			uninitialized(s)
			s.ControlPlane.Deleting = true
		}, "ReleaseHooks", controlplanev1.PlanDeletingReason},
		"a member is on no Machine": {4, func(s *rollout.Snapshot) {
			s.ControlPlane.Spec.Replicas = new(int32(3))
			s.Machines = s.Machines[:3]
			s.Orphans = map[etcd.MemberID]time.Time{4: s.Now.Add(-time.Hour)}
		}, "Wait", controlplanev1.PlanServedElsewhereReason},
		"a silent machine is deleted, and a member may be its own": {3, func(s *rollout.Snapshot) {
			situations["it is silent, and its member has only its address"](s)
			leaving(s, 2, stages[atHook])
		}, "Wait", controlplanev1.PlanServedElsewhereReason},
		"all is well": {3, func(*rollout.Snapshot) {}, "None", controlplanev1.PlanUpToDateReason},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := settled(tc.machines)
			s.ControlPlane.ServedElsewhere = true
			tc.change(&s)

			if d := rollout.Plan(s); rollout.Name(d.Action) != tc.name || d.Reason != tc.reason {
				t.Errorf("%s %s, want %s %s: %s", rollout.Name(d.Action), d.Reason, tc.name, tc.reason, d.Message)
			}
		})
	}
}
