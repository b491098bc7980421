// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"

	lh "github.com/maesh-dev/ichor/test/longhornsim/api/v1beta2"
)

// RefusalError is why Longhorn's webhook refuses a request.
type RefusalError struct {
	// Later is whether the same request may be granted later: the answer is Forbidden then, and Invalid otherwise.
	Later   bool
	Message string
}

func (r *RefusalError) Error() string { return r.Message }

func refuse(format string, args ...any) error {
	return &RefusalError{Message: fmt.Sprintf(format, args...)}
}

// CheckNodeCreation is what the webhook says of a new Longhorn node. Source: webhook/resources/node/validator.go, Create.
func (s *State) CheckNodeCreation(n *lh.Node) error {
	if n.Spec.InstanceManagerCPURequest < 0 {
		return refuse("instanceManagerCPURequest should be greater than or equal to 0")
	}

	return s.checkDisks(n)
}

// CheckNodeUpdate is what the webhook says of a change. Source: webhook/resources/node/validator.go, Update.
func (s *State) CheckNodeUpdate(old, n *lh.Node) error {
	if n.Spec.InstanceManagerCPURequest < 0 {
		return refuse("instanceManagerCPURequest should be greater than or equal to 0")
	}

	if n.Spec.EvictionRequested && n.Spec.AllowScheduling {
		return refuse("need to disable scheduling on node %s for node eviction, or cancel eviction to enable scheduling on this node", n.Name)
	}

	if !disksSynced(old) {
		return &RefusalError{Later: true, Message: fmt.Sprintf("spec and status of disks on node %s are being syncing and please retry later", n.Name)}
	}

	if err := validTags(n.Spec.Tags); err != nil {
		return refuse("%v", err)
	}

	if err := s.checkDisks(n); err != nil {
		return err
	}

	for _, name := range sortedKeys(old.Spec.Disks) {
		disk := old.Spec.Disks[name]

		changed, kept := n.Spec.Disks[name]
		if !kept && (disk.AllowScheduling || old.Status.DiskStatus[name].StorageScheduled != 0) {
			return refuse("delete disk %s on node %s: disable the disk %s and remove all replicas first", name, n.Name, disk.Path)
		}

		if kept && disk.Type != "" && changed.Type != disk.Type {
			return refuse("update disk on node %s: the type of disk %s(%s) is not allowed to change", n.Name, name, disk.Path)
		}
	}

	return nil
}

func (s *State) checkDisks(n *lh.Node) error {
	paths := map[string]string{}

	for _, name := range sortedKeys(n.Spec.Disks) {
		disk := n.Spec.Disks[name]

		switch {
		case disk.EvictionRequested && disk.AllowScheduling:
			return refuse("need to disable scheduling on disk %s for disk eviction, or cancel eviction to enable scheduling on this disk", name)
		case disk.StorageReserved < 0:
			return refuse("the storageReserved setting of disk %s(%s) on node %s is not valid, should be positive", name, disk.Path, n.Name)
		case disk.Type == lh.DiskBlock && !s.on(SettingV2DataEngine):
			return refuse("disk %s(%s) on node %s is a block device, but the v2 data engine is not enabled", name, disk.Path, n.Name)
		case disk.Type == lh.DiskBlock && disk.StorageReserved != 0:
			return refuse("disk %s of type %s is not supported to reserve storage", name, disk.Type)
		case disk.Type != lh.DiskBlock && disk.DiskDriver != "":
			return refuse("disk %s of type %s is not supported to specify a disk driver", name, disk.Type)
		case paths[path.Clean(disk.Path)] != "":
			return refuse("disks %s and %s on node %s have the same path %s", paths[path.Clean(disk.Path)], name, n.Name, disk.Path)
		}

		paths[path.Clean(disk.Path)] = name

		if err := validTags(disk.Tags); err != nil {
			return refuse("%v", err)
		}
	}

	return nil
}

func disksSynced(n *lh.Node) bool {
	if len(n.Spec.Disks) != len(n.Status.DiskStatus) {
		return false
	}

	for name := range n.Spec.Disks {
		if _, there := n.Status.DiskStatus[name]; !there {
			return false
		}
	}

	return true
}

// CheckNodeDeletion is what the webhook says of the end of a Longhorn node. Source: webhook/resources/node/validator.go,
// Delete (1.12.1).
func (s *State) CheckNodeDeletion(n *lh.Node) error {
	ready := lh.FindCondition(n.Status.Conditions, lh.ConditionReady)
	gone := ready.Status != lh.ConditionTrue &&
		(ready.Reason == lh.ReasonKubernetesNodeGone || ready.Reason == lh.ReasonManagerPodMissing)

	replicas, engines := 0, 0

	for _, r := range s.Replicas {
		if r.Spec.NodeID == n.Name {
			replicas++
		}
	}

	for _, e := range s.Engines {
		if e.Spec.NodeID == n.Name {
			engines++
		}
	}

	if !gone || n.Spec.AllowScheduling || replicas > 0 || engines > 0 {
		return refuse("could not delete node %s with node ready condition is %s, reason is %s, node schedulable %t, and %d replica, %d engine running on it",
			n.Name, ready.Status, ready.Reason, n.Spec.AllowScheduling, replicas, engines)
	}

	return nil
}

