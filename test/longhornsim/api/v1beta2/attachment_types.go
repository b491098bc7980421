// SPDX-License-Identifier: Apache-2.0

package v1beta2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Who wants a volume attached.
const (
	AttacherCSI          = "csi-attacher"
	AttacherAPI          = "longhorn-api"
	AttacherShareManager = "share-manager-controller"
	AttacherEviction     = "volume-eviction-controller"
	AttacherRebuilding   = "volume-rebuilding-controller"
	AttacherBackup       = "backup-controller"
	AttacherSnapshot     = "snapshot-controller"
)

// AttachmentTicket is somebody's wish that a volume be attached to a node.
type AttachmentTicket struct {
	// ID is the key of the ticket too.
	ID string `json:"id"`
	// Type is who wants it.
	Type string `json:"type"`
	// NodeID is where.
	NodeID string `json:"nodeID"`
	// +optional
	Parameters map[string]string `json:"parameters,omitempty"`
	// +optional
	Generation int64 `json:"generation,omitempty"`
}

// AttachmentTicketStatus is whether a wish is fulfilled.
type AttachmentTicketStatus struct {
	ID string `json:"id"`
	// +optional
	Satisfied bool `json:"satisfied"`
	// +optional
	Generation int64 `json:"generation,omitempty"`
}

// VolumeAttachmentSpec holds the wishes.
type VolumeAttachmentSpec struct {
	// +optional
	AttachmentTickets map[string]AttachmentTicket `json:"attachmentTickets,omitempty"`
	Volume            string                      `json:"volume"`
}

// VolumeAttachmentStatus is what came of them.
type VolumeAttachmentStatus struct {
	// +optional
	AttachmentTicketStatuses map[string]AttachmentTicketStatus `json:"attachmentTicketStatuses,omitempty"`
}

// VolumeAttachment says where a volume, of the same name, is wanted.
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=lhva
// +kubebuilder:subresource:status
type VolumeAttachment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   VolumeAttachmentSpec   `json:"spec,omitempty"`
	Status VolumeAttachmentStatus `json:"status,omitempty"`
}

// VolumeAttachmentList is a list of VolumeAttachments.
// +kubebuilder:object:root=true
type VolumeAttachmentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []VolumeAttachment `json:"items"`
}

// States of a backing image's file.
const (
	FileReady      = "ready"
	FileInProgress = "in-progress"
	FileFailed     = "failed"
	FileUnknown    = "unknown"
)

// BackingImageDiskFileSpec is one file that should be on a disk.
type BackingImageDiskFileSpec struct {
	// +optional
	EvictionRequested bool `json:"evictionRequested,omitempty"`
	// +optional
	DataEngine DataEngine `json:"dataEngine,omitempty"`
}

// BackingImageSpec is what a backing image should be. The disks are known by their UUIDs.
type BackingImageSpec struct {
	// +optional
	SourceType string `json:"sourceType,omitempty"`
	// +kubebuilder:validation:Minimum=1
	// +optional
	MinNumberOfCopies int `json:"minNumberOfCopies,omitempty"`
	// +optional
	DiskFileSpecMap map[string]BackingImageDiskFileSpec `json:"diskFileSpecMap,omitempty"`
	// +optional
	NodeSelector []string `json:"nodeSelector,omitempty"`
	// +optional
	DiskSelector []string `json:"diskSelector,omitempty"`
	// +optional
	DataEngine DataEngine `json:"dataEngine,omitempty"`
}

// BackingImageDiskFileStatus is how one file does.
type BackingImageDiskFileStatus struct {
	// +optional
	State string `json:"state,omitempty"`
	// +optional
	Progress int `json:"progress,omitempty"`
	// +optional
	LastStateTransitionTime string `json:"lastStateTransitionTime,omitempty"`
}

// BackingImageStatus is what a backing image is.
type BackingImageStatus struct {
	// +nullable
	// +optional
	DiskFileStatusMap map[string]BackingImageDiskFileStatus `json:"diskFileStatusMap,omitempty"`
	// +optional
	Size int64 `json:"size,omitempty"`
	// +optional
	RealSize int64 `json:"realSize,omitempty"`
	// +optional
	OwnerID string `json:"ownerID,omitempty"`
}

// BackingImage is an image from which volumes are made, with its copies.
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=lhbi
// +kubebuilder:subresource:status
type BackingImage struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   BackingImageSpec   `json:"spec,omitempty"`
	Status BackingImageStatus `json:"status,omitempty"`
}

// BackingImageList is a list of BackingImages.
// +kubebuilder:object:root=true
type BackingImageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []BackingImage `json:"items"`
}
