// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// ClusterFinalizer keeps a SimCluster until its load balancer is gone.
const ClusterFinalizer = "simcluster.infrastructure.ichor.maesh.dev"

// Fidelity is how much of a machine is real.
// +kubebuilder:validation:Enum=Full;InMemory;Light
type Fidelity string

const (
	// FidelityFull gives control-plane machines a real etcd member and a real API server, and all machines a Node.
	FidelityFull Fidelity = "Full"

	// FidelityInMemory models etcd, and gives each cluster a Kubernetes API in memory, and all machines a Node. They start in milliseconds.
	FidelityInMemory Fidelity = "InMemory"

	// FidelityLight models etcd, and has no Kubernetes on the machines. They start in milliseconds.
	FidelityLight Fidelity = "Light"
)

// SimClusterSpec is what a cluster's machines have in common.
type SimClusterSpec struct {
	// controlPlaneEndpoint is where the cluster's API server answers: a load balancer of the provider, at a loopback address.
	// Unset: the provider picks an address, and port 6443. What is set is there for life.
	// +optional
	// +kubebuilder:validation:XValidation:rule="(!has(oldSelf.host) || (has(self.host) && self.host == oldSelf.host)) && (!has(oldSelf.port) || (has(self.port) && self.port == oldSelf.port))",message="the endpoint of a cluster cannot be changed"
	ControlPlaneEndpoint APIEndpoint `json:"controlPlaneEndpoint,omitempty,omitzero"`

	// fidelity of the cluster's machines. Unset: that of the provider's flag. It counts when the first machine is made.
	// +optional
	Fidelity Fidelity `json:"fidelity,omitempty"`

	// failureDomains are those that machines can be placed in.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	FailureDomains []clusterv1.FailureDomain `json:"failureDomains,omitempty"`
}

// APIEndpoint is where an API server answers.
// +kubebuilder:validation:MinProperties=1
type APIEndpoint struct {
	// host is a loopback address, such as 127.1.2.3.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Host string `json:"host,omitempty"`

	// port of the load balancer and of the API servers behind it.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
}

// SimClusterStatus is the observed state of a SimCluster.
// +kubebuilder:validation:MinProperties=1
type SimClusterStatus struct {
	// conditions of the SimCluster: Ready, Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization provides observations of the initial provisioning, as the Cluster API contract wants them.
	// +optional
	Initialization InitializationStatus `json:"initialization,omitempty,omitzero"`

	// failureDomains are those of the spec.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	FailureDomains []clusterv1.FailureDomain `json:"failureDomains,omitempty"`
}

// InitializationStatus provides observations of the initial provisioning.
// +kubebuilder:validation:MinProperties=1
type InitializationStatus struct {
	// provisioned is true when the infrastructure is there. It never becomes false again.
	// +optional
	Provisioned *bool `json:"provisioned,omitempty"`
}

// SimCluster is the simulated infrastructure of a cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=simclusters,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta2=v1alpha1","clusterctl.cluster.x-k8s.io/move="}
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="Cluster"
// +kubebuilder:printcolumn:name="Endpoint",type="string",JSONPath=".spec.controlPlaneEndpoint.host",description="Address of the control plane"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status",description="Whether the load balancer listens"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type SimCluster struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired infrastructure.
	// +optional
	Spec SimClusterSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status SimClusterStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions of the SimCluster.
func (c *SimCluster) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions sets the conditions of the SimCluster.
func (c *SimCluster) SetConditions(conditions []metav1.Condition) { c.Status.Conditions = conditions }

// SimClusterList is a list of SimClusters.
//
// +kubebuilder:object:root=true
type SimClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SimCluster `json:"items"`
}

// SimClusterTemplateSpec is what SimClusters are made from. It cannot be changed.
type SimClusterTemplateSpec struct {
	// template of the SimCluster.
	// +required
	Template SimClusterTemplateResource `json:"template,omitempty,omitzero"`
}

// SimClusterTemplateResource is the metadata and spec of a SimCluster made from a template.
type SimClusterTemplateResource struct {
	// metadata is the labels and annotations of the SimCluster.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec of the SimCluster.
	// +optional
	Spec SimClusterSpec `json:"spec"`
}

// SimClusterTemplate is the template from which cluster classes make SimClusters.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=simclustertemplates,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta2=v1alpha1","clusterctl.cluster.x-k8s.io/move="}
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type SimClusterTemplate struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what SimClusters are made from.
	// +required
	Spec SimClusterTemplateSpec `json:"spec,omitempty,omitzero"`
}

// SimClusterTemplateList is a list of SimClusterTemplates.
//
// +kubebuilder:object:root=true
type SimClusterTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SimClusterTemplate `json:"items"`
}
