// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/etcd"
	"github.com/maesh-dev/ichor/internal/rollout"
)

// settled is a control plane at rest: cp1, cp2 and so on, with members 1, 2 and so on.
func settled(n int32) rollout.Snapshot {
	record := rollout.BootstrapMark{Set: true, Record: rollout.BootstrapRecord{Machine: "cp1", Done: true}}
	s := rollout.Snapshot{
		Now:     time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC),
		Cluster: &rollout.Cluster{Name: "demo", InfrastructureProvisioned: true, Endpoint: true},
		ControlPlane: rollout.ControlPlane{
			Name: "demo", Initialized: true, Bootstrap: record, BundleBootstrap: record,
			Spec: controlplanev1.TalosControlPlaneSpec{Replicas: &n, Version: "v1.36.1", Rollout: controlplanev1.RolloutSpec{
				Strategy: controlplanev1.RolloutStrategy{Type: controlplanev1.RollingUpdateRollout},
			}},
		},
		Nodes: rollout.Nodes{Known: true},
	}

	w := newWorld(n, controlplanev1.RollingUpdateRollout)
	w.spec = s.ControlPlane.Spec

	for i := range int(n) {
		w.create(rollout.CreateMachine{})
		m := w.nodes[i]
		m.up, m.provisioned, m.joined, m.Addresses, m.NodeName, m.coming = true, true, true, []string{m.address}, m.Name, 0
		m.member, m.data = w.add(m), true
		m.RecordedMembers = []etcd.MemberID{m.member}
		w.members[i].learner, w.members[i].started = false, true
	}

	w.leader = 1

	for _, m := range w.nodes {
		s.Machines = append(s.Machines, w.show(m))
	}

	return s
}

// ill has a MachineHealthCheck want a machine replaced, whose node does not answer.
func ill(m *rollout.Machine) {
	m.Etcd = etcd.View{Problem: "no answer"}
	m.Conditions = slices.Clone(m.Conditions)

	for i := range m.Conditions {
		m.Conditions[i].Status = metav1.ConditionUnknown
	}

	m.Conditions = append(m.Conditions,
		metav1.Condition{Type: clusterv1.MachineHealthCheckSucceededCondition, Status: metav1.ConditionFalse},
		metav1.Condition{Type: clusterv1.MachineOwnerRemediatedCondition, Status: metav1.ConditionFalse})
}

