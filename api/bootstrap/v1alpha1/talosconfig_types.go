// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Platform says how a machine config is validated: what Talos demands of it where it runs.
// +kubebuilder:validation:Enum=Metal;Cloud;Container
type Platform string

const (
	// PlatformMetal is a machine that Talos is installed on: an install disk is demanded by contracts up to 1.13.
	PlatformMetal Platform = "Metal"

	// PlatformCloud is a machine that boots an image with Talos on it: nothing is installed.
	PlatformCloud Platform = "Cloud"

	// PlatformContainer is Talos in a container.
	PlatformContainer Platform = "Container"
)

// HostnameSource says where a machine's hostname comes from.
// +kubebuilder:validation:Enum=MachineName;InfrastructureMachineName;Automatic
type HostnameSource string

const (
	// HostnameSourceMachineName is the name of the CAPI Machine.
	HostnameSourceMachineName HostnameSource = "MachineName"

	// HostnameSourceInfrastructureMachineName is the name of the infrastructure machine object.
	HostnameSourceInfrastructureMachineName HostnameSource = "InfrastructureMachineName"

	// HostnameSourceAutomatic lets Talos choose: DHCP, platform metadata, or a stable generated name.
	HostnameSourceAutomatic HostnameSource = "Automatic"
)

// TalosConfigSpec is the desired machine config of one Machine or MachinePool. The machine type is not
// here: it comes from the Machine's control-plane label.
type TalosConfigSpec struct {
	// platform says how the config is validated. Unset: Metal when install is set, else Cloud.
	// +optional
	Platform Platform `json:"platform,omitempty"`

	// install says where and how Talos is installed. Unset: the machine boots an image that has Talos on it.
	// +optional
	Install InstallSpec `json:"install,omitempty,omitzero"`

	// hostname says where the machine's hostname comes from.
	// +optional
	Hostname HostnameSpec `json:"hostname,omitempty,omitzero"`

	// configContract is the config format for this machine, for example "v1.13": the minor of the Talos image
	// that it boots. Unset: the cluster's pinned contract. It is a format, never an upgrade. A Machine keeps that of its first
	// render; of a MachinePool, a change is for the instances that it gets from then on.
	// +optional
	// +kubebuilder:validation:Pattern=`^v1\.[0-9]{1,3}$`
	// +kubebuilder:validation:MinLength=4
	// +kubebuilder:validation:MaxLength=6
	ConfigContract string `json:"configContract,omitempty"`

	// patchRefs are TalosConfigPatch objects of the same namespace applied, in this order, in the Pool layer after
	// the selected ones. A patch that is both selected and referenced applies once, here.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	PatchRefs []PatchReference `json:"patchRefs,omitempty"`
}

// PatchReference names a TalosConfigPatch in the namespace of the object that refers to it.
type PatchReference struct {
	// name of the TalosConfigPatch.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// InstallSpec says where and how Talos is installed on a machine.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="has(self.disk) != has(self.diskSelector)",message="exactly one of disk and diskSelector must be set"
type InstallSpec struct {
	// disk is the device path to install to, for example "/dev/nvme0n1".
	// +optional
	// +kubebuilder:validation:Pattern=`^/dev/[A-Za-z0-9._/:+-]+$`
	// +kubebuilder:validation:MinLength=6
	// +kubebuilder:validation:MaxLength=256
	Disk string `json:"disk,omitempty"`

	// diskSelector is a CEL expression over Talos' disk object that must match one disk, for example
	// `disk.transport == "nvme" && disk.size > 100u * GB`. Contract 1.14 and later.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	DiskSelector string `json:"diskSelector,omitempty"`

	// wipe says whether the disk is wiped before the installation. Unset: false. A bool as in Talos.
	// +optional
	Wipe *bool `json:"wipe,omitempty"`

	// image is the installer image. It overrides the one made from the cluster's Talos version and schematic.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`

	// extraKernelArgs are appended to the kernel command line of the installed system. Contracts 1.12 and 1.13 only:
	// from 1.14 on they belong in the Image Factory schematic.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	ExtraKernelArgs []string `json:"extraKernelArgs,omitempty"`
}

// HostnameSpec says where a hostname comes from.
// +kubebuilder:validation:MinProperties=1
type HostnameSpec struct {
	// source of the hostname. Automatic, the default, lets Talos choose. A patch that sets a hostname wins.
	// +required
	Source HostnameSource `json:"source,omitempty"`
}

// TalosConfigStatus is the observed state of a TalosConfig.
// +kubebuilder:validation:MinProperties=1
type TalosConfigStatus struct {
	// conditions of the TalosConfig: Ready, DataSecretAvailable, SecretsBundleAvailable, ConfigRendered, Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization provides observations of the bootstrap data's creation, as the Cluster API contract wants them.
	// +optional
	Initialization TalosConfigInitializationStatus `json:"initialization,omitempty,omitzero"`

	// dataSecretName is the name of the Secret that holds the machine config under the key "value".
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	DataSecretName string `json:"dataSecretName,omitempty"`

	// configContract is the config format that was pinned at the first render; of a MachinePool, the one that its TalosConfig
	// has asked for since.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=6
	ConfigContract string `json:"configContract,omitempty"`

	// renderedHash is the SHA-256 of the rendered config, in hex.
	// +optional
	// +kubebuilder:validation:MinLength=64
	// +kubebuilder:validation:MaxLength=64
	RenderedHash string `json:"renderedHash,omitempty"`

	// inputs are the objects that went into the rendered config.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	Inputs []RenderedInput `json:"inputs,omitempty"`

	// observedGeneration is the generation that the status was computed from.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// TalosConfigInitializationStatus provides observations of the initialization of a TalosConfig.
// +kubebuilder:validation:MinProperties=1
type TalosConfigInitializationStatus struct {
	// dataSecretCreated is true when the Secret with the machine config exists.
	// +optional
	DataSecretCreated *bool `json:"dataSecretCreated,omitempty"`
}

// RenderedInput is one object that went into a rendered config.
type RenderedInput struct {
	// kind of the object, for example TalosConfigPatch or Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`

	// name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// generation of the object. Zero for kinds without one, such as Secret.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Generation *int64 `json:"generation,omitempty"`

	// layer that the object contributed to: Base, System, Cluster, Role, Pool or Machine.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16
	Layer string `json:"layer,omitempty"`
}

// TalosConfig is the machine config of one Machine or MachinePool.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=talosconfigs,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta2=v1alpha1","clusterctl.cluster.x-k8s.io/move="}
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="Cluster"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status",description="Whether the bootstrap data is available"
// +kubebuilder:printcolumn:name="Contract",type="string",JSONPath=".status.configContract",description="Config format of the rendered config"
// +kubebuilder:printcolumn:name="Data secret",type="string",JSONPath=".status.dataSecretName",description="Secret with the machine config"
// +kubebuilder:printcolumn:name="Message",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Ready')].message",description="What is missing"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type TalosConfig struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired machine config.
	// +optional
	Spec TalosConfigSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status TalosConfigStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions of the TalosConfig.
func (c *TalosConfig) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions sets the conditions of the TalosConfig.
func (c *TalosConfig) SetConditions(conditions []metav1.Condition) { c.Status.Conditions = conditions }

// TalosConfigList is a list of TalosConfigs.
//
// +kubebuilder:object:root=true
type TalosConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TalosConfig `json:"items"`
}

func init() {
	objectTypes = append(objectTypes, &TalosConfig{}, &TalosConfigList{})
}
