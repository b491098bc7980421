// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

// ReadyCondition tells whether what an object stands for is there and works. Cluster API mirrors it, as InfrastructureReady, to
// the Cluster or the Machine.
const ReadyCondition = clusterv1.ReadyCondition

// Reasons of Ready of a SimCluster.
const (
	// ServingReason: the load balancer listens at the control-plane endpoint.
	ServingReason = "Serving"

	// EndpointUnavailableReason: the load balancer cannot listen at the endpoint that the spec names.
	EndpointUnavailableReason = "EndpointUnavailable"

	// DeletingReason, of both kinds: the object is on its way out.
	DeletingReason = clusterv1.DeletingReason
)

// Reasons of Ready of a SimMachine.
const (
	// RunningReason: the machine is on and its node has taken its config.
	RunningReason = "Running"

	// WaitingForClusterInfrastructureReason: the Cluster's infrastructure is not provisioned yet.
	WaitingForClusterInfrastructureReason = clusterv1.WaitingForClusterInfrastructureReadyReason

	// WaitingForBootstrapDataReason: Cluster API has not handed over the Secret with the machine config yet.
	WaitingForBootstrapDataReason = clusterv1.WaitingForBootstrapDataReason

	// BootstrapDataUnusableReason: the Secret with the machine config has no value.
	BootstrapDataUnusableReason = "BootstrapDataUnusable"

	// InvalidSpecReason: the machine cannot be made from the spec.
	InvalidSpecReason = "InvalidSpec"

	// ConfigNotAppliedReason: the node in maintenance mode does not answer the provider, which tries again.
	ConfigNotAppliedReason = "ConfigNotApplied"

	// ConfigRefusedReason: the node does not take the machine config, and stays in maintenance mode.
	ConfigRefusedReason = "ConfigRefused"

	// BootFailedReason: the machine does not boot.
	BootFailedReason = "BootFailed"

	// ComponentFailedReason: a program of a node of full fidelity did not start.
	ComponentFailedReason = "ComponentFailed"

	// PoweredOffReason: the machine is off, because spec.power says so or somebody shut it down.
	PoweredOffReason = "PoweredOff"

	// MachineLostReason: the machine was in a provider that has ended since without keeping it, and is gone with all that it held.
	MachineLostReason = "MachineLost"

	// MachinesNotRunningReason, of a SimMachinePool: some of its machines are off, or have not taken their config.
	MachinesNotRunningReason = "MachinesNotRunning"
)
