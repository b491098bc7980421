// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// MachinePoolFinalizer keeps a SimMachinePool until its machines are gone.
const MachinePoolFinalizer = "simmachinepool.infrastructure.ichor.maesh.dev"

// SimMachinePoolSpec is the desired pool.
// +kubebuilder:validation:XValidation:rule="!has(self.machine) || (!has(self.machine.providerID) && !has(self.machine.power))",message="the machines of a pool have their provider IDs from the provider, and are all on"
type SimMachinePoolSpec struct {
	// machine is what each machine of the pool is like. What is changed counts for machines that are made from then on, but for
	// faults, which hold for all at once.
	// +optional
	Machine SimMachineSpec `json:"machine,omitempty,omitzero"`

	// providerIDList are the machines that there are, set by the provider: sim:///NAMESPACE/POOL/POOL-ID/NAME.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	ProviderIDList []string `json:"providerIDList,omitempty"`
}

// SimMachinePoolStatus is the observed pool.
// +kubebuilder:validation:MinProperties=1
type SimMachinePoolStatus struct {
	// conditions of the SimMachinePool: Ready, Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization provides observations of the initial provisioning, as the Cluster API contract wants them.
	// +optional
	Initialization InitializationStatus `json:"initialization,omitempty,omitzero"`

	// ready is what Cluster API's core manager looks at of pools in place of initialization.
	// +optional
	Ready *bool `json:"ready,omitempty"`

	// replicas is how many machines there are.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// instances are the machines that there are, sorted by name.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	Instances []SimMachinePoolInstance `json:"instances,omitempty"`
}

// SimMachinePoolInstance is a machine of a pool.
type SimMachinePoolInstance struct {
	// name of the machine, and of its host unless its config says another.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// addresses of the machine: one InternalIP, where the Talos API answers on port 50000.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Addresses []clusterv1.MachineAddress `json:"addresses,omitempty"`
}

// SimMachinePool is a pool of simulated machines that run Talos, all from one config.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=simmachinepools,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta2=v1alpha1","clusterctl.cluster.x-k8s.io/move="}
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="Cluster"
// +kubebuilder:printcolumn:name="Replicas",type="integer",JSONPath=".status.replicas",description="Machines that there are"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status",description="Whether all machines run"
// +kubebuilder:printcolumn:name="Message",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Ready')].message",description="What is missing"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type SimMachinePool struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired pool.
	// +optional
	Spec SimMachinePoolSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status SimMachinePoolStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions of the SimMachinePool.
func (p *SimMachinePool) GetConditions() []metav1.Condition { return p.Status.Conditions }

// SetConditions sets the conditions of the SimMachinePool.
func (p *SimMachinePool) SetConditions(conditions []metav1.Condition) {
	p.Status.Conditions = conditions
}

// SimMachinePoolList is a list of SimMachinePools.
//
// +kubebuilder:object:root=true
type SimMachinePoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SimMachinePool `json:"items"`
}
