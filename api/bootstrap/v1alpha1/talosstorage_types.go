// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// StoragePreset is a storage system that nodes are prepared for.
// +kubebuilder:validation:Enum=longhorn-v1;longhorn-v2
type StoragePreset string

const (
	// StoragePresetLonghornV1 is Longhorn with its V1 data engine: replicas in a file system.
	StoragePresetLonghornV1 StoragePreset = "longhorn-v1"

	// StoragePresetLonghornV2 is Longhorn with its V2 data engine: replicas on a raw block device.
	StoragePresetLonghornV2 StoragePreset = "longhorn-v2"
)

// TalosStorageSpec prepares nodes for a storage system and says how its data is kept safe while nodes are disturbed.
// +kubebuilder:validation:XValidation:rule="has(self.clusterName) != has(self.clusterSelector)",message="exactly one of clusterName and clusterSelector must be set"
type TalosStorageSpec struct {
	ClusterTargeting `json:",inline"`
	MachineTargeting `json:",inline"`

	// preset is the storage system.
	// +required
	Preset StoragePreset `json:"preset,omitempty"`

	// volume is the Talos volume that the storage system keeps its data on.
	// +optional
	Volume StorageVolume `json:"volume,omitempty,omitzero"`

	// nodeTags are Longhorn tags of the node, applied by Longhorn when it first sees the node.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	NodeTags []string `json:"nodeTags,omitempty"`

	// diskTags are Longhorn tags of the disk, applied by Longhorn when it first sees the node.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	DiskTags []string `json:"diskTags,omitempty"`

	// storageReserved is the space on the disk that Longhorn leaves free, for example "10Gi". Unset: none.
	// +optional
	StorageReserved *resource.Quantity `json:"storageReserved,omitempty"`

	// namespace that the storage system runs in. Unset: longhorn-system.
	// +optional
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// reboot says what must hold before a node is rebooted.
	// +optional
	Reboot StorageRebootPolicy `json:"reboot,omitempty,omitzero"`

	// delete says what must hold before a machine is deleted.
	// +optional
	Delete StorageDeletePolicy `json:"delete,omitempty,omitzero"`

	// maxConcurrentDisruptions is how many nodes with this storage may be disturbed at a time. Unset: 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MaxConcurrentDisruptions int32 `json:"maxConcurrentDisruptions,omitempty"`
}

// StorageVolumeType is the kind of Talos volume under a storage system.
// +kubebuilder:validation:Enum=Directory;Partition;Disk
type StorageVolumeType string

const (
	// StorageVolumeDirectory is a directory on the EPHEMERAL volume. Its size is that of EPHEMERAL.
	StorageVolumeDirectory StorageVolumeType = "Directory"

	// StorageVolumePartition is a partition of a disk that the selector matches.
	StorageVolumePartition StorageVolumeType = "Partition"

	// StorageVolumeDisk is a whole disk that the selector matches.
	StorageVolumeDisk StorageVolumeType = "Disk"
)

// StorageVolume is the Talos volume that a storage system keeps its data on.
// +kubebuilder:validation:XValidation:rule="self.type == 'Directory' ? !has(self.diskSelector) && !has(self.minSize) && !has(self.maxSize) && !has(self.filesystem) && !has(self.encryption) : has(self.diskSelector)",message="diskSelector must be set with type Partition or Disk; type Directory has none of diskSelector, minSize, maxSize, filesystem, encryption"
// +kubebuilder:validation:XValidation:rule="self.type != 'Disk' || (!has(self.minSize) && !has(self.maxSize))",message="type Disk uses the whole disk: minSize and maxSize have no meaning"
type StorageVolume struct {
	// type of the volume.
	// +required
	Type StorageVolumeType `json:"type,omitempty"`

	// diskSelector is a CEL expression over Talos' disk object, for example `disk.transport == "nvme" && !system_disk`.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	DiskSelector string `json:"diskSelector,omitempty"`

	// minSize is the least size of the partition, for example "10GiB".
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)? ?([kKMGTPE]i?)?B?$`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	MinSize string `json:"minSize,omitempty"`

	// maxSize is the greatest size of the partition, for example "500GiB", or a share of the disk, for example "80%". Unset:
	// the whole disk.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)? ?(%|([kKMGTPE]i?)?B?)$`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	MaxSize string `json:"maxSize,omitempty"`

	// filesystem of the volume. Unset: xfs. The longhorn-v2 preset has none.
	// +optional
	Filesystem StorageFilesystem `json:"filesystem,omitempty"`

	// encryption of the volume.
	// +optional
	Encryption StorageEncryption `json:"encryption,omitempty,omitzero"`
}

