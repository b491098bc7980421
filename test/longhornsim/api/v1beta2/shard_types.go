// SPDX-License-Identifier: Apache-2.0

package v1beta2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// States of shards and of their groups.
const (
	ShardNormal    = "normal"
	ShardFailed    = "failed"
	ShardReplacing = "replacing"

	ShardGroupHealthy    = "healthy"
	ShardGroupDegraded   = "degraded"
	ShardGroupOffline    = "offline"
	ShardGroupRebuilding = "rebuilding"
	ShardGroupGrowing    = "growing"
)

// ShardSpec is one piece of a sharded volume (1.12.1, experimental).
type ShardSpec struct {
	// +optional
	NodeID string `json:"nodeID,omitempty"`
	// +optional
	ShardGroupName string `json:"shardGroupName,omitempty"`
	// +optional
	SlotIndex int `json:"slotIndex,omitempty"`
	// +optional
	DiskUUID string `json:"diskUUID,omitempty"`
	// +optional
	EvictionRequested bool `json:"evictionRequested,omitempty"`
}

// ShardStatus is how a piece does.
type ShardStatus struct {
	// +optional
	State string `json:"state,omitempty"`
}

// Shard is a piece of a sharded volume.
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=lhsd
// +kubebuilder:subresource:status
type Shard struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ShardSpec   `json:"spec,omitempty"`
	Status ShardStatus `json:"status,omitempty"`
}

// ShardList is a list of Shards.
// +kubebuilder:object:root=true
type ShardList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Shard `json:"items"`
}

// ShardGroupSpec is the pieces of a volume together.
type ShardGroupSpec struct {
	// +optional
	VolumeName string `json:"volumeName,omitempty"`
	// +optional
	DataChunks int `json:"dataChunks,omitempty"`
	// +optional
	ParityChunks int `json:"parityChunks,omitempty"`
}

// ShardGroupStatus is how they do.
type ShardGroupStatus struct {
	// +optional
	State string `json:"state,omitempty"`
	// +optional
	FailedCount int `json:"failedCount,omitempty"`
	// +optional
	EvictingSlots []int `json:"evictingSlots,omitempty"`
	// +optional
	RebuildInProgress bool `json:"rebuildInProgress,omitempty"`
}

// ShardGroup is the pieces of a sharded volume.
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=lhsg
// +kubebuilder:subresource:status
type ShardGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ShardGroupSpec   `json:"spec,omitempty"`
	Status ShardGroupStatus `json:"status,omitempty"`
}

// ShardGroupList is a list of ShardGroups.
// +kubebuilder:object:root=true
type ShardGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ShardGroup `json:"items"`
}
