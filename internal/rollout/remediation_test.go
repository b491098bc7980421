// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/etcd"
	"github.com/maesh-dev/ichor/internal/rollout"
)

// contract: remediation is forecast, limited, and deferred while it cannot be.
func TestRemediation(t *testing.T) {
	t.Parallel()

	last := func(ago time.Duration, retries int) *rollout.RemediationRecord {
		return &rollout.RemediationRecord{Machine: "gone", Timestamp: settled(1).Now.Add(-ago), RetryCount: retries}
	}

	cases := map[string]struct {
		replicas int32
		change   func(*rollout.Snapshot)
		want     string // of the note on the machine; empty when the remediation begins
		retries  int
	}{
		"one of three":      {3, func(*rollout.Snapshot) {}, "", 0},
		"the only one":      {1, func(*rollout.Snapshot) {}, controlplanev1.MachineCannotBeRemediatedReason, 0},
		"a second of three": {3, func(s *rollout.Snapshot) { s.Machines[1].Etcd = etcd.View{} }, controlplanev1.MachineRemediationDeferredReason, 0},
		"one of two":        {2, func(*rollout.Snapshot) {}, controlplanev1.MachineRemediationDeferredReason, 0},
		"the others would be no quorum": {5, func(s *rollout.Snapshot) {
			s.Machines[3].Etcd.Applied, s.Machines[4].Etcd.Applied = 250_000, 250_000 // the second and the third are far behind
		}, controlplanev1.MachineCannotBeRemediatedReason, 0},
		"nobody else serves":   {3, func(s *rollout.Snapshot) { s.Machines[1].Conditions, s.Machines[2].Conditions = nil, nil }, controlplanev1.MachineCannotBeRemediatedReason, 0},
		"another goes":         {3, func(s *rollout.Snapshot) { s.Machines[1].Deletion = &rollout.Deletion{Since: s.Now} }, controlplanev1.MachineRemediationDeferredReason, 0},
		"another comes up":     {3, func(s *rollout.Snapshot) { s.Machines[1].NodeName = "" }, controlplanev1.MachineRemediationDeferredReason, 0},
		"an operation of ours": {3, func(s *rollout.Snapshot) { s.Machines[0].Operation = "reboot" }, controlplanev1.MachineRemediationDeferredReason, 0},
		"the first's replacement is not made, and its member is well": {5, func(s *rollout.Snapshot) {
			s.ControlPlane.Remediation, s.ControlPlane.Spec.Replicas = &rollout.RemediationRecord{Machine: "gone"}, ptr.To[int32](7)
			s.Machines[0].Etcd = settled(5).Machines[0].Etcd
		}, controlplanev1.MachineRemediationDeferredReason, 0},
		"the first's replacement is not made, and its member keeps that out": {5, func(s *rollout.Snapshot) {
			s.ControlPlane.Remediation, s.ControlPlane.Spec.Replicas = &rollout.RemediationRecord{Machine: "gone", RetryCount: 3}, ptr.To[int32](7)
		}, "", 3},
		"again":                     {3, func(s *rollout.Snapshot) { s.Machines[0].RemediationFor = last(time.Minute, 1) }, "", 2},
		"again after a healthy day": {3, func(s *rollout.Snapshot) { s.Machines[0].RemediationFor = last(24*time.Hour, 1) }, "", 0},
		"again too soon": {3, func(s *rollout.Snapshot) {
			s.ControlPlane.Spec.Remediation.RetryPeriodSeconds = ptr.To[int32](600)
			s.Machines[0].RemediationFor = last(time.Minute, 1)
		}, controlplanev1.MachineRemediationDeferredReason, 0},
		"again too often": {3, func(s *rollout.Snapshot) {
			s.ControlPlane.Spec.Remediation.MaxRetry = ptr.To[int32](2)
			s.Machines[0].RemediationFor = last(time.Minute, 2)
		}, controlplanev1.MachineCannotBeRemediatedReason, 0},
		"before anything is bootstrapped": {1, func(s *rollout.Snapshot) {
			s.ControlPlane.Initialized, s.ControlPlane.Bootstrap, s.ControlPlane.BundleBootstrap = false, rollout.BootstrapMark{}, rollout.BootstrapMark{}
			s.Machines[0].NodeName, s.Machines[0].RecordedMembers, s.Machines[0].Addresses, s.Machines[0].HadAddress = "", nil, nil, false
		}, "", 0},
		"bootstrapped and not initialized": {1, func(s *rollout.Snapshot) {
			mark := rollout.BootstrapMark{Set: true, Record: rollout.BootstrapRecord{Machine: "cp01"}}
			s.ControlPlane.Initialized, s.ControlPlane.Bootstrap, s.ControlPlane.BundleBootstrap = false, mark, mark
			s.Machines[0].NodeName = ""
		}, controlplanev1.MachineCannotBeRemediatedReason, 0},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := settled(tc.replicas)
			ill(&s.Machines[0])

			// The leader is one that answers.
			for i := range s.Machines {
				if s.Machines[i].Etcd.Answered {
					s.Machines[i].Etcd.Leader = etcd.MemberID(len(s.Machines))
				}
			}

			tc.change(&s)

			d := rollout.Plan(s)

			if tc.want != "" {
				if d.Remediation == nil || d.Remediation.Reason != tc.want || d.Remediation.Machine != "cp01" || d.Remediation.Message == "" {
					t.Errorf("got %+v, %s: %s; want a note with %s", d.Remediation, d.Reason, d.Message, tc.want)
				}

				return
			}

			want := rollout.RecordRemediation{Record: rollout.RemediationRecord{Machine: "cp01", Timestamp: s.Now, RetryCount: tc.retries}}
			if diff := cmp.Diff(rollout.Action(want), d.Action); diff != "" {
				t.Errorf("%s\n%s", diff, d.Message)
			}

			s.ControlPlane.Remediation = &want.Record
			if d = rollout.Plan(s); d.Action != (rollout.DeleteMachine{Machine: "cp01"}) {
				t.Errorf("after the record: %+v", d)
			}
		})
	}
}

// TestRemediationOfTheNext has the machine that a user wants replaced first wait for a replacement, which waits for the dead member of another.
//
// contract: one machine at a time is remediated.
func TestRemediationOfTheNext(t *testing.T) {
	t.Parallel()

	s := settled(5)
	s.ControlPlane.Remediation, s.ControlPlane.Spec.Replicas = &rollout.RemediationRecord{Machine: "gone"}, ptr.To[int32](7)

	ill(&s.Machines[0])
	ill(&s.Machines[1])

	s.Machines[0].RemediateRequested, s.Machines[0].Etcd = true, settled(5).Machines[0].Etcd

	d := rollout.Plan(s)
	if record, ok := d.Action.(rollout.RecordRemediation); !ok || record.Record.Machine != "cp02" {
		t.Fatal(line(d))
	}

	// And what is noted down is done, though the other comes first otherwise.
	s.ControlPlane.Remediation = &rollout.RemediationRecord{Machine: "cp02"}

	if d = rollout.Plan(s); d.Action != (rollout.DeleteMachine{Machine: "cp02"}) {
		t.Error(line(d))
	}
}
