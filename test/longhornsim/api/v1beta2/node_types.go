// SPDX-License-Identifier: Apache-2.0

package v1beta2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Types of disks.
const (
	DiskFilesystem = "filesystem"
	DiskBlock      = "block"
)

// Conditions of nodes and of their disks, and the reasons.
const (
	ConditionReady       = "Ready"
	ConditionSchedulable = "Schedulable"

	ReasonManagerPodDown         = "ManagerPodDown"
	ReasonManagerPodMissing      = "ManagerPodMissing"
	ReasonKubernetesNodeGone     = "KubernetesNodeGone"
	ReasonKubernetesNodeNotReady = "KubernetesNodeNotReady"
	ReasonKubernetesNodePressure = "KubernetesNodePressure"
	ReasonKubernetesNodeCordoned = "KubernetesNodeCordoned"

	ReasonDiskPressure          = "DiskPressure"
	ReasonDiskFilesystemChanged = "DiskFilesystemChanged"
	ReasonNoDiskInfo            = "NoDiskInfo"
	ReasonDiskNotReady          = "DiskNotReady"
)

// DiskSpec is what a disk should be used for.
type DiskSpec struct {
	// +kubebuilder:validation:Enum=filesystem;block
	// +optional
	Type string `json:"diskType,omitempty"`
	// +optional
	Path string `json:"path,omitempty"`
	// +optional
	AllowScheduling bool `json:"allowScheduling"`
	// +optional
	EvictionRequested bool `json:"evictionRequested"`
	// StorageReserved in bytes.
	// +optional
	StorageReserved int64 `json:"storageReserved"`
	// +optional
	Tags []string `json:"tags,omitempty"`
	// +kubebuilder:validation:Enum="";auto;aio;nvme
	// +optional
	DiskDriver string `json:"diskDriver,omitempty"`
}

// DiskStatus is what a disk is.
type DiskStatus struct {
	// +nullable
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
	// +optional
	StorageAvailable int64 `json:"storageAvailable"`
	// +optional
	StorageScheduled int64 `json:"storageScheduled"`
	// +optional
	StorageMaximum int64 `json:"storageMaximum"`
	// ScheduledReplica has the size of each copy on the disk.
	// +nullable
	// +optional
	ScheduledReplica map[string]int64 `json:"scheduledReplica,omitempty"`
	// +nullable
	// +optional
	ScheduledBackingImage map[string]int64 `json:"scheduledBackingImage,omitempty"`
	// +optional
	DiskUUID string `json:"diskUUID,omitempty"`
	// +optional
	DiskName string `json:"diskName,omitempty"`
	// +optional
	DiskPath string `json:"diskPath,omitempty"`
	// +optional
	Type string `json:"diskType,omitempty"`
	// +optional
	DiskDriver string `json:"diskDriver,omitempty"`
	// +optional
	FSType string `json:"filesystemType,omitempty"`
	// +optional
	InstanceManagerName string `json:"instanceManagerName,omitempty"`
}

// NodeSpec is what a node should be used for.
type NodeSpec struct {
	// +optional
	Name string `json:"name,omitempty"`
	// +optional
	Disks map[string]DiskSpec `json:"disks,omitempty"`
	// AllowScheduling lets new copies come.
	// +optional
	AllowScheduling bool `json:"allowScheduling"`
	// EvictionRequested lets the copies of all disks go.
	// +optional
	EvictionRequested bool `json:"evictionRequested"`
	// +optional
	Tags []string `json:"tags,omitempty"`
	// +optional
	InstanceManagerCPURequest int `json:"instanceManagerCPURequest,omitempty"`
}

// NodeStatus is what a node is.
type NodeStatus struct {
	// +nullable
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
	// +nullable
	// +optional
	DiskStatus map[string]DiskStatus `json:"diskStatus,omitempty"`
	// +optional
	Region string `json:"region,omitempty"`
	// +optional
	Zone string `json:"zone,omitempty"`
	// AutoEvicting is whether the drain policy, and no user, has copies evicted.
	// +optional
	AutoEvicting bool `json:"autoEvicting,omitempty"`
}

// Node is a Kubernetes Node, of the same name, on which Longhorn runs.
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=lhn
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="AllowScheduling",type=boolean,JSONPath=`.spec.allowScheduling`
// +kubebuilder:printcolumn:name="Schedulable",type=string,JSONPath=`.status.conditions[?(@.type=='Schedulable')].status`
type Node struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   NodeSpec   `json:"spec,omitempty"`
	Status NodeStatus `json:"status,omitempty"`
}

// NodeList is a list of Nodes.
// +kubebuilder:object:root=true
type NodeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Node `json:"items"`
}

// SettingStatus is whether a setting is in effect.
type SettingStatus struct {
	// +optional
	Applied bool `json:"applied,omitempty"`
}

// Setting is one of Longhorn's settings, by its name.
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=lhs
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Value",type=string,JSONPath=`.value`
// +kubebuilder:printcolumn:name="Applied",type=boolean,JSONPath=`.status.applied`
type Setting struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Value is a word or a number, or JSON with a value for each data engine.
	Value string `json:"value"`
	// +optional
	Status SettingStatus `json:"status,omitempty"`
}

// SettingList is a list of Settings.
// +kubebuilder:object:root=true
type SettingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Setting `json:"items"`
}
