// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"time"

	lh "github.com/maesh-dev/ichor/test/longhornsim/api/v1beta2"
)

// replenish makes one more replica, or uses one again that failed, if the volume has too few. Source: replenishReplicas.
func (s *State) replenish(v *lh.Volume, e *lh.Engine, affinity string) {
	replicas := s.replicasOf(v.Name)
	if s.number(SettingConcurrentRebuildPerNode) == 0 || v.Status.State != lh.VolumeAttached ||
		s.isRebuilding(v.Name) || s.hasPendingReplica(replicas) || (affinity == "" && s.missing(v, replicas) <= 0) {
		return
	}

	if r := s.reuse(v, affinity); r != nil && s.retry(r.Name) {
		r.Spec.FailedAt, r.Spec.HealthyAt = "", ""
		r.Spec.RebuildRetryCount++

		return
	}

	if !s.mayAdd(v, affinity) {
		return
	}

	if affinity == "" && len(s.candidates(newReplica(v, e, ""), replicas, v)) == 0 {
		s.setScheduled(v, lh.ConditionFalse, lh.ReasonReplicaSchedulingFailure, "no disk takes one more replica")

		return
	}

	r := s.addReplica(v, e, affinity)
	// One that fails before it has any data is of no use, and not tried again.
	r.Spec.RebuildRetryCount = maxRebuildRetries
	s.schedule(r, v)
}

// Between two attempts with one replica lies a time that grows to this (volume_controller.go, backoff).
const (
	firstBackoff = time.Minute
	maxBackoff   = 3 * time.Minute
)

// retry is whether a failed replica may be tried again now.
func (s *State) retry(name string) bool {
	b := s.Reality.backoffs[name]
	if s.Now.Before(b.until) {
		s.wakeAt(b.until)

		return false
	}

	b.wait = min(maxBackoff, max(firstBackoff, 2*b.wait))
	b.until = s.Now.Add(b.wait)
	s.Reality.backoffs[name] = b

	return true
}

// missing is how many replicas the volume lacks; those that shall go do not count. Source: getReplenishReplicasCount.
func (s *State) missing(v *lh.Volume, replicas []*lh.Replica) int {
	usable := 0

	for _, r := range replicas {
		if r.Spec.FailedAt == "" && !r.Spec.EvictionRequested {
			usable++
		}
	}

	if usable == v.Spec.NumberOfReplicas {
		return s.unbalanced(v)
	}

	return v.Spec.NumberOfReplicas - usable
}

// cleanUp takes away what a volume no longer needs. Source: cleanupReplicas.
func (s *State) cleanUp(v *lh.Volume, e *lh.Engine) {
	if migrating(v) {
		return
	}

	replicas := s.replicasOf(v.Name)
	healthy := 0

	for _, r := range replicas {
		if availableHealthy(r) && r.Spec.Active {
			healthy++
		}
	}

	for _, r := range replicas {
		if s.useless(v, r, healthy) {
			s.deleteReplica(r)
		}
	}

	if healthy >= v.Spec.NumberOfReplicas {
		s.removeUnplaced(v, replicas)
	}

	if healthy > v.Spec.NumberOfReplicas && !s.removeEvicted(replicas) && !s.removeRemote(v, e) {
		s.removeCrowded(v)
	}
}

// removeUnplaced takes replicas away that found no disk, of a volume that has enough without them.
func (s *State) removeUnplaced(v *lh.Volume, replicas []*lh.Replica) {
	if slices.ContainsFunc(replicas, func(r *lh.Replica) bool { return r.Spec.EvictionRequested }) {
		return
	}

	for _, r := range replicas {
		if r.Spec.HealthyAt == "" && r.Spec.NodeID == "" && (!bestEffortLocal(v) || r.Spec.HardNodeAffinity != v.Status.CurrentNodeID) {
			s.deleteReplica(r)
		}
	}
}

// useless is whether a replica can be of no use any more. Source: cleanupCorruptedOrStaleReplicas.
func (s *State) useless(v *lh.Volume, r *lh.Replica, healthy int) bool {
	if !r.Spec.Active {
		return true
	}

	if r.Spec.FailedAt == "" || healthy == 0 {
		return false
	}

	if v.Spec.DataEngine == lh.DataEngineV2 && s.setting(SettingV2FastRebuild, lh.DataEngineV2) != "true" {
		return true
	}

	timeout := time.Duration(v.Spec.StaleReplicaTimeout) * time.Minute
	if timeout > 0 {
		s.wakeAt(s.Now.Add(timeout - s.since(r.Spec.FailedAt)))
	}

	return r.Spec.RebuildRetryCount >= maxRebuildRetries || (timeout > 0 && s.since(r.Spec.FailedAt) >= timeout)
}

func migrating(v *lh.Volume) bool {
	return v.Spec.MigrationNodeID != "" || v.Status.CurrentMigrationNodeID != ""
}

func cloning(v *lh.Volume) bool {
	return v.Status.CloneStatus.State != "" && v.Status.CloneStatus.State != "completed"
}

func sharded(v *lh.Volume) bool {
	return v.Spec.DataLayout != nil && v.Spec.DataLayout.Type == lh.LayoutSharded
}

func bestEffortLocal(v *lh.Volume) bool { return v.Spec.DataLocality == lh.DataLocalityBestEffort }

// address is where an engine finds a replica.
func address(r *lh.Replica) string { return "tcp://" + r.Spec.NodeID + "/" + r.Name }

// Labels by which Longhorn finds replicas.
const (
	labelVolume = "longhornvolume"
	labelNode   = "longhornnode"
	labelDisk   = "longhorndiskuuid"
)

func setLabels(r *lh.Replica) {
	if r.Labels == nil {
		r.Labels = map[string]string{}
	}

	r.Labels[labelVolume] = r.Spec.VolumeName

	if r.Spec.NodeID != "" {
		r.Labels[labelNode], r.Labels[labelDisk] = r.Spec.NodeID, r.Spec.DiskID
	}
}
