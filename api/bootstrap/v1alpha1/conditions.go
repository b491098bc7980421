// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

// TalosConfig's Ready condition and its reasons. Ready is the summary of the other conditions of the TalosConfig; Cluster API
// shows it as the Machine's BootstrapConfigReady.
const (
	// TalosConfigReadyCondition is true when the machine config has been rendered and its Secret exists.
	TalosConfigReadyCondition = clusterv1.ReadyCondition

	// TalosConfigReadyReason is the reason when Ready is true.
	TalosConfigReadyReason = clusterv1.ReadyReason

	// TalosConfigNotReadyReason is the reason when Ready is false.
	TalosConfigNotReadyReason = clusterv1.NotReadyReason

	// TalosConfigReadyUnknownReason is the reason when Ready is unknown.
	TalosConfigReadyUnknownReason = clusterv1.ReadyUnknownReason
)

// TalosConfig's DataSecretAvailable condition and its reasons.
const (
	// TalosConfigDataSecretAvailableCondition is true when the Secret with the machine config exists and belongs to the TalosConfig.
	TalosConfigDataSecretAvailableCondition = "DataSecretAvailable"

	// TalosConfigDataSecretAvailableReason is the reason when the Secret exists.
	TalosConfigDataSecretAvailableReason = clusterv1.AvailableReason

	// TalosConfigDataSecretNotAvailableReason is the reason when the Secret has not been written, because of what the other
	// conditions say.
	TalosConfigDataSecretNotAvailableReason = clusterv1.NotAvailableReason

	// TalosConfigDataSecretNotNeededReason is the reason when the Secret was deleted after the machine had joined, which does
	// not read it again: the condition stays true.
	TalosConfigDataSecretNotNeededReason = "NotNeeded"

	// TalosConfigDataSecretForeignReason is the reason when a Secret of the name exists and belongs to something else. It is
	// never reused: delete or rename it.
	TalosConfigDataSecretForeignReason = "ForeignSecret"

	// TalosConfigWaitingForOwnerReason is the reason while no Machine or MachinePool owns the TalosConfig.
	TalosConfigWaitingForOwnerReason = "WaitingForOwner"

	// TalosConfigWaitingForClusterReason is the reason while the Cluster does not exist.
	TalosConfigWaitingForClusterReason = "WaitingForCluster"

	// TalosConfigWaitingForClusterInfrastructureReason is the reason while the Cluster's infrastructure is not provisioned.
	TalosConfigWaitingForClusterInfrastructureReason = clusterv1.WaitingForClusterInfrastructureReadyReason

	// TalosConfigWaitingForControlPlaneEndpointReason is the reason while the Cluster has no control-plane endpoint.
	TalosConfigWaitingForControlPlaneEndpointReason = "WaitingForControlPlaneEndpoint"
)

// TalosConfig's SecretsBundleAvailable condition and its reasons. TalosClusterConfig has the same condition.
const (
	// SecretsBundleAvailableCondition is true when the cluster's Talos secrets bundle exists and can be used.
	SecretsBundleAvailableCondition = "SecretsBundleAvailable"

	// SecretsBundleAvailableReason is the reason when the bundle can be used.
	SecretsBundleAvailableReason = clusterv1.AvailableReason

	// SecretsBundleNotAvailableReason is the reason when the API server refuses to take one of the cluster's Secrets, because of a
	// quota or an admission policy.
	SecretsBundleNotAvailableReason = clusterv1.NotAvailableReason

	// SecretsBundleMissingReason is the reason when the bundle of a cluster is missing that is initialized, or has machines with
	// bootstrap data. It is never made again: restore the Secret from a backup.
	SecretsBundleMissingReason = "Missing"

	// SecretsBundleInvalidReason is the reason when the bundle cannot be decoded, or lacks something.
	SecretsBundleInvalidReason = "Invalid"

	// SecretsBundleMismatchReason is the reason when the bundle differs from the user's bundle, or a Secret from the bundle, or when
	// Secrets of an earlier Cluster of the name are still there.
	SecretsBundleMismatchReason = "Mismatch"
)

// TalosConfig's ConfigRendered condition and its reasons.
const (
	// TalosConfigConfigRenderedCondition is true when the machine config has been rendered and validated.
	TalosConfigConfigRenderedCondition = "ConfigRendered"

	// TalosConfigConfigRenderedReason is the reason when the config has been rendered.
	TalosConfigConfigRenderedReason = "Rendered"

	// TalosConfigAdoptedReason is the reason when the Machine already has bootstrap data, so that nothing is rendered.
	TalosConfigAdoptedReason = "Adopted"

	// TalosConfigWaitingForInputsReason is the reason while something that goes into the config does not exist yet.
	TalosConfigWaitingForInputsReason = "WaitingForInputs"

	// TalosConfigContractUnknownReason is the reason when neither a TalosClusterConfig nor the TalosConfig says which config
	// contract the machine needs.
	TalosConfigContractUnknownReason = "ConfigContractUnknown"

	// TalosConfigAmbiguousClusterConfigReason is the reason when more than one TalosClusterConfig targets the Cluster.
	TalosConfigAmbiguousClusterConfigReason = "AmbiguousTalosClusterConfig"

	// TalosConfigReferenceInvalidReason is the reason when a Secret or patch that is referred to is missing or lacks a key.
	TalosConfigReferenceInvalidReason = "InvalidReference"

	// TalosConfigRenderFailedReason is the reason when a layer cannot be applied.
	TalosConfigRenderFailedReason = "RenderFailed"

	// TalosConfigValidationFailedReason is the reason when the merged config is not one that Talos can run.
	TalosConfigValidationFailedReason = "ValidationFailed"
)

// TalosClusterConfig's conditions and their reasons.
const (
	// TalosClusterConfigReadyCondition is true when machines can be rendered with the object.
	TalosClusterConfigReadyCondition = clusterv1.ReadyCondition

	// RegistriesResolvedCondition is true when every Secret that a registry refers to exists and has the keys it must have.
	RegistriesResolvedCondition = "RegistriesResolved"
)
