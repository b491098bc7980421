// SPDX-License-Identifier: Apache-2.0

package v1beta2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DataEngine carries a volume's data.
// +kubebuilder:validation:Enum=v1;v2
type DataEngine string

// Data engines.
const (
	DataEngineV1 DataEngine = "v1"
	DataEngineV2 DataEngine = "v2"
)

// VolumeState is the state of a volume.
type VolumeState string

// States of volumes.
const (
	VolumeCreating  VolumeState = "creating"
	VolumeAttached  VolumeState = "attached"
	VolumeDetached  VolumeState = "detached"
	VolumeAttaching VolumeState = "attaching"
	VolumeDetaching VolumeState = "detaching"
	VolumeDeleting  VolumeState = "deleting"
)

// Robustness says how a volume is.
type Robustness string

// Robustness of volumes. A detached volume's is unknown, however many copies it has.
const (
	RobustnessHealthy  Robustness = "healthy"
	RobustnessDegraded Robustness = "degraded"
	RobustnessFaulted  Robustness = "faulted"
	RobustnessUnknown  Robustness = "unknown"
)

// Values of settings that a volume may override.
const (
	Ignored  = "ignored"
	Enabled  = "enabled"
	Disabled = "disabled"

	DataLocalityDisabled    = "disabled"
	DataLocalityBestEffort  = "best-effort"
	DataLocalityStrictLocal = "strict-local"

	AutoBalanceDisabled    = "disabled"
	AutoBalanceLeastEffort = "least-effort"
	AutoBalanceBestEffort  = "best-effort"

	AccessReadWriteOnce    = "rwo"
	AccessReadWriteOncePod = "rwop"
	AccessReadWriteMany    = "rwx"

	LayoutReplicated = "replicated"
	LayoutSharded    = "sharded"
)

// Conditions of volumes, and their reasons.
const (
	VolumeConditionScheduled         = "Scheduled"
	VolumeConditionRestore           = "Restore"
	VolumeConditionOfflineRebuilding = "OfflineRebuilding"

	ReasonReplicaSchedulingFailure      = "ReplicaSchedulingFailure"
	ReasonLocalReplicaSchedulingFailure = "LocalReplicaSchedulingFailure"
)

// DataLayout says how a volume's data lie on the nodes (1.12.1, experimental).
type DataLayout struct {
	// +kubebuilder:validation:Enum=replicated;sharded
	// +optional
	Type string `json:"type,omitempty"`
	// +optional
	DataChunks int `json:"dataChunks,omitempty"`
	// +optional
	ParityChunks int `json:"parityChunks,omitempty"`
}

// VolumeSpec is what a volume should be.
type VolumeSpec struct {
	// Size in bytes.
	// +kubebuilder:validation:Type=string
	// +optional
	Size int64 `json:"size,string,omitempty"`
	// +kubebuilder:validation:Enum=blockdev;iscsi;nvmf;ublk;""
	// +optional
	Frontend string `json:"frontend,omitempty"`
	// +optional
	FromBackup string `json:"fromBackup,omitempty"`
	// +optional
	DataSource string `json:"dataSource,omitempty"`
	// +kubebuilder:validation:Enum="";full-copy;linked-clone
	// +optional
	CloneMode string `json:"cloneMode,omitempty"`
	// +kubebuilder:validation:Enum=disabled;best-effort;strict-local
	// +optional
	DataLocality string `json:"dataLocality,omitempty"`
	// StaleReplicaTimeout in minutes.
	// +optional
	StaleReplicaTimeout int `json:"staleReplicaTimeout,omitempty"`
	// NodeID is where the volume shall be attached. The attachment controller writes it.
	// +optional
	NodeID string `json:"nodeID,omitempty"`
	// +optional
	MigrationNodeID string `json:"migrationNodeID,omitempty"`
	// EngineNodeID is new in 1.12.
	// +optional
	EngineNodeID string `json:"engineNodeID,omitempty"`
	// +optional
	Image string `json:"image,omitempty"`
	// +optional
	BackingImage string `json:"backingImage,omitempty"`
	// Standby really is written with a capital letter.
	// +optional
	Standby bool `json:"Standby,omitempty"` //nolint:tagliatelle // the name of Longhorn's field
	// +optional
	DiskSelector []string `json:"diskSelector,omitempty"`
	// +optional
	NodeSelector []string `json:"nodeSelector,omitempty"`
	// +optional
	DisableFrontend bool `json:"disableFrontend,omitempty"`
	// +kubebuilder:validation:Enum=rwo;rwop;rwx
	// +optional
	AccessMode string `json:"accessMode,omitempty"`
	// +optional
	Migratable bool `json:"migratable,omitempty"`
	// +optional
	Encrypted bool `json:"encrypted,omitempty"`
	// +optional
	NumberOfReplicas int `json:"numberOfReplicas,omitempty"`
	// +kubebuilder:validation:Enum=ignored;disabled;least-effort;best-effort
	// +optional
	ReplicaAutoBalance string `json:"replicaAutoBalance,omitempty"`
	// +kubebuilder:validation:Enum=ignored;enabled;disabled
	// +optional
	ReplicaSoftAntiAffinity string `json:"replicaSoftAntiAffinity,omitempty"`
	// +kubebuilder:validation:Enum=ignored;enabled;disabled
	// +optional
	ReplicaZoneSoftAntiAffinity string `json:"replicaZoneSoftAntiAffinity,omitempty"`
	// +kubebuilder:validation:Enum=ignored;enabled;disabled
	// +optional
	ReplicaDiskSoftAntiAffinity string `json:"replicaDiskSoftAntiAffinity,omitempty"`
	// +kubebuilder:validation:Enum=ignored;enabled;disabled
	// +optional
	OfflineRebuilding string `json:"offlineRebuilding,omitempty"`
	// +optional
	DataEngine DataEngine `json:"dataEngine,omitempty"`
	// +optional
	DataLayout *DataLayout `json:"dataLayout,omitempty"`
}

