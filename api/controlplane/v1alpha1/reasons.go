// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

// Reasons of TalosControlPlane's conditions.
const (
	// AvailableReason is when the control plane serves.
	AvailableReason = clusterv1.AvailableReason

	// NotAvailableReason is when it does not; the message says what is missing.
	NotAvailableReason = clusterv1.NotAvailableReason

	// AvailableUnknownReason is when machines that are out of reach may or may not serve.
	AvailableUnknownReason = clusterv1.AvailableUnknownReason

	// InitializedReason is from the time on that the Kubernetes API server has answered.
	InitializedReason = "Initialized"

	// NotInitializedReason is until then.
	NotInitializedReason = "NotInitialized"

	// ServedElsewhereReason is when an API server of the cluster answers at its endpoint that no Machine runs.
	ServedElsewhereReason = PlanServedElsewhereReason

	// CertificatesAvailableReason is when the cluster's secrets can be used.
	CertificatesAvailableReason = clusterv1.AvailableReason

	// CertificatesNotCreatedReason is before the cluster's first machine config is rendered, with which its secrets are made.
	CertificatesNotCreatedReason = "NotCreated"

	// KubeconfigNotAvailableReason is when the secrets are there and the Secret <cluster>-kubeconfig cannot be made of them.
	KubeconfigNotAvailableReason = "KubeconfigNotAvailable"

	// EtcdClusterHealthyReason is when the members agree, each is healthy and each belongs to a Machine.
	EtcdClusterHealthyReason = "Healthy"

	// EtcdClusterNotHealthyReason is when a member is not healthy, does not start, or belongs to no Machine.
	EtcdClusterNotHealthyReason = "NotHealthy"

	// EtcdClusterHealthUnknownReason is when the members agree and the node of one does not say how it is, and nothing says that one is not
	// healthy.
	EtcdClusterHealthUnknownReason = "HealthUnknown"

	// EtcdClusterUnknownReason is when no member list can be trusted.
	EtcdClusterUnknownReason = clusterv1.InspectionFailedReason

	// ControlPlaneComponentsHealthyReason is when API server, controller manager and scheduler are healthy on every machine.
	ControlPlaneComponentsHealthyReason = "Healthy"

	// ControlPlaneComponentsNotHealthyReason is when one of them is not.
	ControlPlaneComponentsNotHealthyReason = "NotHealthy"

	// ControlPlaneComponentsUnknownReason is when a machine does not say, and no machine says that one of them is not healthy.
	ControlPlaneComponentsUnknownReason = "HealthUnknown"

	// MachinesReadyReason is when every machine is ready.
	MachinesReadyReason = clusterv1.ReadyReason

	// MachinesNotReadyReason is when a machine is not ready.
	MachinesNotReadyReason = clusterv1.NotReadyReason

	// MachinesReadyUnknownReason is when a machine does not say whether it is ready.
	MachinesReadyUnknownReason = clusterv1.ReadyUnknownReason

	// MachinesUpToDateReason is when every machine is as the spec wants it.
	MachinesUpToDateReason = clusterv1.UpToDateReason

	// MachinesNotUpToDateReason is when a machine is not as the spec wants it.
	MachinesNotUpToDateReason = clusterv1.NotUpToDateReason

	// MachinesUpToDateUnknownReason is when it is not known of a machine.
	MachinesUpToDateUnknownReason = clusterv1.UpToDateUnknownReason

	// NoReplicasReason is when there are no machines.
	NoReplicasReason = clusterv1.NoReplicasReason

	// RollingOutReason is while machines are not as the spec wants them.
	RollingOutReason = clusterv1.RollingOutReason

	// NotRollingOutReason is otherwise.
	NotRollingOutReason = clusterv1.NotRollingOutReason

	// ScalingUpReason is while there are fewer machines than replicas.
	ScalingUpReason = clusterv1.ScalingUpReason

	// NotScalingUpReason is otherwise.
	NotScalingUpReason = clusterv1.NotScalingUpReason

	// ScalingDownReason is while there are more machines than replicas.
	ScalingDownReason = clusterv1.ScalingDownReason

	// NotScalingDownReason is otherwise.
	NotScalingDownReason = clusterv1.NotScalingDownReason

	// RemediatingReason is while an unhealthy machine waits for its replacement.
	RemediatingReason = clusterv1.RemediatingReason

	// NotRemediatingReason is otherwise.
	NotRemediatingReason = clusterv1.NotRemediatingReason

	// DeletingReason is while the control plane is deleted; the message says what is waited for.
	DeletingReason = clusterv1.DeletingReason

	// NotDeletingReason is otherwise.
	NotDeletingReason = clusterv1.NotDeletingReason
)

// Reasons of the conditions of a control-plane Machine.
const (
	// MachineComponentRunningReason is when the static pod of a component runs and is ready.
	MachineComponentRunningReason = "Running"

	// MachineComponentNotReadyReason is when it is there and not ready.
	MachineComponentNotReadyReason = "NotReady"

	// MachineComponentMissingReason is when the node has no such static pod.
	MachineComponentMissingReason = "DoesNotExist"

	// MachineHealthyReason is when the etcd member, or Talos, is healthy.
	MachineHealthyReason = "Healthy"

	// MachineNotHealthyReason is when it is not.
	MachineNotHealthyReason = "NotHealthy"

	// MachineEtcdMemberMissingReason is when the machine has no etcd member.
	MachineEtcdMemberMissingReason = "NoMember"

	// MachineInspectionFailedReason is when the node answers and does not say.
	MachineInspectionFailedReason = clusterv1.InspectionFailedReason

	// MachineNotInspectedReason is before the node has answered for the first time.
	MachineNotInspectedReason = "NotInspected"

	// MachineConnectionDownReason is when the node has not answered for longer than the grace period.
	MachineConnectionDownReason = clusterv1.ConnectionDownReason

	// MachineUpToDateReason is when the machine is as the spec wants it.
	MachineUpToDateReason = clusterv1.MachineUpToDateReason

	// MachineNotUpToDateReason is when it is not; each line of the message is a difference.
	MachineNotUpToDateReason = clusterv1.MachineNotUpToDateReason

	// MachineUpToDateUpdatingReason is when the Machine is as the spec wants it and its kubelet is not yet.
	MachineUpToDateUpdatingReason = clusterv1.MachineUpToDateUpdatingReason
)

// PlanRecordInvalidReason is the reason of a plan when an annotation of Ichor's cannot be read: a person has changed it, and decides.
const PlanRecordInvalidReason = "RecordInvalid"

// PlanWaitingForTemplateReason is the reason of a plan when a machine is to be made and what it is made from does not exist.
const PlanWaitingForTemplateReason = "WaitingForInfrastructureTemplate"
