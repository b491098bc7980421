// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
)

// TalosControlPlaneTemplateSpec is what the TalosControlPlanes of a cluster class are made from. It cannot be changed; make a new
// template and refer to that.
type TalosControlPlaneTemplateSpec struct {
	// template of the TalosControlPlane.
	// +required
	Template TalosControlPlaneTemplateResource `json:"template,omitempty,omitzero"`
}

// TalosControlPlaneTemplateResource is the metadata and spec of a TalosControlPlane made from a template.
// +kubebuilder:validation:MinProperties=1
type TalosControlPlaneTemplateResource struct {
	// metadata is the labels and annotations of the TalosControlPlane.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec of the TalosControlPlane, without what the Cluster's topology says: replicas, version, infrastructureRef.
	// +optional
	Spec TalosControlPlaneTemplateResourceSpec `json:"spec,omitempty,omitzero"`
}

// TalosControlPlaneTemplateResourceSpec is a TalosControlPlaneSpec without what the Cluster's topology says.
type TalosControlPlaneTemplateResourceSpec struct {
	// machineTemplate says how Machines are made.
	// +optional
	MachineTemplate TalosControlPlaneTemplateMachineTemplate `json:"machineTemplate,omitempty,omitzero"`

	// talosConfigSpec is the spec of the machines' TalosConfigs.
	// +optional
	TalosConfigSpec bootstrapv1.TalosConfigSpec `json:"talosConfigSpec,omitempty,omitzero"`

	// rollout says when and how machines are brought up to date.
	// +optional
	Rollout RolloutSpec `json:"rollout,omitempty,omitzero"`

	// remediation limits how often unhealthy machines are replaced.
	// +optional
	Remediation RemediationSpec `json:"remediation,omitempty,omitzero"`

	// machineNaming says how Machines are named.
	// +optional
	MachineNaming MachineNamingSpec `json:"machineNaming,omitempty,omitzero"`

	// nodeOperations says how the nodes of the Cluster, workers included, may be disturbed.
	// +optional
	NodeOperations NodeOperationsSpec `json:"nodeOperations,omitempty,omitzero"`
}

// TalosControlPlaneTemplateMachineTemplate says how the machines of a control plane are made, but for the infrastructure.
// +kubebuilder:validation:MinProperties=1
type TalosControlPlaneTemplateMachineTemplate struct {
	// metadata is the labels and annotations of Machines, infrastructure machines and TalosConfigs.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec of the Machines.
	// +optional
	Spec TalosControlPlaneTemplateMachineTemplateSpec `json:"spec,omitempty,omitzero"`
}

// TalosControlPlaneTemplateMachineTemplateSpec is the part of a Machine's spec that neither the cluster class nor the topology says.
// +kubebuilder:validation:MinProperties=1
type TalosControlPlaneTemplateMachineTemplateSpec struct {
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

// TalosControlPlaneTemplate is the template that cluster classes make TalosControlPlanes from.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=taloscontrolplanetemplates,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta2=v1alpha1","clusterctl.cluster.x-k8s.io/move="}
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type TalosControlPlaneTemplate struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what TalosControlPlanes are made from.
	// +required
	Spec TalosControlPlaneTemplateSpec `json:"spec,omitempty,omitzero"`
}

// TalosControlPlaneTemplateList is a list of TalosControlPlaneTemplates.
//
// +kubebuilder:object:root=true
type TalosControlPlaneTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TalosControlPlaneTemplate `json:"items"`
}

func init() {
	objectTypes = append(objectTypes, &TalosControlPlaneTemplate{}, &TalosControlPlaneTemplateList{})
}
