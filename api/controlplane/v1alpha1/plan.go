// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Reasons of a plan (status.plan.reason) for what is done.
const (
	// PlanUpToDateReason is when there is nothing to do.
	PlanUpToDateReason = "UpToDate"

	// PlanAdoptingReason is when a control-plane Machine without an owner becomes the control plane's.
	PlanAdoptingReason = "Adopting"

	// PlanProtectingReason is when a Machine gets the hook that keeps its infrastructure until its etcd member has left.
	PlanProtectingReason = "Protecting"

	// PlanRecordingReason is when something is noted down that must be known later: that a machine has had an address, its etcd member, a
	// bootstrap, a remediation.
	PlanRecordingReason = "Recording"

	// PlanInitializingReason is when the first machine is made.
	PlanInitializingReason = "Initializing"

	// PlanBootstrappingReason is when etcd is bootstrapped.
	PlanBootstrappingReason = "Bootstrapping"

	// PlanScalingUpReason is when a machine is made because there are fewer than replicas.
	PlanScalingUpReason = "ScalingUp"

	// PlanScalingDownReason is when a machine is deleted because there are more than replicas.
	PlanScalingDownReason = "ScalingDown"

	// PlanRollingOutReason is when a machine is replaced because it is not as the spec wants it.
	PlanRollingOutReason = "RollingOut"

	// PlanRemediatingReason is when an unhealthy machine is replaced.
	PlanRemediatingReason = "Remediating"

	// PlanLeavingEtcdReason is when the etcd member of a Machine that is being deleted leaves.
	PlanLeavingEtcdReason = "LeavingEtcd"

	// PlanReleasingReason is when a Machine that is being deleted is let go.
	PlanReleasingReason = "Releasing"

	// PlanRemovingOrphanReason is when an etcd member is removed that no Machine has.
	PlanRemovingOrphanReason = "RemovingOrphan"

	// PlanDeletingReason is when the whole control plane is deleted.
	PlanDeletingReason = "Deleting"
)

// Reasons of a plan for what is waited for.
const (
	// PlanPausedReason is when the Cluster or the control plane is paused.
	PlanPausedReason = "Paused"

	// PlanClusterMissingReason is when the Cluster does not exist.
	PlanClusterMissingReason = "ClusterMissing"

	// PlanClusterDeletingReason is when the Cluster is being deleted, and gets no new machines.
	PlanClusterDeletingReason = "ClusterDeleting"

	// PlanObservationFailedReason is when the manager cannot read what there is of the control plane.
	PlanObservationFailedReason = "ObservationFailed"

	// PlanWaitingForInfrastructureReason is when the Cluster's infrastructure is not provisioned.
	PlanWaitingForInfrastructureReason = "WaitingForClusterInfrastructure"

	// PlanWaitingForEndpointReason is when the Cluster has no control-plane endpoint.
	PlanWaitingForEndpointReason = "WaitingForControlPlaneEndpoint"

	// PlanWaitingForSecretsReason is when the cluster's secrets cannot be used.
	PlanWaitingForSecretsReason = "WaitingForSecrets"

	// PlanWaitingForTopologyReason is when the Cluster's topology has another version than the control plane has been given yet.
	PlanWaitingForTopologyReason = "WaitingForTopology"

	// PlanWaitingForMachineReason is when a machine has not come up.
	PlanWaitingForMachineReason = "WaitingForMachine"

	// PlanWaitingForAPIServerReason is when etcd is bootstrapped and the Kubernetes API server has not answered yet.
	PlanWaitingForAPIServerReason = "WaitingForAPIServer"

	// PlanBootstrapUnprovenReason is when a machine does not say whether it has etcd data, so that nothing is bootstrapped.
	PlanBootstrapUnprovenReason = "BootstrapUnproven"

	// PlanBootstrapMachineGoneReason is when etcd was bootstrapped on a Machine that does not exist any more. The user decides.
	PlanBootstrapMachineGoneReason = "BootstrapMachineGone"

	// PlanBootstrapRecordInvalidReason is when the records of the bootstrap contradict each other or cannot be read. The user decides.
	PlanBootstrapRecordInvalidReason = "BootstrapRecordInvalid"

	// PlanServedElsewhereReason is when an API server of the cluster answers at its endpoint that no Machine runs, so that no etcd is
	// bootstrapped beside its own.
	PlanServedElsewhereReason = "ServedElsewhere"

	// PlanMachineDeletingReason is when a Machine is being deleted, one at a time.
	PlanMachineDeletingReason = "MachineDeleting"

	// PlanMachineUnhealthyReason is when a machine has no node, a condition of its is not true, or its etcd member is not well.
	PlanMachineUnhealthyReason = "MachineUnhealthy"

	// PlanOperationRunningReason is when an operation in place is running on a machine.
	PlanOperationRunningReason = "OperationRunning"

	// PlanEtcdUnknownReason is when no etcd member list can be trusted.
	PlanEtcdUnknownReason = "EtcdMembersUnknown"

	// PlanEtcdChangingReason is when a change of the etcd members is under way.
	PlanEtcdChangingReason = "EtcdMembersChanging"

	// PlanEtcdQuorumAtRiskReason is when too few healthy etcd members would be left.
	PlanEtcdQuorumAtRiskReason = "EtcdQuorumAtRisk"

	// PlanEtcdLastMemberReason is when a Machine that is being deleted has the last etcd member.
	PlanEtcdLastMemberReason = "EtcdLastMember"

	// PlanEtcdAlarmReason is when etcd has an alarm.
	PlanEtcdAlarmReason = "EtcdAlarm"

	// PlanEtcdUnaccountedReason is when an etcd member may be that of a machine which cannot say so.
	PlanEtcdUnaccountedReason = "EtcdMemberUnaccounted"

	// PlanRemediationDeferredReason is when an unhealthy machine will be replaced as soon as something else is over.
	PlanRemediationDeferredReason = MachineRemediationDeferredReason

	// PlanCannotBeRemediatedReason is when replacing an unhealthy machine would break the control plane, or has failed too often.
	PlanCannotBeRemediatedReason = MachineCannotBeRemediatedReason

	// PlanInPlaceReason is when machines differ from the spec in what is changed in place.
	PlanInPlaceReason = "WaitingForInPlaceUpdate"

	// PlanInPlaceImpossibleReason is when machines differ from the spec in what cannot be changed in place, and no fallback is allowed.
	PlanInPlaceImpossibleReason = "InPlaceImpossible"

	// PlanOnDeleteReason is when machines differ from the spec, and the user deletes them.
	PlanOnDeleteReason = "WaitingForUserDeletion"

	// PlanWaitingForWorkersReason is when the control plane is deleted and workers are still there.
	PlanWaitingForWorkersReason = "WaitingForWorkersDeletion"
)
