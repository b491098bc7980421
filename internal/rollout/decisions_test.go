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

// ails has something be wrong with the Talos of machines, and nothing with etcd and Kubernetes.
func ails(s *rollout.Snapshot, machines ...int) {
	for _, i := range machines {
		s.Machines[i].Conditions = ailing
	}
}

// strange makes a machine one whose node says that it has no etcd data, and of which nothing is noted down.
func strange(s *rollout.Snapshot, i int) {
	m := &s.Machines[i]
	m.Etcd, m.RecordedMembers, m.HadAddress = etcd.View{Answered: true, Data: etcd.DataAbsent}, nil, true
}

// after has a machine that was made before spec.rollout.after.
func after(s *rollout.Snapshot, strategy controlplanev1.RolloutStrategyType) {
	s.ControlPlane.Spec.Rollout.Strategy.Type = strategy
	s.Machines[1].Differences = []rollout.Difference{{Field: "rollout.after", Message: "Made before spec.rollout.after"}}
}

// decision is the part of a Decision that programs go by.
type decision struct {
	Action any
	Reason string
}

func wait(reason string) decision { return decision{rollout.Wait{}, reason} }

// planCase is a control plane at rest with so many replicas to which something has happened, and what is decided then.
type planCase struct {
	replicas int32
	change   func(*rollout.Snapshot)
	want     decision
}

