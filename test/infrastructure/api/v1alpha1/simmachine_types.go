// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// MachineFinalizer keeps a SimMachine until its machine is off and wiped.
const MachineFinalizer = "simmachine.infrastructure.ichor.maesh.dev"

// Platform is what Talos takes a machine for.
// +kubebuilder:validation:Enum=Cloud;Metal
type Platform string

const (
	// PlatformCloud is a machine whose platform names it and hands its config over as user data.
	PlatformCloud Platform = "Cloud"

	// PlatformMetal is a machine whose config must say where Talos is installed.
	PlatformMetal Platform = "Metal"
)

// FirstBoot is how a machine gets its config.
// +kubebuilder:validation:Enum=UserData;Maintenance
type FirstBoot string

const (
	// FirstBootUserData hands the config over as the platform's user data, before the machine boots.
	FirstBootUserData FirstBoot = "UserData"

	// FirstBootMaintenance boots the machine without a config; the provider then applies it through the Talos API of
	// maintenance mode, once.
	FirstBootMaintenance FirstBoot = "Maintenance"
)

// Disk is what is on a machine's disk when it is made.
// +kubebuilder:validation:Enum=Image;Blank
type Disk string

const (
	// DiskImage is a disk with Talos on it.
	DiskImage Disk = "Image"

	// DiskBlank is an empty disk. The machine is booted from a medium, installs what its config says, and reboots.
	DiskBlank Disk = "Blank"
)

// Power is whether a machine gets power.
// +kubebuilder:validation:Enum=On;Off
type Power string

const (
	// PowerOn is a machine that has power.
	PowerOn Power = "On"

	// PowerOff is a machine whose power is cut.
	PowerOff Power = "Off"
)

// SimMachineSpec is a simulated machine. What is not said otherwise counts when the machine is made, and changes nothing later.
type SimMachineSpec struct {
	// providerID is sim:///NAMESPACE/NAME/ID, set by the provider. Each machine has another, also one of the same name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ProviderID string `json:"providerID,omitempty"`

	// image is the Talos that the machine starts with, as an installer image: its tag is the version, v1.12.0 to v1.14.x, and
	// a schematic's ID in it has that schematic's extensions. Unset: ghcr.io/siderolabs/installer:v1.14.1.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`

	// platform is what Talos takes the machine for. Unset: Cloud.
	// +optional
	Platform Platform `json:"platform,omitempty"`

	// disk is what is on the disk. Unset: Image.
	// +optional
	Disk Disk `json:"disk,omitempty"`

	// firstBoot is how the machine gets its config. Unset: UserData.
	// +optional
	FirstBoot FirstBoot `json:"firstBoot,omitempty"`

	// power is whether the machine gets power. It may be changed at any time: Off cuts it, On boots the machine again from its
	// disk. Unset: On when the machine is made, and left alone after that, so that a machine which was shut down stays off.
	// +optional
	Power Power `json:"power,omitempty"`

	// faults are what is wrong with the machine. They may be changed at any time, and hold until they are.
	// +optional
	Faults Faults `json:"faults,omitempty,omitzero"`
}

