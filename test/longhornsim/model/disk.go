// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"maps"

	lh "github.com/maesh-dev/ichor/test/longhornsim/api/v1beta2"
)

// Longhorn rounds what a disk has left down to so many bytes.
const roundAvailable = 100 << 20

// syncDisks keeps the status of a node's disks. Only the manager of the node itself does that, so that the disks of a node
// that is down look as they last did. Source: controller/node_controller.go, syncDiskStatus.
func (s *State) syncDisks(n *lh.Node) {
	if s.Reality.Faults.DisksUnsynced[n.Name] {
		return
	}

	if n.Status.DiskStatus == nil {
		n.Status.DiskStatus = map[string]lh.DiskStatus{}
	}

	maps.DeleteFunc(n.Status.DiskStatus, func(name string, _ lh.DiskStatus) bool {
		_, wanted := n.Spec.Disks[name]

		return !wanted
	})

	for _, name := range sortedKeys(n.Spec.Disks) {
		status := n.Status.DiskStatus[name]
		s.syncDisk(n, name, &status)
		n.Status.DiskStatus[name] = status
	}
}

func (s *State) syncDisk(n *lh.Node, name string, status *lh.DiskStatus) {
	spec := n.Spec.Disks[name]
	d, size, there := s.Reality.physical(n.Name, spec.Path)

	switch {
	case !there:
		s.setDisk(status, lh.ConditionReady, lh.ConditionFalse, lh.ReasonNoDiskInfo,
			fmt.Sprintf("Disk %s(%s) on node %s is not ready: nothing is there", name, spec.Path, n.Name))
	case status.DiskUUID != "" && status.DiskUUID != d.uuid:
		s.setDisk(status, lh.ConditionReady, lh.ConditionFalse, lh.ReasonDiskFilesystemChanged,
			fmt.Sprintf("Disk %s(%s) on node %s is not ready: record diskUUID doesn't match the one on the disk", name, spec.Path, n.Name))
	default:
		status.DiskUUID, status.DiskName, status.DiskPath, status.Type = d.uuid, name, spec.Path, spec.Type
		if spec.Type == lh.DiskFilesystem {
			status.FSType = "xfs"
		}

		status.StorageMaximum = size
		status.StorageAvailable = max(0, size-d.other-s.stored(d.uuid)) / roundAvailable * roundAvailable
		status.InstanceManagerName = InstanceManagerName(n.Name, engineOfDisk(spec))
		s.setDisk(status, lh.ConditionReady, lh.ConditionTrue, "", fmt.Sprintf("Disk %s(%s) on node %s is ready", name, spec.Path, n.Name))
	}

	if !isTrue(status.Conditions, lh.ConditionReady) {
		status.StorageScheduled, status.ScheduledReplica, status.ScheduledBackingImage = 0, nil, nil
		s.setDisk(status, lh.ConditionSchedulable, lh.ConditionFalse, lh.ReasonDiskNotReady,
			fmt.Sprintf("Disk %s (%s) on the node %s is not ready", name, spec.Path, n.Name))

		return
	}

	s.account(n, spec, status)

	if why := s.space(spec, status).refuses(0, 0); why != "" {
		s.setDisk(status, lh.ConditionSchedulable, lh.ConditionFalse, lh.ReasonDiskPressure,
			fmt.Sprintf("Disk %s (%s) on the node %s: %s", name, spec.Path, n.Name, why))
	} else {
		s.setDisk(status, lh.ConditionSchedulable, lh.ConditionTrue, "", fmt.Sprintf("Disk %s(%s) on node %s is schedulable", name, spec.Path, n.Name))
	}
}

// account says what is scheduled to a disk. A replica follows the UUID of its disk, wherever that turns up.
func (s *State) account(n *lh.Node, spec lh.DiskSpec, status *lh.DiskStatus) {
	status.StorageScheduled, status.ScheduledReplica, status.ScheduledBackingImage = 0, nil, nil

	for _, r := range sorted(s.Replicas) {
		if r.Spec.DiskID != status.DiskUUID {
			continue
		}

		r.Spec.NodeID, r.Spec.DiskPath = n.Name, spec.Path
		status.StorageScheduled += r.Spec.VolumeSize

		if status.ScheduledReplica == nil {
			status.ScheduledReplica = map[string]int64{}
		}

		status.ScheduledReplica[r.Name] = r.Spec.VolumeSize
	}

	for _, image := range sorted(s.BackingImages) {
		if _, here := image.Spec.DiskFileSpecMap[status.DiskUUID]; !here {
			continue
		}

		status.StorageScheduled += image.Status.RealSize

		if status.ScheduledBackingImage == nil {
			status.ScheduledBackingImage = map[string]int64{}
		}

		status.ScheduledBackingImage[image.Name] = image.Status.RealSize
	}
}

// stored is how many bytes Longhorn has on a disk.
func (s *State) stored(uuid string) int64 {
	total := int64(0)

	for _, r := range s.Replicas {
		if r.Spec.DiskID != uuid {
			continue
		}

		switch copying, making := s.Reality.rebuilds[r.Name]; {
		case making:
			total += copying.done
		case r.Spec.LastHealthyAt != "":
			if v := s.Volumes[r.Spec.VolumeName]; v != nil {
				total += v.Status.ActualSize
			}
		}
	}

	for _, image := range s.BackingImages {
		if image.Status.DiskFileStatusMap[uuid].State == lh.FileReady {
			total += image.Status.RealSize
		}
	}

	return total
}

func (s *State) setDisk(status *lh.DiskStatus, conditionType string, value lh.ConditionStatus, reason, message string) {
	status.Conditions = lh.SetCondition(status.Conditions,
		lh.Condition{Type: conditionType, Status: value, Reason: reason, Message: message}, s.stamp())
}

func engineOfDisk(spec lh.DiskSpec) lh.DataEngine {
	if spec.Type == lh.DiskBlock {
		return lh.DataEngineV2
	}

	return lh.DataEngineV1
}

// space is what the scheduler goes by.
type space struct {
	maximum, available, scheduled, reserved int64
	overProvisioning, minimalAvailable      int64
}

func (s *State) space(spec lh.DiskSpec, status *lh.DiskStatus) space {
	return space{
		maximum: status.StorageMaximum, available: status.StorageAvailable, scheduled: status.StorageScheduled,
		reserved: spec.StorageReserved, overProvisioning: s.number(SettingOverProvisioning), minimalAvailable: s.number(SettingMinimalAvailable),
	}
}

// refuses says why a replica of a size, of which so much is used, has no place; nothing if it has. Source:
// scheduler/replica_scheduler.go, IsSchedulableToDisk.
func (d space) refuses(size, used int64) string {
	switch left, minimum := d.available-used, d.maximum*d.minimalAvailable/100; {
	case d.maximum <= 0:
		return "storage maximum must be greater than 0"
	case d.available <= 0:
		return "storage available must be greater than 0"
	case left <= minimum:
		return fmt.Sprintf("%d bytes would be left, and %d%% of the disk, %d, must stay free", left, d.minimalAvailable, minimum)
	}

	if limit := (d.maximum - d.reserved) * d.overProvisioning / 100; d.scheduled+size > limit {
		return fmt.Sprintf("%d bytes would be scheduled, and the limit is %d", d.scheduled+size, limit)
	}

	return ""
}
