// SPDX-License-Identifier: Apache-2.0

package v1beta2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// InstanceState is the state of an engine's or a replica's process.
// +kubebuilder:validation:Enum=running;stopped;error;starting;stopping;unknown;""
type InstanceState string

// States of instances.
const (
	InstanceRunning  InstanceState = "running"
	InstanceStopped  InstanceState = "stopped"
	InstanceError    InstanceState = "error"
	InstanceStarting InstanceState = "starting"
	InstanceStopping InstanceState = "stopping"
	InstanceUnknown  InstanceState = "unknown"
)

// ReplicaMode is what an engine does with a replica.
type ReplicaMode string

// Modes: read and write, write only (it is rebuilt), failed.
const (
	ModeRW  ReplicaMode = "RW"
	ModeWO  ReplicaMode = "WO"
	ModeERR ReplicaMode = "ERR"
)

// InstanceSpec is common to engines and replicas.
type InstanceSpec struct {
	// +optional
	VolumeName string `json:"volumeName,omitempty"`
	// +kubebuilder:validation:Type=string
	// +optional
	VolumeSize int64 `json:"volumeSize,string,omitempty"`
	// +optional
	NodeID string `json:"nodeID,omitempty"`
	// +optional
	Image string `json:"image,omitempty"`
	// +optional
	DesireState InstanceState `json:"desireState,omitempty"`
	// +optional
	SalvageRequested bool `json:"salvageRequested,omitempty"`
	// +optional
	DataEngine DataEngine `json:"dataEngine,omitempty"`
}

// InstanceStatus is common to engines and replicas.
type InstanceStatus struct {
	// +optional
	OwnerID string `json:"ownerID,omitempty"`
	// +optional
	InstanceManagerName string `json:"instanceManagerName,omitempty"`
	// +optional
	CurrentState InstanceState `json:"currentState,omitempty"`
	// +optional
	CurrentImage string `json:"currentImage,omitempty"`
	// +optional
	IP string `json:"ip,omitempty"`
	// +optional
	StorageIP string `json:"storageIP,omitempty"`
	// +optional
	Port int `json:"port,omitempty"`
	// +optional
	Started bool `json:"started,omitempty"`
	// +nullable
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
}

// ReplicaSpec is what a copy should be.
type ReplicaSpec struct {
	InstanceSpec `json:",inline"`

	// +optional
	EngineName string `json:"engineName,omitempty"`
	// HealthyAt is when the copy became complete; empty while it is made.
	// +optional
	HealthyAt string `json:"healthyAt,omitempty"`
	// +optional
	LastHealthyAt string `json:"lastHealthyAt,omitempty"`
	// FailedAt is when the copy failed; empty if it has not.
	// +optional
	FailedAt string `json:"failedAt,omitempty"`
	// +optional
	LastFailedAt string `json:"lastFailedAt,omitempty"`
	// DiskID is the UUID of the disk.
	// +optional
	DiskID string `json:"diskID,omitempty"`
	// +optional
	DiskPath string `json:"diskPath,omitempty"`
	// +optional
	DataDirectoryName string `json:"dataDirectoryName,omitempty"`
	// +optional
	BackingImage string `json:"backingImage,omitempty"`
	// +optional
	Active bool `json:"active,omitempty"`
	// +optional
	HardNodeAffinity string `json:"hardNodeAffinity,omitempty"`
	// +optional
	RebuildRetryCount int `json:"rebuildRetryCount,omitempty"`
	// +optional
	EvictionRequested bool `json:"evictionRequested,omitempty"`
	// LinkedCloneSrcReplicaName is new in 1.12.1.
	// +optional
	LinkedCloneSrcReplicaName string `json:"linkedCloneSrcReplicaName,omitempty"`
}

// ReplicaStatus is what a copy is.
type ReplicaStatus struct {
	InstanceStatus `json:",inline"`
}

// Replica is a copy of a volume.
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=lhr
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.currentState`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.spec.nodeID`
// +kubebuilder:printcolumn:name="Disk",type=string,JSONPath=`.spec.diskID`
type Replica struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ReplicaSpec   `json:"spec,omitempty"`
	Status ReplicaStatus `json:"status,omitempty"`
}

// ReplicaList is a list of Replicas.
// +kubebuilder:object:root=true
type ReplicaList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Replica `json:"items"`
}

// EngineSpec is what an engine should be.
type EngineSpec struct {
	InstanceSpec `json:",inline"`

	// +optional
	Frontend string `json:"frontend,omitempty"`
	// +optional
	ReplicaAddressMap map[string]string `json:"replicaAddressMap,omitempty"`
	// +optional
	DisableFrontend bool `json:"disableFrontend,omitempty"`
	// +optional
	Active bool `json:"active,omitempty"`
}

// RebuildStatus is the progress of one copy that is being made.
type RebuildStatus struct {
	// +optional
	Error string `json:"error,omitempty"`
	// +optional
	IsRebuilding bool `json:"isRebuilding,omitempty"`
	// Progress in percent.
	// +optional
	Progress int `json:"progress,omitempty"`
	// +optional
	State string `json:"state,omitempty"`
	// +optional
	FromReplicaAddress string `json:"fromReplicaAddress,omitempty"`
}

// EngineStatus is what an engine is.
type EngineStatus struct {
	InstanceStatus `json:",inline"`

	// +kubebuilder:validation:Type=string
	// +optional
	CurrentSize int64 `json:"currentSize,string,omitempty"`
	// +nullable
	// +optional
	CurrentReplicaAddressMap map[string]string `json:"currentReplicaAddressMap,omitempty"`
	// +nullable
	// +optional
	ReplicaModeMap map[string]ReplicaMode `json:"replicaModeMap,omitempty"`
	// +optional
	Endpoint string `json:"endpoint,omitempty"`
	// RebuildStatus by the address of the copy.
	// +nullable
	// +optional
	RebuildStatus map[string]RebuildStatus `json:"rebuildStatus,omitempty"`
}

// Engine is the process through which a node reads and writes a volume.
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=lhe
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.currentState`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.spec.nodeID`
type Engine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   EngineSpec   `json:"spec,omitempty"`
	Status EngineStatus `json:"status,omitempty"`
}

// EngineList is a list of Engines.
// +kubebuilder:object:root=true
type EngineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Engine `json:"items"`
}