func decides(t *testing.T, cases map[string]planCase) {
	t.Helper()

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

// TestPlan is about what comes before the number of machines and their replacement is looked at: owners, hooks, records, etcd.
//
// contract: orphans are adopted, and the hook is put back.
func TestPlan(t *testing.T) {
	t.Parallel()
	decides(t, map[string]planCase{
		"at rest":       {3, func(*rollout.Snapshot) {}, decision{rollout.Rest{}, controlplanev1.PlanUpToDateReason}},
		"no Cluster":    {3, func(s *rollout.Snapshot) { s.Cluster = nil }, wait(controlplanev1.PlanClusterMissingReason)},
		"paused":        {3, func(s *rollout.Snapshot) { s.Cluster.Paused = true }, wait(controlplanev1.PlanPausedReason)},
		"paused itself": {3, func(s *rollout.Snapshot) { s.ControlPlane.Paused, s.ControlPlane.Deleting = true, true }, wait(controlplanev1.PlanPausedReason)},
		"a Machine without an owner": {
			3, func(s *rollout.Snapshot) { s.Machines[1].Ours, s.Machines[1].Orphan = false, true },
			decision{rollout.AdoptMachine{Machine: "cp02"}, controlplanev1.PlanAdoptingReason},
		},
		"a Machine without an owner that goes, and waits for us": {
			3, func(s *rollout.Snapshot) {
				leaving(s, 1, stages[3])
				s.Machines[1].Ours, s.Machines[1].Orphan = false, true
			},
			decision{rollout.AdoptMachine{Machine: "cp02"}, controlplanev1.PlanAdoptingReason},
		},
		"the control plane goes, and its Machines stay": {
			3, func(s *rollout.Snapshot) { s.ControlPlane.Deleting, s.ControlPlane.Orphaning = true, true },
			wait(controlplanev1.PlanDeletingReason),
		},
		"the control plane goes without its Machines, and with the workers that need it": {
			3, func(s *rollout.Snapshot) {
				s.ControlPlane.Deleting, s.ControlPlane.Orphaning, s.Workers = true, true, []string{"w-1"}
				leaving(s, 1, stages[3])
			},
			wait(controlplanev1.PlanDeletingReason),
		},
		"the control plane has gone without its Machines, and workers are there": {
			1, func(s *rollout.Snapshot) {
				s.ControlPlane.Deleting, s.Workers = true, []string{"w-1"}
				s.Machines[0].Ours, s.Machines[0].Orphan = false, true
			},
			decision{rollout.ReleaseHooks{Machines: []string{"cp01"}}, controlplanev1.PlanDeletingReason},
		},
		"the control plane goes and has no Machine, and workers are there": {
			1, func(s *rollout.Snapshot) {
				s.ControlPlane.Deleting, s.Workers, s.Machines = true, []string{"w-1"}, nil
			},
			decision{rollout.ReleaseControlPlane{}, controlplanev1.PlanDeletingReason},
		},
		"the control plane goes, and a Machine with our hook has lost its owner": {
			3, func(s *rollout.Snapshot) {
				s.ControlPlane.Deleting = true
				s.Machines = s.Machines[1:2]
				s.Machines[0].Ours, s.Machines[0].Orphan = false, true
			},
			decision{rollout.ReleaseHooks{Machines: []string{"cp02"}}, controlplanev1.PlanDeletingReason},
		},
		"the control plane goes, and a Machine has lost its owner and our hook": {
			3, func(s *rollout.Snapshot) {
				s.ControlPlane.Deleting = true
				s.Machines = s.Machines[1:2]
				s.Machines[0].Ours, s.Machines[0].Orphan, s.Machines[0].Hook = false, true, false
			},
			decision{rollout.ReleaseControlPlane{}, controlplanev1.PlanDeletingReason},
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
		"records that differ, of a cluster that is initialized": {
			3, func(s *rollout.Snapshot) {
				s.ControlPlane.Bootstrap.Record.Machine = "other"
				s.ControlPlane.Spec.Replicas = ptr.To[int32](5)
			},
			decision{rollout.CreateMachine{}, controlplanev1.PlanScalingUpReason},
		},
		"records that differ, and nobody knows whether it is initialized": {
			3, func(s *rollout.Snapshot) {
				mark := func(machine string) rollout.BootstrapMark {
					return rollout.BootstrapMark{Set: true, Record: rollout.BootstrapRecord{Machine: machine}}
				}

				uninitialized(s)
				s.ControlPlane.Bootstrap, s.ControlPlane.BundleBootstrap = mark("cp01"), mark("cp02")
				leaving(s, 2, stages[3])
			},
			wait(controlplanev1.PlanBootstrapRecordInvalidReason),
		},
		"half a record, and the Secret for the other half is gone": {
			3, func(s *rollout.Snapshot) {
				s.ControlPlane.BundleBootstrap = rollout.BootstrapMark{}
				s.ControlPlane.SecretsProblem = "no bundle"
			},
			decision{rollout.Rest{}, controlplanev1.PlanUpToDateReason},
		},
		"an address that is not noted down": {
			3, func(s *rollout.Snapshot) { strange(s, 1) }, decision{rollout.RecordAddress{Machine: "cp02"}, controlplanev1.PlanRecordingReason},
		},
		"not bootstrapped, and a machine that had an address before a move is silent": {
			2, func(s *rollout.Snapshot) {
				uninitialized(s)

				for i := range s.Machines {
					strange(s, i)
					s.Machines[i].AddressRecorded, s.Machines[i].HadAddress = true, true
				}

				s.Machines[0].Addresses, s.Machines[0].Etcd = nil, etcd.View{}
			},
			wait(controlplanev1.PlanBootstrapUnprovenReason),
		},
		"not bootstrapped, and a machine that never had an address is silent": {
			2, func(s *rollout.Snapshot) {
				uninitialized(s)

				for i := range s.Machines {
					strange(s, i)
					s.Machines[i].AddressRecorded = true
				}

				s.Machines[0].Addresses, s.Machines[0].Etcd, s.Machines[0].HadAddress, s.Machines[0].AddressRecorded = nil, etcd.View{}, false, false
			},
			decision{rollout.RecordBootstrap{Record: rollout.BootstrapRecord{Machine: "cp02"}}, controlplanev1.PlanRecordingReason},
		},
		"not bootstrapped, and the secrets are gone": {
			1, func(s *rollout.Snapshot) {
				uninitialized(s)
				strange(s, 0)
				s.Machines[0].AddressRecorded, s.ControlPlane.SecretsProblem = true, "no bundle"
			},
			wait(controlplanev1.PlanWaitingForSecretsReason),
		},
		"let go before it was initialized, with data": {
			1, func(s *rollout.Snapshot) {
				uninitialized(s)
				leaving(s, 0, stages[3])
				s.Machines[0].Hook = false
			},
			wait(controlplanev1.PlanMachineDeletingReason),
		},
		"let go by a user while it is a member": {
			3, func(s *rollout.Snapshot) {
				leaving(s, 1, stages[3])
				s.Machines[1].Hook = false
			},
			decision{rollout.AddHook{Machine: "cp02"}, controlplanev1.PlanProtectingReason},
		},
		"a leader goes": {
			3, func(s *rollout.Snapshot) { leaving(s, 0, stages[3]) },
			decision{rollout.ForwardLeadership{Machine: "cp01", From: 1, To: 3}, controlplanev1.PlanLeavingEtcdReason},
		},
		"a leader goes that cannot give up leadership": {
			3, func(s *rollout.Snapshot) {
				leaving(s, 0, stages[3])
				s.Machines[0].ForwardFailed = true
			},
			decision{rollout.LeaveEtcd{Machine: "cp01", Member: 1}, controlplanev1.PlanLeavingEtcdReason},
		},
		"a leader goes that can neither give up leadership nor leave": {
			3, func(s *rollout.Snapshot) {
				leaving(s, 0, stages[3])
				s.Machines[0].ForwardFailed, s.Machines[0].LeaveFailed = true, true
			},
			decision{rollout.RemoveEtcdMember{Machine: "cp01", Member: 1, Through: "cp03"}, controlplanev1.PlanLeavingEtcdReason},
		},
		"one goes during an operation on another": {
			3, func(s *rollout.Snapshot) {
				leaving(s, 1, stages[3])
				s.Machines[2].Operation = "reboot"
			},
			wait(controlplanev1.PlanOperationRunningReason),
		},
		"one goes during its own operation": {
			3, func(s *rollout.Snapshot) {
				leaving(s, 1, stages[3])
				s.Machines[1].Operation = "reboot"
			},
			decision{rollout.LeaveEtcd{Machine: "cp02", Member: 2}, controlplanev1.PlanLeavingEtcdReason},
		},
		"one that has left goes during an operation on another": {
			3, func(s *rollout.Snapshot) {
				leaving(s, 1, stages[3])
				s.Machines[2].Operation = "reboot"
				s.Machines[1].Etcd = etcd.View{Answered: true, Data: etcd.DataAbsent}

				for _, i := range []int{0, 2} {
					s.Machines[i].Etcd.Members = slices.Delete(slices.Clone(s.Machines[i].Etcd.Members), 1, 2)
				}
			},
			decision{rollout.ReleaseHook{Machine: "cp02"}, controlplanev1.PlanReleasingReason},
		},
		"an orphan that can be spared, during an operation": {
			4, func(s *rollout.Snapshot) {
				s.ControlPlane.Spec.Replicas = ptr.To[int32](3)
				s.Machines = s.Machines[:3]
				s.Orphans = map[etcd.MemberID]time.Time{4: s.Now.Add(-time.Hour)}
				s.Machines[2].Operation = "reboot"
			},
			wait(controlplanev1.PlanOperationRunningReason),
		},
	})
}