// StorageFilesystem is a file system that Talos makes on a volume.
// +kubebuilder:validation:Enum=xfs;ext4
type StorageFilesystem string

const (
	// StorageFilesystemXFS is xfs.
	StorageFilesystemXFS StorageFilesystem = "xfs"

	// StorageFilesystemExt4 is ext4.
	StorageFilesystemExt4 StorageFilesystem = "ext4"
)

// StorageEncryption encrypts a volume with LUKS2, by key sources that put no secret into any object.
type StorageEncryption struct {
	// keys that open the volume, by slot. At least one.
	// +required
	// +listType=map
	// +listMapKey=slot
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Keys []StorageEncryptionKey `json:"keys,omitempty"`
}

// StorageEncryptionKeySource is where a volume key comes from.
// +kubebuilder:validation:Enum=NodeID;TPM;KMS
type StorageEncryptionKeySource string

const (
	// StorageEncryptionKeyNodeID derives the key from the node's UUID and the partition label.
	StorageEncryptionKeyNodeID StorageEncryptionKeySource = "NodeID"

	// StorageEncryptionKeyTPM seals the key with the node's TPM.
	StorageEncryptionKeyTPM StorageEncryptionKeySource = "TPM"

	// StorageEncryptionKeyKMS has the key sealed by a network service.
	StorageEncryptionKeyKMS StorageEncryptionKeySource = "KMS"
)

// StorageEncryptionKey is one key that opens a volume.
// +kubebuilder:validation:XValidation:rule="(self.source == 'KMS') == has(self.kmsEndpoint)",message="kmsEndpoint must be set with source KMS, and only then"
type StorageEncryptionKey struct {
	// slot is the LUKS2 key slot.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31
	Slot *int32 `json:"slot,omitempty"`

	// source of the key.
	// +required
	Source StorageEncryptionKeySource `json:"source,omitempty"`

	// kmsEndpoint is the address of the network service that seals the key.
	// +optional
	// +kubebuilder:validation:Pattern=`^(https|grpc)://[^@\s]+$`
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=512
	KMSEndpoint string `json:"kmsEndpoint,omitempty"`
}

// StorageStrategy says how data is kept safe while a node is disturbed.
// +kubebuilder:validation:Enum=WaitHealthy;Evict;None
type StorageStrategy string

const (
	// StorageStrategyWaitHealthy waits until every volume has enough healthy replicas elsewhere.
	StorageStrategyWaitHealthy StorageStrategy = "WaitHealthy"

	// StorageStrategyEvict moves every replica away first.
	StorageStrategyEvict StorageStrategy = "Evict"

	// StorageStrategyNone does nothing.
	StorageStrategyNone StorageStrategy = "None"
)

// SingleReplicaPolicy says what is done about volumes whose only replica is on the node.
// +kubebuilder:validation:Enum=Block;AllowStopped
type SingleReplicaPolicy string

const (
	// SingleReplicaBlock does not reboot the node while it has such a volume.
	SingleReplicaBlock SingleReplicaPolicy = "Block"

	// SingleReplicaAllowStopped reboots the node when such volumes are detached.
	SingleReplicaAllowStopped SingleReplicaPolicy = "AllowStopped"
)

// StrictLocalPolicy says what is done about volumes with data locality strict-local, whose one replica cannot be anywhere else.
// +kubebuilder:validation:Enum=Block;AllowWithAcknowledgement
type StrictLocalPolicy string

const (
	// StrictLocalBlock does not reboot the node while it has such a volume.
	StrictLocalBlock StrictLocalPolicy = "Block"

	// StrictLocalAllowWithAcknowledgement reboots the node when a user has acknowledged that such volumes are away meanwhile.
	StrictLocalAllowWithAcknowledgement StrictLocalPolicy = "AllowWithAcknowledgement"
)

