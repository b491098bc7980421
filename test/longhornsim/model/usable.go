// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"

	lh "github.com/maesh-dev/ichor/test/longhornsim/api/v1beta2"
)

// UsableCopies returns the nodes that have a complete copy of a volume which can be read now: the machine runs, the disk is
// there, and what is on it is the copy. It goes by what is so, not by what objects say of it.
func (s *State) UsableCopies(volume string) []string {
	var nodes []string

	for _, r := range s.replicasOf(volume) {
		n, name := s.disk(r.Spec.DiskID)
		if !availableHealthy(r) || !r.Spec.Active || !s.alive(r.Spec.NodeID) || n == nil {
			continue
		}

		d, _, there := s.Reality.physical(r.Spec.NodeID, n.Spec.Disks[name].Path)
		if !there || d.uuid != r.Spec.DiskID {
			continue
		}

		if e := s.engineOf(volume); e != nil && s.runs(e.Name) && e.Status.ReplicaModeMap[r.Name] != lh.ModeRW {
			continue
		}

		if !slices.Contains(nodes, r.Spec.NodeID) {
			nodes = append(nodes, r.Spec.NodeID)
		}
	}

	return nodes
}

// Used is whether a volume has ever had data.
func (s *State) Used(volume string) bool {
	return slices.ContainsFunc(s.replicasOf(volume), func(r *lh.Replica) bool { return r.Spec.LastHealthyAt != "" })
}

// Unusable returns the volumes that have data and no copy of them that can be read.
func (s *State) Unusable() []string {
	var volumes []string

	for _, v := range sorted(s.Volumes) {
		if sharded(v) {
			if group := s.ShardGroups[v.Name]; group != nil && group.Status.State == lh.ShardGroupOffline {
				volumes = append(volumes, v.Name)
			}

			continue
		}

		if s.Used(v.Name) && len(s.UsableCopies(v.Name)) == 0 {
			volumes = append(volumes, v.Name)
		}
	}

	return volumes
}

// Inconsistent returns what cannot be, if the rules of this package are right.
func (s *State) Inconsistent() []string {
	faults := slices.Concat(s.wrongEngines(), s.wrongModes(), s.overfullDisks())

	for _, im := range sorted(s.InstanceManagers) {
		if im.Status.CurrentState == lh.ManagerRunning && s.Budgets[im.Name] == nil && !s.cordoned(im.Spec.NodeID) && !s.on(SettingClusterAutoscaler) {
			faults = append(faults, fmt.Sprintf("instance manager %s of node %s has no disruption budget", im.Name, im.Spec.NodeID))
		}
	}

	return faults
}

func (s *State) wrongEngines() []string {
	var faults []string

	for _, v := range sorted(s.Volumes) {
		engines := 0

		for _, e := range s.Engines {
			if e.Spec.VolumeName == v.Name && s.runs(e.Name) {
				engines++
			}
		}

		if engines > 1 && !migrating(v) {
			faults = append(faults, fmt.Sprintf("volume %s has %d engines that run", v.Name, engines))
		}

		if v.Status.State == lh.VolumeDetached && engines > 0 {
			faults = append(faults, fmt.Sprintf("volume %s is detached, and its engine runs", v.Name))
		}
	}

	return faults
}

func (s *State) wrongModes() []string {
	var faults []string

	for _, e := range sorted(s.Engines) {
		for name, mode := range e.Status.ReplicaModeMap {
			r := s.Replicas[name]
			if r == nil {
				faults = append(faults, fmt.Sprintf("engine %s has a replica %s that is not there", e.Name, name))
			} else if mode == lh.ModeRW && (r.Spec.HealthyAt == "" || r.Spec.FailedAt != "") {
				faults = append(faults, fmt.Sprintf("engine %s reads replica %s, which is not healthy", e.Name, name))
			}
		}
	}

	return faults
}

func (s *State) overfullDisks() []string {
	var faults []string

	for _, n := range sorted(s.Nodes) {
		for _, name := range sortedKeys(n.Status.DiskStatus) {
			status := n.Status.DiskStatus[name]
			total := int64(0)

			for _, size := range status.ScheduledReplica {
				total += size
			}

			for _, size := range status.ScheduledBackingImage {
				total += size
			}

			if total != status.StorageScheduled {
				faults = append(faults, fmt.Sprintf("disk %s of node %s has %d bytes scheduled, and lists %d", name, n.Name, status.StorageScheduled, total))
			}
		}
	}

	return faults
}