// Faults are what is wrong with a machine, beginning before it boots.
// +kubebuilder:validation:MinProperties=1
type Faults struct {
	// unreachable has the Talos API refuse connections and cut those that exist.
	// +optional
	Unreachable bool `json:"unreachable,omitempty"`

	// blackHole has the Talos API accept connections and never answer.
	// +optional
	BlackHole bool `json:"blackHole,omitempty"`

	// delayMilliseconds come before each call of the Talos API.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=600000
	DelayMilliseconds int32 `json:"delayMilliseconds,omitempty"`

	// wrongCA has the node show a certificate of an authority that nobody knows.
	// +optional
	WrongCA bool `json:"wrongCA,omitempty"`

	// clockSkewSeconds are added to the node's time.
	// +optional
	ClockSkewSeconds int32 `json:"clockSkewSeconds,omitempty"`

	// hostname is what the node calls itself, whatever its config says.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Hostname string `json:"hostname,omitempty"`

	// noAddress keeps the platform from reporting the machine's address, as one does that needs a guest agent for it.
	// +optional
	NoAddress bool `json:"noAddress,omitempty"`

	// virtualAddress is reported beside the machine's own, first: one that several machines may have, and at which any of them answers,
	// or none.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	VirtualAddress string `json:"virtualAddress,omitempty"`

	// timeUnsynced keeps the node from knowing the time.
	// +optional
	TimeUnsynced bool `json:"timeUnsynced,omitempty"`

	// leaveFails is the message with which leaving the etcd cluster fails.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	LeaveFails string `json:"leaveFails,omitempty"`

	// etcdNeverStarts leaves the node's etcd member added and not started.
	// +optional
	EtcdNeverStarts bool `json:"etcdNeverStarts,omitempty"`

	// etcdNeverCatchesUp leaves the node's etcd member a learner.
	// +optional
	EtcdNeverCatchesUp bool `json:"etcdNeverCatchesUp,omitempty"`

	// pullFails is the message with which pulling an image fails.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	PullFails string `json:"pullFails,omitempty"`

	// installExitCode is what the installer ends with.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=255
	InstallExitCode int32 `json:"installExitCode,omitempty"`

	// bootFails is the end of the reference of an image that does not boot, for example :v1.14.1.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	BootFails string `json:"bootFails,omitempty"`

	// neverReady is the end of the reference of an image on which the node is never ready.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	NeverReady string `json:"neverReady,omitempty"`

	// serviceWaits is the extension whose service waits for ever for what the machine does not have, for example qemu-guest-agent.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ServiceWaits string `json:"serviceWaits,omitempty"`

	// nodeNotReady has the kubelet find its Node not ready, as without a network plugin.
	// +optional
	NodeNotReady bool `json:"nodeNotReady,omitempty"`
}

// SimMachineStatus is the observed state of a SimMachine.
// +kubebuilder:validation:MinProperties=1
type SimMachineStatus struct {
	// conditions of the SimMachine: Ready, Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization provides observations of the initial provisioning, as the Cluster API contract wants them.
	// +optional
	Initialization InitializationStatus `json:"initialization,omitempty,omitzero"`

	// addresses of the machine: one InternalIP, where the Talos API answers on port 50000, and a Hostname; and what spec.faults makes of
	// them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Addresses []clusterv1.MachineAddress `json:"addresses,omitempty"`

	// failureDomain is the Machine's.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	FailureDomain string `json:"failureDomain,omitempty"`
}

// SimMachine is a simulated machine that runs Talos.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=simmachines,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta2=v1alpha1","clusterctl.cluster.x-k8s.io/move="}
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="Cluster"
// +kubebuilder:printcolumn:name="Address",type="string",JSONPath=".status.addresses[?(@.type=='InternalIP')].address",description="Address of the machine"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status",description="Whether the machine runs"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].reason",description="Why"
// +kubebuilder:printcolumn:name="Message",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Ready')].message",description="What is missing"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type SimMachine struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired machine.
	// +optional
	Spec SimMachineSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status SimMachineStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions of the SimMachine.
func (m *SimMachine) GetConditions() []metav1.Condition { return m.Status.Conditions }

// SetConditions sets the conditions of the SimMachine.
func (m *SimMachine) SetConditions(conditions []metav1.Condition) { m.Status.Conditions = conditions }

// SimMachineList is a list of SimMachines.
//
// +kubebuilder:object:root=true
type SimMachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SimMachine `json:"items"`
}

// SimMachineTemplateSpec is what SimMachines are made from. It cannot be changed.
type SimMachineTemplateSpec struct {
	// template of the SimMachine.
	// +required
	Template SimMachineTemplateResource `json:"template,omitempty,omitzero"`
}

// SimMachineTemplateResource is the metadata and spec of a SimMachine made from a template.
type SimMachineTemplateResource struct {
	// metadata is the labels and annotations of the SimMachine.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec of the SimMachine.
	// +optional
	Spec SimMachineSpec `json:"spec"`
}

// SimMachineTemplate is the template that MachineDeployments and control planes make SimMachines from.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=simmachinetemplates,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta2=v1alpha1","clusterctl.cluster.x-k8s.io/move="}
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type SimMachineTemplate struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what SimMachines are made from.
	// +required
	Spec SimMachineTemplateSpec `json:"spec,omitempty,omitzero"`
}

// SimMachineTemplateList is a list of SimMachineTemplates.
//
// +kubebuilder:object:root=true
type SimMachineTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SimMachineTemplate `json:"items"`
}
