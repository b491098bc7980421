// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/rollout"
)

// TestReplicas is about how many machines there are and which of them goes.
//
// contract: the annotation to delete a machine first is followed, and failure domains are levelled.
func TestReplicas(t *testing.T) {
	t.Parallel()
	decides(t, map[string]planCase{
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
		"too many: the dead one, whatever is outdated": {
			5, func(s *rollout.Snapshot) {
				s.ControlPlane.Spec.Replicas = ptr.To[int32](3)
				ill(&s.Machines[3])
				s.Machines[3].Conditions = s.Machines[3].Conditions[:5]
				after(s, controlplanev1.OnDeleteRollout)
			},
			decision{rollout.DeleteMachine{Machine: "cp04"}, controlplanev1.PlanScalingDownReason},
		},
		"too many, and two are dead": {
			5, func(s *rollout.Snapshot) {
				s.ControlPlane.Spec.Replicas = ptr.To[int32](3)

				for _, i := range []int{2, 3} {
					ill(&s.Machines[i])
					s.Machines[i].Conditions = s.Machines[i].Conditions[:5]
				}
			},
			wait(controlplanev1.PlanMachineUnhealthyReason),
		},
	})
}

// TestReplacement is about machines that are not as the spec wants them, and what the others must be like meanwhile.
func TestReplacement(t *testing.T) {
	t.Parallel()
	decides(t, map[string]planCase{
		"made before spec.rollout.after, in place": {
			3, func(s *rollout.Snapshot) { after(s, controlplanev1.InPlaceRollout) },
			decision{rollout.CreateMachine{}, controlplanev1.PlanRollingOutReason},
		},
		"made before spec.rollout.after, on deletion": {
			3, func(s *rollout.Snapshot) { after(s, controlplanev1.OnDeleteRollout) }, wait(controlplanev1.PlanOnDeleteReason),
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
		"the only one outdated, and its Talos not well": {
			1, func(s *rollout.Snapshot) {
				outdated(s, 0)
				ails(s, 0)
			},
			decision{rollout.CreateMachine{}, controlplanev1.PlanRollingOutReason},
		},
		"the only one goes, and its Talos is not well": {
			1, func(s *rollout.Snapshot) {
				leaving(s, 0, stages[3])
				ails(s, 0)
			},
			decision{rollout.CreateMachine{}, controlplanev1.PlanScalingUpReason},
		},
		"all outdated, and the Talos of none is well": {
			3, func(s *rollout.Snapshot) {
				outdated(s, 0, 1, 2)
				ails(s, 0, 1, 2)
			},
			decision{rollout.CreateMachine{}, controlplanev1.PlanRollingOutReason},
		},
		"all outdated, the Talos of none is well, and one machine fewer at a time": {
			3, func(s *rollout.Snapshot) {
				outdated(s, 0, 1, 2)
				ails(s, 0, 1, 2)

				s.ControlPlane.Spec.Rollout.Strategy.RollingUpdate.MaxSurge = new(int32)
			},
			decision{rollout.DeleteMachine{Machine: "cp01"}, controlplanev1.PlanRollingOutReason},
		},
		"all outdated, the Talos of none is well, and one is on its way down": {
			3, func(s *rollout.Snapshot) {
				outdated(s, 0, 1, 2)
				ails(s, 0, 1, 2)

				s.Machines[1].Steady = false
			},
			wait(controlplanev1.PlanMachineUnhealthyReason),
		},
		"outdated, and the Talos of one that is not is not well": {
			3, func(s *rollout.Snapshot) {
				outdated(s, 0, 1)
				ails(s, 2)
			},
			wait(controlplanev1.PlanMachineUnhealthyReason),
		},
		"all outdated, and the scheduler of one is not well": {
			3, func(s *rollout.Snapshot) {
				outdated(s, 0, 1, 2)

				s.Machines[1].Conditions = slices.Clone(s.Machines[1].Conditions)
				s.Machines[1].Conditions[2].Status = metav1.ConditionFalse
			},
			decision{rollout.DeleteMachine{Machine: "cp02"}, controlplanev1.PlanRollingOutReason},
		},
		"too few, and the Talos of one is not well": {
			3, func(s *rollout.Snapshot) {
				s.ControlPlane.Spec.Replicas = ptr.To[int32](5)
				ails(s, 1)
			},
			wait(controlplanev1.PlanMachineUnhealthyReason),
		},
		"one was ill and is gone, and the Talos of none is well": {
			3, func(s *rollout.Snapshot) {
				s.ControlPlane.Spec.Replicas = ptr.To[int32](5)
				s.ControlPlane.Remediation = &rollout.RemediationRecord{Machine: "gone"}
				ails(s, 0, 1, 2)
			},
			decision{rollout.CreateMachine{Remediation: &rollout.RemediationRecord{Machine: "gone"}}, controlplanev1.PlanRemediatingReason},
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
	})
}
