// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterTargeting says which Clusters an object applies to: one by name, or several by label. Only
// Clusters in the object's own namespace are considered. No owner reference is set on the object, so
// deleting a Cluster never deletes what a user wrote for it.
type ClusterTargeting struct {
	// clusterName is the name of the one Cluster this applies to.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ClusterName string `json:"clusterName,omitempty"`

	// clusterSelector selects the Clusters this applies to by their labels. An empty selector selects every Cluster of the namespace.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
}

// MachineTargeting says which Machines of the targeted Clusters an object applies to.
type MachineTargeting struct {
	// machineSelector matches labels of the CAPI Machine (for a MachinePool: of its machine template).
	// Unset or empty selects every machine of the targeted Clusters.
	// +optional
	MachineSelector *metav1.LabelSelector `json:"machineSelector,omitempty"`
}
