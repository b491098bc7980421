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

	// TalosConfigNameReservedReason is the reason when the TalosConfig has a name that a Cluster gives one of its own Secrets, such as
	// "<cluster>-ca", so that no Secret is made for it: replace it by one with another name.
	TalosConfigNameReservedReason = "NameReserved"

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
	// SecretsBundleAvailableCondition is true when the cluster's Talos secrets bundle exists and can be used. Of the TalosConfig of a Machine
	// that has its data Secret it tells without counting for Ready, and as it was when the TalosConfig was last looked at, within the sync period:
	// the machine needs the bundle no more, and a change of it need not wake thousands.
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
	// Secrets of an earlier Cluster of the name are still there, or a machine's bootstrap data is in the place of one.
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

// NotReadReason is the reason of every condition of a TalosClusterConfig or TalosConfigPatch while what it is judged by cannot be read: the
// manager lacks a right, or the API server does not answer. It is unknown then.
const NotReadReason = "NotRead"

// TalosClusterConfig's Ready condition and its reasons.
const (
	// TalosClusterConfigReadyCondition is true when machines can be rendered with the object.
	TalosClusterConfigReadyCondition = clusterv1.ReadyCondition

	// TalosClusterConfigReadyReason is the reason when Ready is true.
	TalosClusterConfigReadyReason = clusterv1.ReadyReason

	// TalosClusterConfigNotReadyReason is the reason when Ready is false because of what its message says.
	TalosClusterConfigNotReadyReason = clusterv1.NotReadyReason

	// TalosClusterConfigAmbiguousReason is the reason when another TalosClusterConfig targets one of the Clusters too. It is on all of
	// them, and nothing is rendered until one is left.
	TalosClusterConfigAmbiguousReason = TalosConfigAmbiguousClusterConfigReason
)

// TalosClusterConfig's RegistriesResolved condition and its reasons.
const (
	// RegistriesResolvedCondition is true when every Secret that a registry refers to exists and has the keys it must have. Its message
	// then says what is allowed and probably not meant.
	RegistriesResolvedCondition = "RegistriesResolved"

	// RegistriesResolvedReason is the reason when the registries can be used.
	RegistriesResolvedReason = "Resolved"

	// RegistriesInvalidReason is the reason when a Secret is missing or lacks a key, or an endpoint cannot be used.
	RegistriesInvalidReason = "Invalid"
)

// Reasons of a TalosClusterConfig's SecretsBundleAvailable condition beside those of a TalosConfig's. Neither keeps it from being ready.
const (
	// SecretsBundleNotCreatedReason is the reason while a Cluster has no bundle yet: its first machine has it made.
	SecretsBundleNotCreatedReason = "NotCreated"

	// SecretsBundleNoClusterReason is the reason while the TalosClusterConfig targets no Cluster.
	SecretsBundleNoClusterReason = "NoCluster"
)

// TalosConfigPatch's Ready condition and its reasons.
const (
	// TalosConfigPatchReadyCondition is false when the patch is not valid. One that changes nothing is ready, and one of which it is not
	// known for some machines.
	TalosConfigPatchReadyCondition = clusterv1.ReadyCondition

	// TalosConfigPatchReadyReason is the reason when Ready is true.
	TalosConfigPatchReadyReason = clusterv1.ReadyReason

	// TalosConfigPatchNotReadyReason is the reason when Ready is false.
	TalosConfigPatchNotReadyReason = clusterv1.NotReadyReason
)

// TalosConfigPatch's Valid condition and its reasons.
const (
	// TalosConfigPatchValidCondition is true when the patch decodes, and every machine that it applies to renders.
	TalosConfigPatchValidCondition = "Valid"

	// TalosConfigPatchValidReason is the reason when Valid is true.
	TalosConfigPatchValidReason = "Valid"

	// TalosConfigPatchInvalidReason is the reason when the patch itself is at fault.
	TalosConfigPatchInvalidReason = "Invalid"

	// TalosConfigPatchMachinesNotRenderedReason is the reason when a machine does not render because of something else.
	// Of the Effective condition it is the reason when it cannot be told for that.
	TalosConfigPatchMachinesNotRenderedReason = "MachinesNotRendered"

	// TalosConfigPatchNotAllRenderedReason is the reason when the machines differ in so many ways that only some were rendered, and
	// those without a fault. The condition is unknown, and so is Effective.
	TalosConfigPatchNotAllRenderedReason = "NotAllRendered"
)

// TalosConfigPatch's Effective condition and its reasons.
const (
	// TalosConfigPatchEffectiveCondition is false when the patch changes nothing on a machine that it applies to. It is unknown when there
	// is no machine to tell from.
	TalosConfigPatchEffectiveCondition = "Effective"

	// TalosConfigPatchEffectiveReason is the reason when the patch changes something on every machine.
	TalosConfigPatchEffectiveReason = "Effective"

	// TalosConfigPatchIneffectiveReason is the reason when there is a machine on which it changes nothing.
	TalosConfigPatchIneffectiveReason = "ChangesNothing"

	// TalosConfigPatchNoMachinesReason is the reason when the patch applies to no machine.
	TalosConfigPatchNoMachinesReason = "NoMachines"

	// TalosConfigPatchNoClusterReason is the reason when it targets no Cluster that exists.
	TalosConfigPatchNoClusterReason = SecretsBundleNoClusterReason
)

// The Movable condition of TalosClusterConfig and TalosConfigPatch, and its reasons. An object that refers to no Secret or ConfigMap that
// exists, and that can be created anew, has none. It does not keep the object from being ready.
const (
	// MovableCondition is true when `clusterctl move` takes along every Secret and ConfigMap that the object refers to. It is false, too, when a move
	// fails at the object itself.
	MovableCondition = "Movable"

	// MovableReason is the reason when all of them have the label that a move goes by.
	MovableReason = "Movable"

	// MovePausedReason is the reason when one has no label, and gets it when no Cluster is paused that the object applies to.
	MovePausedReason = "ClusterPaused"

	// MoveNotCreatableReason is the reason when the object itself could not be created anew, as a move and a restore do: it has something that was
	// allowed when it was created, and is refused now.
	MoveNotCreatableReason = "CannotBeCreated"

	// MoveLabelRefusedReason is the reason when the API server does not let the manager set the label.
	MoveLabelRefusedReason = "LabelRefused"

	// MoveLabelNotSetReason is the reason when the label could not be set for some time, for example because the API server does not answer. It is tried
	// again.
	MoveLabelNotSetReason = "LabelNotSet"

	// MoveLabelRemovedReason is the reason when somebody has taken the label away after the manager had set it. It is not set again.
	MoveLabelRemovedReason = "LabelRemoved"
)