// CheckReplica is what the webhook says of a new replica, and of a change; old is nil for a new one. Source:
// webhook/resources/replica/validator.go.
func (s *State) CheckReplica(old, r *lh.Replica) error {
	if old == nil {
		return s.checkEngineEnabled(r.Spec.DataEngine)
	}

	if old.Spec.DataEngine != "" && old.Spec.DataEngine != r.Spec.DataEngine {
		return refuse("changing data engine for replica %s is not supported", r.Name)
	}

	return nil
}

// CheckReplicaDeletion keeps the last healthy replica that is not evicted. Source: validateReplicaDeletion.
func (s *State) CheckReplicaDeletion(r *lh.Replica) error {
	v := s.Volumes[r.Spec.VolumeName]
	if v == nil || !v.DeletionTimestamp.IsZero() {
		return nil
	}

	available := map[string]bool{}

	for _, other := range s.replicasOf(v.Name) {
		if availableHealthy(other) && !other.Spec.EvictionRequested {
			available[other.Name] = true
		}
	}

	if len(available) == 1 && available[r.Name] {
		return refuse("no other healthy replica available for volume %s, cannot delete replica %s since it may still contain data for recovery", v.Name, r.Name)
	}

	for _, other := range s.Replicas {
		if other.Spec.LinkedCloneSrcReplicaName == r.Name {
			return refuse("cannot delete replica %s: replica %s is a linked clone of it", r.Name, other.Name)
		}
	}

	return nil
}

// CheckVolume is what the webhook says of a new volume, and of a change; old is nil for a new one. Source:
// webhook/resources/volume/validator.go.
func (s *State) CheckVolume(old, v *lh.Volume) error {
	if v.Spec.NumberOfReplicas < 1 || v.Spec.NumberOfReplicas > 20 {
		return refuse("value should be between 1 to 20: number of replicas of volume %s is %d", v.Name, v.Spec.NumberOfReplicas)
	}

	if v.Spec.DataLocality == lh.DataLocalityStrictLocal && v.Spec.NumberOfReplicas != 1 {
		return refuse("number of replica count should be 1 when data locality is %s", v.Spec.DataLocality)
	}

	if sharded(v) && v.Spec.NumberOfReplicas != 1 {
		return refuse("number of replica count should be 1 when the data layout is %s", lh.LayoutSharded)
	}

	if v.Spec.Migratable && v.Spec.AccessMode != lh.AccessReadWriteMany {
		return refuse("migratable volumes are only supported in ReadWriteMany (rwx) access mode")
	}

	if old == nil {
		return s.checkNewVolume(v)
	}

	return s.checkVolumeChange(old, v)
}

func (s *State) checkNewVolume(v *lh.Volume) error {
	if v.Spec.BackingImage != "" && s.BackingImages[v.Spec.BackingImage] == nil {
		return refuse("backing image %s not found", v.Spec.BackingImage)
	}

	if !v.Spec.Standby && !slices.Contains([]string{"blockdev", "iscsi", "nvmf", "ublk"}, v.Spec.Frontend) {
		return refuse("invalid volume frontend specified: %s", v.Spec.Frontend)
	}

	if v.Spec.DataEngine == lh.DataEngineV2 && v.Spec.Standby {
		return refuse("standby is not supported for data engine v2")
	}

	return s.checkEngineEnabled(v.Spec.DataEngine)
}

func (s *State) checkVolumeChange(old, v *lh.Volume) error {
	strict := old.Spec.DataLocality == lh.DataLocalityStrictLocal || v.Spec.DataLocality == lh.DataLocalityStrictLocal

	switch {
	case v.Spec.Size < old.Spec.Size && !v.Status.ExpansionRequired:
		return refuse("shrinking volume %s size from %d to %d is not supported", v.Name, old.Spec.Size, v.Spec.Size)
	case old.Status.State != lh.VolumeDetached && old.Spec.DataLocality != v.Spec.DataLocality && strict:
		return refuse("data locality cannot be converted between %s and other modes when volume is not detached", lh.DataLocalityStrictLocal)
	case old.Spec.DataEngine != "" && old.Spec.DataEngine != v.Spec.DataEngine:
		return refuse("changing data engine for volume %s is not supported", v.Name)
	case v.Status.CurrentMigrationNodeID != "" && v.Spec.MigrationNodeID != old.Spec.MigrationNodeID &&
		v.Spec.MigrationNodeID != v.Status.CurrentMigrationNodeID && v.Spec.MigrationNodeID != "":
		return refuse("cannot change v.Spec.MigrationNodeID to node %s when the volume is doing live migration to node %s",
			v.Spec.MigrationNodeID, v.Status.CurrentMigrationNodeID)
	}

	if v.Spec.DataLocality == lh.DataLocalityStrictLocal && v.Spec.NodeID != "" && v.Spec.NodeID != old.Spec.NodeID {
		return s.checkStrictLocal(v, v.Spec.NodeID)
	}

	return nil
}