// InstanceManagerPodsPolicy says what a drain does about Longhorn's instance managers.
// +kubebuilder:validation:Enum=Evict;Skip
type InstanceManagerPodsPolicy string

const (
	// InstanceManagerPodsEvict has a drain evict them, under Longhorn's own disruption budgets.
	InstanceManagerPodsEvict InstanceManagerPodsPolicy = "Evict"

	// InstanceManagerPodsSkip has a drain leave them where they are.
	InstanceManagerPodsSkip InstanceManagerPodsPolicy = "Skip"
)

// StorageRebootPolicy says what must hold before a node is rebooted.
// +kubebuilder:validation:MinProperties=1
type StorageRebootPolicy struct {
	// strategy before a reboot. Unset: WaitHealthy.
	// +optional
	Strategy StorageStrategy `json:"strategy,omitempty"`

	// minHealthyElsewhere is how many healthy replicas a volume must have on other nodes: Auto, or a number. Unset: Auto, which is
	// one less than the volume's replica count, and at least one.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 20 : self == 'Auto'",message="minHealthyElsewhere must be Auto or a number from 0 to 20"
	MinHealthyElsewhere *intstr.IntOrString `json:"minHealthyElsewhere,omitempty"`

	// singleReplica says what to do about volumes with one replica on the node: Block, or AllowStopped (allow when detached). Unset: Block.
	// +optional
	SingleReplica SingleReplicaPolicy `json:"singleReplica,omitempty"`

	// strictLocal says what to do about volumes with data locality strict-local: Block, or AllowWithAcknowledgement. Unset: Block.
	// +optional
	StrictLocal StrictLocalPolicy `json:"strictLocal,omitempty"`

	// instanceManagerPods says whether a drain evicts Longhorn's instance managers: Evict or Skip. Unset: Evict.
	// +optional
	InstanceManagerPods InstanceManagerPodsPolicy `json:"instanceManagerPods,omitempty"`
}

// StorageDeletePolicy says what must hold before a machine is deleted.
// +kubebuilder:validation:MinProperties=1
type StorageDeletePolicy struct {
	// strategy before a deletion. Unset: Evict.
	// +optional
	Strategy StorageStrategy `json:"strategy,omitempty"`

	// stallTimeoutSeconds is how long an evacuation may stand still before it is reported as stalled. It never turns into permission.
	// +optional
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=86400
	StallTimeoutSeconds int32 `json:"stallTimeoutSeconds,omitempty"`
}

// TalosStorageStatus is the observed state of a TalosStorage.
// +kubebuilder:validation:MinProperties=1
type TalosStorageStatus struct {
	// conditions of the TalosStorage: Ready, StorageSystemConsistent, ExtensionsPresent, DisksReady, StorageSafe.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that the status was computed from.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// TalosStorage prepares the nodes that it targets for a storage system, and keeps its data safe while they are disturbed.
// Where several match a machine, the first by name governs it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=talosstorages,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels={"clusterctl.cluster.x-k8s.io/move="}
// +kubebuilder:printcolumn:name="Preset",type="string",JSONPath=".spec.preset",description="Storage system"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status",description="Whether every governed machine is prepared"
// +kubebuilder:printcolumn:name="Safe",type="string",JSONPath=".status.conditions[?(@.type=='StorageSafe')].status",description="Whether no volume is at risk"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type TalosStorage struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what nodes are prepared for.
	// +required
	Spec TalosStorageSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status TalosStorageStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions of the TalosStorage.
func (s *TalosStorage) GetConditions() []metav1.Condition { return s.Status.Conditions }

// SetConditions sets the conditions of the TalosStorage.
func (s *TalosStorage) SetConditions(conditions []metav1.Condition) { s.Status.Conditions = conditions }

// TalosStorageList is a list of TalosStorages.
//
// +kubebuilder:object:root=true
type TalosStorageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TalosStorage `json:"items"`
}

func init() {
	objectTypes = append(objectTypes, &TalosStorage{}, &TalosStorageList{})
}
