// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
)

// PatchLayer is the place of a patch in the order of a machine config's layers.
// +kubebuilder:validation:Enum=Cluster;Role;Pool;Machine
type PatchLayer string

const (
	// PatchLayerCluster is for every machine of a cluster. It is the first layer of patches.
	PatchLayerCluster PatchLayer = "Cluster"

	// PatchLayerRole is for the control-plane machines, or for the workers.
	PatchLayerRole PatchLayer = "Role"

	// PatchLayerPool is for a group of machines.
	PatchLayerPool PatchLayer = "Pool"

	// PatchLayerMachine is for single machines. It is the last layer.
	PatchLayerMachine PatchLayer = "Machine"
)

// MachineRole is the part that a machine plays in its cluster.
// +kubebuilder:validation:Enum=ControlPlane;Worker
type MachineRole string

const (
	// MachineRoleControlPlane is a machine that runs the Kubernetes control plane and etcd.
	MachineRoleControlPlane MachineRole = "ControlPlane"

	// MachineRoleWorker is any other machine.
	MachineRoleWorker MachineRole = "Worker"
)

// TalosConfigPatchSpec is a patch of the machine configs that it targets.
// +kubebuilder:validation:XValidation:rule="!(has(self.clusterName) && has(self.clusterSelector))",message="clusterName and clusterSelector exclude each other"
// +kubebuilder:validation:XValidation:rule="!has(self.machineSelector) || has(self.clusterName) || has(self.clusterSelector)",message="machineSelector needs clusterName or clusterSelector; a patch with neither applies by reference only"
// +kubebuilder:validation:XValidation:rule="(self.layer == 'Role') == has(self.role)",message="role must be set with layer Role, and only then"
// +kubebuilder:validation:XValidation:rule="has(self.documents) || has(self.deletions)",message="at least one of documents and deletions must be set"
type TalosConfigPatchSpec struct {
	ClusterTargeting `json:",inline"`
	MachineTargeting `json:",inline"`

	// layer is the patch's place in the order Cluster, Role, Pool, Machine. A later layer wins.
	// +required
	Layer PatchLayer `json:"layer,omitempty"`

	// role limits the patch to control-plane machines or to workers. With layer Role, and only then.
	// +optional
	Role MachineRole `json:"role,omitempty"`

	// priority orders the patches of one layer: lower first, then by name. Unset: 0.
	// +optional
	Priority *int32 `json:"priority,omitempty"`

	// documents are Talos documents, merged in order into the machine config.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	Documents []machineconfigv1alpha1.Document `json:"documents,omitempty"`

	// deletions remove documents or fields, after documents are merged. A target that does not exist is no error.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	Deletions []PatchDeletion `json:"deletions,omitempty"`
}

// PatchDeletion removes a document, or one field of it.
type PatchDeletion struct {
	// kind of the document; "Config" is the legacy document.
	// +required
	// +kubebuilder:validation:Pattern=`^[A-Z][A-Za-z0-9]*$`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`

	// name of the document, for kinds that have one.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// path of the field to remove, as a JSON Pointer within the document. FIELD=VALUE names an element of a list.
	// Unset: the whole document is removed.
	// +optional
	// +kubebuilder:validation:Pattern=`^(/([^/~]|~[01])+)+$`
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path,omitempty"`
}

// TalosConfigPatchStatus is the observed state of a TalosConfigPatch.
// +kubebuilder:validation:MinProperties=1
type TalosConfigPatchStatus struct {
	// conditions of the TalosConfigPatch: Ready, Valid, Effective, Movable, Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// machines counts the machines that the patch concerns.
	// +optional
	Machines PatchMachinesStatus `json:"machines,omitempty,omitzero"`

	// observedGeneration is the generation that the status was computed from.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// PatchMachinesStatus counts machines.
// +kubebuilder:validation:MinProperties=1
type PatchMachinesStatus struct {
	// selected is how many machines the patch applies to.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Selected *int32 `json:"selected,omitempty"`

	// applied is how many machines run a config that contains this generation of the patch.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Applied *int32 `json:"applied,omitempty"`
}

// TalosConfigPatch is a patch, in typed Talos documents, of the machine configs that it targets.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=talosconfigpatches,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels={"clusterctl.cluster.x-k8s.io/move="}
// +kubebuilder:printcolumn:name="Layer",type="string",JSONPath=".spec.layer",description="Place in the order of layers"
// +kubebuilder:printcolumn:name="Priority",type="integer",JSONPath=".spec.priority",description="Place within the layer"
// +kubebuilder:printcolumn:name="Selected",type="integer",JSONPath=".status.machines.selected",description="Machines that the patch applies to"
// +kubebuilder:printcolumn:name="Applied",type="integer",JSONPath=".status.machines.applied",description="Machines that run a config with it"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status",description="Whether the patch is valid"
// +kubebuilder:printcolumn:name="Message",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Ready')].message",description="What is wrong"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type TalosConfigPatch struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the patch.
	// +required
	Spec TalosConfigPatchSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status TalosConfigPatchStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions of the TalosConfigPatch.
func (p *TalosConfigPatch) GetConditions() []metav1.Condition { return p.Status.Conditions }

// SetConditions sets the conditions of the TalosConfigPatch.
func (p *TalosConfigPatch) SetConditions(conditions []metav1.Condition) {
	p.Status.Conditions = conditions
}

// TalosConfigPatchList is a list of TalosConfigPatches.
//
// +kubebuilder:object:root=true
type TalosConfigPatchList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TalosConfigPatch `json:"items"`
}

func init() {
	objectTypes = append(objectTypes, &TalosConfigPatch{}, &TalosConfigPatchList{})
}
