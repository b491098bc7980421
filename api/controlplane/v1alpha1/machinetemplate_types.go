// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// TalosControlPlaneMachineTemplate says how the machines of a control plane are made.
type TalosControlPlaneMachineTemplate struct {
	// metadata is the labels and annotations of Machines, infrastructure machines and TalosConfigs. A change reaches
	// existing ones without a rollout.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec of the Machines.
	// +required
	Spec TalosControlPlaneMachineTemplateSpec `json:"spec,omitempty,omitzero"`
}

// TalosControlPlaneMachineTemplateSpec is the part of a Machine's spec that the control plane's owner decides. Everything but
// infrastructureRef reaches existing Machines without a rollout.
type TalosControlPlaneMachineTemplateSpec struct {
	// infrastructureRef refers to the infrastructure provider's template for the machines. Another one is a rollout.
	// +required
	InfrastructureRef clusterv1.ContractVersionedObjectReference `json:"infrastructureRef,omitempty,omitzero"`

	// readinessGates are conditions of a Machine that must be true for it to be ready, beside those that Ichor sets.
	// +optional
	// +listType=map
	// +listMapKey=conditionType
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	ReadinessGates []clusterv1.MachineReadinessGate `json:"readinessGates,omitempty"`

	// deletion says how long the steps of a Machine's deletion may take.
	// +optional
	Deletion MachineDeletionTimeouts `json:"deletion,omitempty,omitzero"`

	// taints of the Node that Cluster API manages.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Taints []clusterv1.MachineTaint `json:"taints,omitempty"`
}

// MachineDeletionTimeouts says how long the steps of a Machine's deletion may take, as in Cluster API.
// +kubebuilder:validation:MinProperties=1
type MachineDeletionTimeouts struct {
	// nodeDrainTimeoutSeconds bounds the drain of the Node. Unset or 0: no limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	NodeDrainTimeoutSeconds *int32 `json:"nodeDrainTimeoutSeconds,omitempty"`

	// nodeVolumeDetachTimeoutSeconds bounds the wait for volumes to be detached. Unset or 0: no limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	NodeVolumeDetachTimeoutSeconds *int32 `json:"nodeVolumeDetachTimeoutSeconds,omitempty"`

	// nodeDeletionTimeoutSeconds bounds the attempts to delete the Node. 0: no limit. Unset: Cluster API's default for Machines.
	// +optional
	// +kubebuilder:validation:Minimum=0
	NodeDeletionTimeoutSeconds *int32 `json:"nodeDeletionTimeoutSeconds,omitempty"`
}

// MachineNamingSpec says how Machines are named. Infrastructure machine and TalosConfig have their Machine's name.
// +kubebuilder:validation:MinProperties=1
type MachineNamingSpec struct {
	// template of the names, in Go's template syntax, with the variables .cluster.name, .talosControlPlane.name and .random,
	// which must be in it: five random letters and digits. Unset: "{{ .talosControlPlane.name }}-{{ .random }}". A name of more
	// than 63 characters is cut to 58 and gets five random ones.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('[{][{]-? *[.]random *-?[}][}]')",message="template must contain {{ .random }}, so that no two Machines have the same name"
	Template string `json:"template,omitempty"`
}