// WorkloadStatus is a pod that uses a volume.
type WorkloadStatus struct {
	// +optional
	PodName string `json:"podName,omitempty"`
	// +optional
	PodStatus string `json:"podStatus,omitempty"`
	// +optional
	WorkloadName string `json:"workloadName,omitempty"`
	// +optional
	WorkloadType string `json:"workloadType,omitempty"`
}

// KubernetesStatus is what Kubernetes knows of a volume.
type KubernetesStatus struct {
	// +optional
	PVName string `json:"pvName,omitempty"`
	// +optional
	PVStatus string `json:"pvStatus,omitempty"`
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// +optional
	PVCName string `json:"pvcName,omitempty"`
	// +optional
	LastPVCRefAt string `json:"lastPVCRefAt,omitempty"`
	// +optional
	WorkloadsStatus []WorkloadStatus `json:"workloadsStatus,omitempty"`
	// +optional
	LastPodRefAt string `json:"lastPodRefAt,omitempty"`
}

// VolumeCloneStatus is the progress of a clone.
type VolumeCloneStatus struct {
	// +optional
	SourceVolume string `json:"sourceVolume,omitempty"`
	// +optional
	Snapshot string `json:"snapshot,omitempty"`
	// +optional
	State string `json:"state,omitempty"`
}

// VolumeStatus is what a volume is.
type VolumeStatus struct {
	// +optional
	OwnerID string `json:"ownerID,omitempty"`
	// +optional
	State VolumeState `json:"state,omitempty"`
	// +optional
	Robustness Robustness `json:"robustness,omitempty"`
	// +optional
	CurrentNodeID string `json:"currentNodeID,omitempty"`
	// +optional
	CurrentMigrationNodeID string `json:"currentMigrationNodeID,omitempty"`
	// CurrentEngineNodeID is new in 1.12.
	// +optional
	CurrentEngineNodeID string `json:"currentEngineNodeID,omitempty"`
	// +optional
	CurrentImage string `json:"currentImage,omitempty"`
	// +optional
	KubernetesStatus KubernetesStatus `json:"kubernetesStatus,omitempty"`
	// +nullable
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
	// +optional
	FrontendDisabled bool `json:"frontendDisabled,omitempty"`
	// +optional
	RestoreRequired bool `json:"restoreRequired,omitempty"`
	// +optional
	CloneStatus VolumeCloneStatus `json:"cloneStatus,omitempty"`
	// +optional
	RemountRequestedAt string `json:"remountRequestedAt,omitempty"`
	// +optional
	ExpansionRequired bool `json:"expansionRequired,omitempty"`
	// +optional
	IsStandby bool `json:"isStandby,omitempty"`
	// ActualSize is how many bytes of the volume are in use.
	// +optional
	ActualSize int64 `json:"actualSize,omitempty"`
	// +optional
	LastDegradedAt string `json:"lastDegradedAt,omitempty"`
	// +optional
	ShareEndpoint string `json:"shareEndpoint,omitempty"`
	// +optional
	ShareState string `json:"shareState,omitempty"`
}

// Volume is a block device with copies on several nodes.
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=lhv
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Data Engine",type=string,JSONPath=`.spec.dataEngine`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Robustness",type=string,JSONPath=`.status.robustness`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.status.currentNodeID`
type Volume struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   VolumeSpec   `json:"spec,omitempty"`
	Status VolumeStatus `json:"status,omitempty"`
}

// VolumeList is a list of Volumes.
// +kubebuilder:object:root=true
type VolumeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Volume `json:"items"`
}