func (s *State) checkStrictLocal(v *lh.Volume, node string) error {
	for _, r := range s.replicasOf(v.Name) {
		if r.Spec.NodeID != "" && r.Spec.NodeID != node {
			return refuse("moving a %s volume %s to another node is not supported", lh.DataLocalityStrictLocal, v.Name)
		}
	}

	return nil
}

func (s *State) checkEngineEnabled(engine lh.DataEngine) error {
	if (engine == lh.DataEngineV2 && !s.on(SettingV2DataEngine)) || (engine == lh.DataEngineV1 && !s.on(SettingV1DataEngine)) {
		return refuse("%s data engine is not enabled", engine)
	}

	return nil
}

// CheckAttachment is what the webhook says of tickets; old is nil for new ones. Source:
// webhook/resources/volumeattachment/validator.go.
func (s *State) CheckAttachment(old, va *lh.VolumeAttachment) error {
	for _, id := range sortedKeys(va.Spec.AttachmentTickets) {
		if ticket := va.Spec.AttachmentTickets[id]; ticket.ID != id {
			return refuse("the attachmentTickets map contains inconsistent attachment ticket ID: %s vs %s", id, ticket.ID)
		}
	}

	if old == nil {
		return nil
	}

	if va.Spec.Volume != old.Spec.Volume {
		return refuse("spec.volume field is immutable")
	}

	v := s.Volumes[va.Spec.Volume]
	if v == nil {
		return refuse("failed to get volume %s for validating volumeattachment update", va.Spec.Volume)
	}

	if v.Spec.DataLocality != lh.DataLocalityStrictLocal {
		return nil
	}

	for _, id := range sortedKeys(va.Spec.AttachmentTickets) {
		if node := va.Spec.AttachmentTickets[id].NodeID; node != "" && s.checkStrictLocal(v, node) != nil {
			return refuse("invalid VolumeAttachment update for volume %s: data locality %s requires the volume and replica to stay on the same node, and the ticket is for node %s",
				v.Name, lh.DataLocalityStrictLocal, node)
		}
	}

	return nil
}

// CheckInstanceManager is what the webhook says of an instance manager. Source: webhook/resources/instancemanager/validator.go.
func (s *State) CheckInstanceManager(im *lh.InstanceManager) error {
	switch {
	case len(im.Labels) == 0:
		return refuse("labels for instanceManager %s is not set", im.Name)
	case im.Spec.Type == "":
		return refuse("type for instanceManager %s is not set", im.Name)
	case im.Spec.DataEngine == "":
		return refuse("data engine for instanceManager %s is not set", im.Name)
	}

	return nil
}

// CheckSetting is what the webhook says of a new value. Source: webhook/resources/setting/validator.go.
func (s *State) CheckSetting(name, value string, isNew bool) error {
	if definitions[name].readOnly && !isNew {
		return refuse("setting %s is read-only", name)
	}

	if err := checkSetting(name, value); err != nil {
		return refuse("%v", err)
	}

	return nil
}

// CheckSettingDeletion refuses what Longhorn knows. Source: webhook/resources/setting/validator.go, Delete.
func (s *State) CheckSettingDeletion(name string) error {
	if _, known := definitions[name]; known {
		return refuse("setting %s can be modified but not deleted", name)
	}

	return nil
}

// CheckKubernetesNode keeps the v2 engine of a node from being switched off while it is used. Source:
// webhook/resources/kubernetesnode/validator.go.
func (s *State) CheckKubernetesNode(old, kube *corev1.Node) error {
	if !s.on(SettingV2DataEngine) || old.Labels[LabelDisableV2] == kube.Labels[LabelDisableV2] || kube.Labels[LabelDisableV2] != "true" {
		return nil
	}

	for _, r := range s.Replicas {
		if r.Spec.NodeID == kube.Name && r.Spec.DataEngine == lh.DataEngineV2 {
			return refuse("cannot disable v2 data engine on node %s: there are v2 data engine instances running on this node", kube.Name)
		}
	}

	for _, e := range s.Engines {
		if e.Spec.NodeID == kube.Name && e.Spec.DataEngine == lh.DataEngineV2 {
			return refuse("cannot disable v2 data engine on node %s: there are v2 data engine instances running on this node", kube.Name)
		}
	}

	return nil
}
