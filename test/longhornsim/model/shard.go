// SPDX-License-Identifier: Apache-2.0

package model

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	lh "github.com/maesh-dev/ichor/test/longhornsim/api/v1beta2"
)

// syncShardedVolume goes by the pieces, since such a volume has no replicas (1.12.1, experimental).
func (s *State) syncShardedVolume(v *lh.Volume) {
	group := s.ShardGroups[v.Name]
	if group == nil {
		group = &lh.ShardGroup{
			ObjectMeta: metav1.ObjectMeta{Name: v.Name, Namespace: s.Namespace, Labels: map[string]string{labelVolume: v.Name}},
			Spec: lh.ShardGroupSpec{
				VolumeName: v.Name, DataChunks: v.Spec.DataLayout.DataChunks, ParityChunks: v.Spec.DataLayout.ParityChunks,
			},
		}
		s.ShardGroups[v.Name] = group
	}

	switch {
	case v.Spec.NodeID == "":
		v.Status.State, v.Status.Robustness, v.Status.CurrentNodeID = lh.VolumeDetached, lh.RobustnessUnknown, ""
	case group.Status.State == lh.ShardGroupOffline:
		v.Status.Robustness = lh.RobustnessFaulted
	case !s.alive(v.Spec.NodeID):
		v.Status.Robustness = lh.RobustnessUnknown
	default:
		v.Status.State, v.Status.CurrentNodeID, v.Status.Robustness = lh.VolumeAttached, v.Spec.NodeID, lh.RobustnessHealthy
		if group.Status.FailedCount > 0 {
			v.Status.Robustness = lh.RobustnessDegraded
		}
	}
}

// syncShards follows the nodes of the pieces, and moves those that shall go. No disruption budget protects a shard; only the
// policy block-for-eviction, and a user's wish, has them leave.
func (s *State) syncShards() {
	for _, shard := range sorted(s.Shards) {
		n := s.Nodes[shard.Spec.NodeID]
		here := s.alive(shard.Spec.NodeID) && s.diskReady(shard.Spec.DiskUUID)

		if n != nil && s.managerUp(n.Name) {
			disk := lh.DiskSpec{}
			if owner, name := s.disk(shard.Spec.DiskUUID); owner != nil {
				disk = owner.Spec.Disks[name]
			}

			requested := n.Spec.EvictionRequested || disk.EvictionRequested
			drained := s.cordoned(n.Name) && s.setting(SettingNodeDrainPolicy, lh.DataEngineV2) == DrainBlockForEviction
			shard.Spec.EvictionRequested = !s.downOrDeleted(n.Name) && (requested || drained)
		}

		switch {
		case !here:
			shard.Status.State = lh.ShardFailed
		case shard.Spec.EvictionRequested:
			s.moveShard(shard)
		default:
			shard.Status.State = lh.ShardNormal
		}
	}

	for _, group := range sorted(s.ShardGroups) {
		if s.Volumes[group.Spec.VolumeName] == nil {
			delete(s.ShardGroups, group.Name)
			maps.DeleteFunc(s.Shards, func(_ string, shard *lh.Shard) bool { return shard.Spec.ShardGroupName == group.Name })

			continue
		}

		s.judgeShards(group)
	}
}

func (s *State) judgeShards(group *lh.ShardGroup) {
	status := lh.ShardGroupStatus{State: lh.ShardGroupHealthy}

	for _, shard := range sorted(s.Shards) {
		if shard.Spec.ShardGroupName != group.Name {
			continue
		}

		switch shard.Status.State {
		case lh.ShardFailed:
			status.FailedCount++
		case lh.ShardReplacing:
			status.RebuildInProgress = true
			status.EvictingSlots = append(status.EvictingSlots, shard.Spec.SlotIndex)
		}
	}

	switch {
	case status.FailedCount > group.Spec.ParityChunks:
		status.State = lh.ShardGroupOffline
	case status.FailedCount > 0:
		status.State = lh.ShardGroupDegraded
	case status.RebuildInProgress:
		status.State = lh.ShardGroupRebuilding
	}

	group.Status = status
}

// moveShard makes the piece anew on a node without one of the group, if there is any; it stays where it is until then.
func (s *State) moveShard(shard *lh.Shard) {
	node, uuid := s.placeForShard(shard)
	if node == "" {
		return
	}

	size := int64(0)
	if group := s.ShardGroups[shard.Spec.ShardGroupName]; group != nil && s.Volumes[group.Spec.VolumeName] != nil {
		size = s.Volumes[group.Spec.VolumeName].Status.ActualSize / int64(max(1, group.Spec.DataChunks))
	}

	key := "shard/" + shard.Name

	done, begun := s.Reality.moves[key]
	if !begun {
		done = s.Now.Add(s.copyTime(size))
		s.Reality.moves[key] = done
		shard.Status.State = lh.ShardReplacing
	}

	s.wakeAt(done)

	if !s.Now.Before(done) {
		delete(s.Reality.moves, key)

		shard.Spec.NodeID, shard.Spec.DiskUUID, shard.Spec.EvictionRequested = node, uuid, false
		shard.Status.State = lh.ShardNormal
	}
}

func (s *State) placeForShard(shard *lh.Shard) (node, uuid string) {
	taken := map[string]bool{}

	for _, other := range s.Shards {
		if other.Spec.ShardGroupName == shard.Spec.ShardGroupName {
			taken[other.Spec.NodeID] = true
		}
	}

	for _, n := range sorted(s.Nodes) {
		if taken[n.Name] || !s.nodeSchedulable(n) {
			continue
		}

		for _, name := range sortedKeys(n.Status.DiskStatus) {
			if spec := n.Spec.Disks[name]; spec.AllowScheduling && !spec.EvictionRequested && isTrue(n.Status.DiskStatus[name].Conditions, lh.ConditionSchedulable) {
				return n.Name, n.Status.DiskStatus[name].DiskUUID
			}
		}
	}

	return "", ""
}