func outdated(s *rollout.Snapshot, machines ...int) {
	for _, i := range machines {
		s.Machines[i].Differences = []rollout.Difference{{Field: "version", Message: "Version v1.35.4, v1.36.1 required", InPlace: true}}
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()

	type decision struct {
		Action any
		Reason string
	}

	wait := func(reason string) decision { return decision{rollout.Wait{}, reason} }

	cases := map[string]struct {
		replicas int32
		change   func(*rollout.Snapshot)
		want     decision
	}{
		"at rest":       {3, func(*rollout.Snapshot) {}, decision{rollout.Rest{}, controlplanev1.PlanUpToDateReason}},
		"no Cluster":    {3, func(s *rollout.Snapshot) { s.Cluster = nil }, wait(controlplanev1.PlanClusterMissingReason)},
		"paused":        {3, func(s *rollout.Snapshot) { s.Cluster.Paused = true }, wait(controlplanev1.PlanPausedReason)},
		"paused itself": {3, func(s *rollout.Snapshot) { s.ControlPlane.Paused, s.ControlPlane.Deleting = true, true }, wait(controlplanev1.PlanPausedReason)},
		"a Machine without an owner": {
			3, func(s *rollout.Snapshot) { s.Machines[1].Ours, s.Machines[1].Orphan = false, true },
			decision{rollout.AdoptMachine{Machine: "cp02"}, controlplanev1.PlanAdoptingReason},
		},
		"a Machine without our hook": {
			3, func(s *rollout.Snapshot) { s.Machines[1].Hook = false }, decision{rollout.AddHook{Machine: "cp02"}, controlplanev1.PlanProtectingReason},
		},
		"a member that is not noted down": {
			3, func(s *rollout.Snapshot) { s.Machines[1].RecordedMembers = nil },
			decision{rollout.RecordMember{Machine: "cp02", Member: 2}, controlplanev1.PlanRecordingReason},
		},
		"the record in one place only": {
			3, func(s *rollout.Snapshot) { s.ControlPlane.Bootstrap = rollout.BootstrapMark{} },
			decision{rollout.RecordBootstrap{Record: rollout.BootstrapRecord{Machine: "cp1", Done: true}}, controlplanev1.PlanRecordingReason},
		},
		"records that differ": {
			3, func(s *rollout.Snapshot) { s.ControlPlane.Bootstrap.Record.Machine = "other" }, wait(controlplanev1.PlanBootstrapRecordInvalidReason),
		},
		"a record that cannot be read": {
			3, func(s *rollout.Snapshot) { s.ControlPlane.Bootstrap = rollout.ParseBootstrapMark("{}", true) }, wait(controlplanev1.PlanBootstrapRecordInvalidReason),
		},
		"too few, and the infrastructure is gone": {
			3, func(s *rollout.Snapshot) {
				s.ControlPlane.Spec.Replicas = ptr.To[int32](5)
				s.Cluster.InfrastructureProvisioned = false
			},
			wait(controlplanev1.PlanWaitingForInfrastructureReason),
		},
		"too few, and the secrets are gone": {
			3, func(s *rollout.Snapshot) {
				s.ControlPlane.Spec.Replicas = ptr.To[int32](5)
				s.ControlPlane.SecretsProblem = "no bundle"
			},
			wait(controlplanev1.PlanWaitingForSecretsReason),
		},
		"too few, and an operation is running": {
			3, func(s *rollout.Snapshot) {
				s.ControlPlane.Spec.Replicas = ptr.To[int32](5)
				s.Machines[0].Operation = "upgrade to Talos v1.14.1"
			},
			wait(controlplanev1.PlanOperationRunningReason),
		},
		"too few, and the topology is ahead": {
			3, func(s *rollout.Snapshot) {
				s.ControlPlane.Spec.Replicas = ptr.To[int32](5)
				s.Cluster.TopologyVersion = "v1.37.0"
			},
			wait(controlplanev1.PlanWaitingForTopologyReason),
		},
		"too few, and the topology is at this step": {
			3, func(s *rollout.Snapshot) {
				s.ControlPlane.Spec.Replicas = ptr.To[int32](5)
				s.Cluster.TopologyVersion, s.Cluster.UpgradeStep = "v1.37.0", "v1.36.1"
			},
			decision{rollout.CreateMachine{}, controlplanev1.PlanScalingUpReason},
		},
		"too few, and one condition is unknown": {
			3, func(s *rollout.Snapshot) {
				s.ControlPlane.Spec.Replicas = ptr.To[int32](5)
				s.Machines[2].Conditions = slices.Clone(s.Machines[2].Conditions)
				s.Machines[2].Conditions[4].Status = metav1.ConditionUnknown
			},
			wait(controlplanev1.PlanMachineUnhealthyReason),
		},
		"too few, and one condition is missing": {
			3, func(s *rollout.Snapshot) {
				s.ControlPlane.Spec.Replicas = ptr.To[int32](5)
				s.Machines[2].Conditions = s.Machines[2].Conditions[:4]
			},
			wait(controlplanev1.PlanMachineUnhealthyReason),
		},
		"too few, and the Cluster goes": {
			3, func(s *rollout.Snapshot) { s.ControlPlane.Spec.Replicas = ptr.To[int32](5); s.Cluster.Deleting = true },
			wait(controlplanev1.PlanClusterDeletingReason),
		},
		"the emptiest failure domain": {
			3, func(s *rollout.Snapshot) {
				s.ControlPlane.Spec.Replicas = ptr.To[int32](5)
				s.Cluster.FailureDomains = []string{"c", "b", "a"}
				s.Machines[0].FailureDomain, s.Machines[1].FailureDomain, s.Machines[2].FailureDomain = "a", "b", "a"
			},
			decision{rollout.CreateMachine{FailureDomain: "c"}, controlplanev1.PlanScalingUpReason},
		},
		"too many: the one that a user wants gone": {
			5, func(s *rollout.Snapshot) {
				s.ControlPlane.Spec.Replicas = ptr.To[int32](3)
				s.Machines[3].DeleteRequested = true
			},
			decision{rollout.DeleteMachine{Machine: "cp04"}, controlplanev1.PlanScalingDownReason},
		},
		"too many: one in a domain that is none for control planes": {
			5, func(s *rollout.Snapshot) {
				s.ControlPlane.Spec.Replicas = ptr.To[int32](3)
				s.Cluster.FailureDomains = []string{"a"}

				for i := range s.Machines {
					s.Machines[i].FailureDomain = "a"
				}

				s.Machines[2].FailureDomain = "old"
			},
			decision{rollout.DeleteMachine{Machine: "cp03"}, controlplanev1.PlanScalingDownReason},
		},
		"too many: the ill one": {
			5, func(s *rollout.Snapshot) {
				s.ControlPlane.Spec.Replicas = ptr.To[int32](3)
				s.ControlPlane.Remediation = &rollout.RemediationRecord{Machine: "cp04"}
				ill(&s.Machines[3])
			},
			decision{rollout.DeleteMachine{Machine: "cp04"}, controlplanev1.PlanRemediatingReason},
		},
		"outdated: first a new one": {
			3, func(s *rollout.Snapshot) { outdated(s, 0, 1, 2) }, decision{rollout.CreateMachine{}, controlplanev1.PlanRollingOutReason},
		},
		"outdated and not well, with the others well: it goes first": {
			3, func(s *rollout.Snapshot) {
				outdated(s, 1)
				ill(&s.Machines[1])
				s.Machines[1].Conditions = s.Machines[1].Conditions[:5]
			},
			decision{rollout.DeleteMachine{Machine: "cp02"}, controlplanev1.PlanRollingOutReason},
		},
		"outdated, and another is not well": {
			3, func(s *rollout.Snapshot) {
				outdated(s, 1)
				ill(&s.Machines[2])
				s.Machines[2].Conditions = s.Machines[2].Conditions[:5]
			},
			wait(controlplanev1.PlanMachineUnhealthyReason),
		},
		"the only one outdated and not well": {
			1, func(s *rollout.Snapshot) {
				outdated(s, 0)
				s.Machines[0].Conditions = nil
			},
			wait(controlplanev1.PlanMachineUnhealthyReason),
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := settled(tc.replicas)
			tc.change(&s)

			d := rollout.Plan(s)
			if diff := cmp.Diff(tc.want, decision{d.Action, d.Reason}); diff != "" {
				t.Errorf("%s\n%s", diff, d.Message)
			}

			if _, waits := d.Action.(rollout.Wait); waits && (d.RetryAfter <= 0 || d.Message == "") {
				t.Errorf("it waits without a word or without looking again: %+v", d)
			}
		})
	}
}

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
		"one of three":              {3, func(*rollout.Snapshot) {}, "", 0},
		"the only one":              {1, func(*rollout.Snapshot) {}, controlplanev1.MachineCannotBeRemediatedReason, 0},
		"a second of three":         {3, func(s *rollout.Snapshot) { s.Machines[1].Etcd = etcd.View{} }, controlplanev1.MachineRemediationDeferredReason, 0},
		"one of two":                {2, func(*rollout.Snapshot) {}, controlplanev1.MachineRemediationDeferredReason, 0},
		"nobody else serves":        {3, func(s *rollout.Snapshot) { s.Machines[1].Conditions, s.Machines[2].Conditions = nil, nil }, controlplanev1.MachineCannotBeRemediatedReason, 0},
		"another goes":              {3, func(s *rollout.Snapshot) { s.Machines[1].Deletion = &rollout.Deletion{Since: s.Now} }, controlplanev1.MachineRemediationDeferredReason, 0},
		"another comes up":          {3, func(s *rollout.Snapshot) { s.Machines[1].NodeName = "" }, controlplanev1.MachineRemediationDeferredReason, 0},
		"an operation of ours":      {3, func(s *rollout.Snapshot) { s.Machines[0].Operation = "reboot" }, controlplanev1.MachineRemediationDeferredReason, 0},
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
