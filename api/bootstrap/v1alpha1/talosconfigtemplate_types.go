// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// TalosConfigTemplateSpec is what TalosConfigs are made from. It cannot be changed; make a new template and refer to that.
type TalosConfigTemplateSpec struct {
	// template of the TalosConfig.
	// +required
	Template TalosConfigTemplateResource `json:"template,omitempty,omitzero"`
}

// TalosConfigTemplateResource is the metadata and spec of a TalosConfig made from a template.
// +kubebuilder:validation:MinProperties=1
type TalosConfigTemplateResource struct {
	// metadata is the labels and annotations of the TalosConfig.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec of the TalosConfig.
	// +optional
	Spec TalosConfigSpec `json:"spec,omitempty,omitzero"`
}

// TalosConfigTemplate is the template that MachineDeployments, MachineSets and cluster classes make TalosConfigs from.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=talosconfigtemplates,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta2=v1alpha1","clusterctl.cluster.x-k8s.io/move="}
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type TalosConfigTemplate struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what TalosConfigs are made from.
	// +required
	Spec TalosConfigTemplateSpec `json:"spec,omitempty,omitzero"`
}

// TalosConfigTemplateList is a list of TalosConfigTemplates.
//
// +kubebuilder:object:root=true
type TalosConfigTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TalosConfigTemplate `json:"items"`
}

func init() {
	objectTypes = append(objectTypes, &TalosConfigTemplate{}, &TalosConfigTemplateList{})
}
