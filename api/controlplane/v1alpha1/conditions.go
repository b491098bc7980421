// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

// TalosControlPlane's conditions. Cluster API mirrors Available to the Cluster, and aggregates RollingOut, ScalingUp and ScalingDown.
const (
	// AvailableCondition is true when etcd has a quorum, a machine has all control-plane components healthy, and the certificates
	// are there.
	AvailableCondition = clusterv1.AvailableCondition

	// InitializedCondition is true from the time on that the Kubernetes API server has answered.
	InitializedCondition = "Initialized"

	// CertificatesAvailableCondition is true when the cluster's secrets bundle and authorities can be used.
	CertificatesAvailableCondition = "CertificatesAvailable"

	// EtcdClusterHealthyCondition is true when the members agree, each is healthy and each belongs to a Machine.
	EtcdClusterHealthyCondition = "EtcdClusterHealthy"

	// ControlPlaneComponentsHealthyCondition is true when API server, controller manager and scheduler are healthy on every machine.
	ControlPlaneComponentsHealthyCondition = "ControlPlaneComponentsHealthy"

	// MachinesReadyCondition is true when every machine is ready.
	MachinesReadyCondition = clusterv1.MachinesReadyCondition

	// MachinesUpToDateCondition is true when every machine is as the spec wants it.
	MachinesUpToDateCondition = clusterv1.MachinesUpToDateCondition

	// RollingOutCondition is true while machines are not as the spec wants them.
	RollingOutCondition = clusterv1.RollingOutCondition

	// ScalingUpCondition is true while there are fewer machines than replicas.
	ScalingUpCondition = clusterv1.ScalingUpCondition

	// ScalingDownCondition is true while there are more machines than replicas.
	ScalingDownCondition = clusterv1.ScalingDownCondition

	// RemediatingCondition is true while a machine waits for its replacement, or for the permission to be replaced.
	RemediatingCondition = clusterv1.RemediatingCondition

	// DeletingCondition is true while the control plane is being deleted.
	DeletingCondition = clusterv1.DeletingCondition

	// PausedCondition is true while nothing is done.
	PausedCondition = clusterv1.PausedCondition

	// NodeOperationsCondition tells of upgrades, config changes and reboots.
	NodeOperationsCondition = "NodeOperations"
)

// Conditions that the control-plane provider keeps on each control-plane Machine. They can be used as readiness gates and in
// MachineHealthChecks. A node that has been out of reach for a short time is not unhealthy.
const (
	// MachineAPIServerPodHealthyCondition tells of the machine's kube-apiserver.
	MachineAPIServerPodHealthyCondition = "APIServerPodHealthy"

	// MachineControllerManagerPodHealthyCondition tells of the machine's kube-controller-manager.
	MachineControllerManagerPodHealthyCondition = "ControllerManagerPodHealthy"

	// MachineSchedulerPodHealthyCondition tells of the machine's kube-scheduler.
	MachineSchedulerPodHealthyCondition = "SchedulerPodHealthy"

	// MachineEtcdMemberHealthyCondition tells of the machine's etcd member.
	MachineEtcdMemberHealthyCondition = "EtcdMemberHealthy"

	// MachineTalosHealthyCondition tells of Talos itself: its stage and its services.
	MachineTalosHealthyCondition = "TalosHealthy"

	// MachineUpToDateCondition is true when the machine is as the spec wants it.
	MachineUpToDateCondition = clusterv1.MachineUpToDateCondition

	// MachineOwnerRemediatedCondition is set to false by a MachineHealthCheck that wants the machine replaced. The control plane
	// says there what it does about it.
	MachineOwnerRemediatedCondition = clusterv1.MachineOwnerRemediatedCondition
)

// Reasons of a Machine's OwnerRemediated condition that the control plane sets.
const (
	// MachineRemediationDeferredReason is when the machine will be replaced as soon as something else is over.
	MachineRemediationDeferredReason = "RemediationDeferred"

	// MachineCannotBeRemediatedReason is when replacing the machine would break the control plane, or has failed too often.
	MachineCannotBeRemediatedReason = "CannotBeRemediated"

	// MachineRemediationMachineDeletingReason is while the machine is being deleted.
	MachineRemediationMachineDeletingReason = "MachineDeleting"
)
