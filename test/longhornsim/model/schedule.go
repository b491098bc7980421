// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"time"

	lh "github.com/maesh-dev/ichor/test/longhornsim/api/v1beta2"
)

// maxRebuildRetries is how often a failed replica is used again (scheduler, FailedReplicaMaxRetryCount).
const maxRebuildRetries = 5

// place is a disk that a replica may go to.
type place struct {
	node, disk, uuid, path, zone string
	room                         int64
}

// usage is how a volume's replicas lie on the nodes that may take more.
type usage struct {
	nodes, zones                   map[string]bool
	onlyEvictingNode, onlyEvicting map[string]bool
}

// candidates returns the disks that a replica of a volume may go to, best first: on an unused node of an unused zone if there
// is one; else what the anti-affinity of zones, nodes and disks lets through. Source: scheduler/replica_scheduler.go,
// FindDiskCandidates and getDiskCandidates.
func (s *State) candidates(r *lh.Replica, replicas []*lh.Replica, v *lh.Volume) []place {
	places := s.places(r, replicas, v)
	used := s.usage(replicas, places, s.replenishing(v), false)

	return s.choose(places, used, replicas, v, false)
}

// choose applies the anti-affinities in Longhorn's order.
func (s *State) choose(places []place, used usage, replicas []*lh.Replica, v *lh.Volume, ignoreFailed bool) []place {
	softNode := s.override(SettingReplicaSoftAffinity, v.Spec.ReplicaSoftAntiAffinity)
	softZone := s.override(SettingReplicaZoneSoftAffinity, v.Spec.ReplicaZoneSoftAntiAffinity)
	bestEffort := s.autoBalance(v) == lh.AutoBalanceBestEffort

	unusedNode := func(p place) bool { return !used.nodes[p.node] || bestEffort }
	unusedZone := func(p place) bool { return !used.zones[p.zone] }
	freedNode := func(p place) bool { return used.onlyEvictingNode[p.node] }
	freedZone := func(p place) bool { return freedNode(p) && (used.onlyEvicting[p.zone] || bestEffort) }
	usedNode := func(p place) bool { return used.nodes[p.node] }

	stages := []func(place) bool{unusedZone}

	switch {
	case !softZone:
		stages = append(stages, freedZone)
	case !softNode:
		stages = append(stages, unusedNode, freedNode)
	default:
		stages = append(stages, unusedNode, usedNode)
	}

	for _, stage := range stages {
		fitting := s.spread(slices.DeleteFunc(slices.Clone(places), func(p place) bool { return !stage(p) }), replicas, v, ignoreFailed)
		if len(fitting) > 0 {
			return fitting
		}
	}

	return nil
}

// places are the disks with room on the nodes that work. Source: ListSchedulableNodes, getNodeCandidates,
// filterNodeDisksForReplica.
func (s *State) places(r *lh.Replica, replicas []*lh.Replica, v *lh.Volume) []place {
	var places []place

	image := s.BackingImages[v.Spec.BackingImage]

	for _, n := range sorted(s.Nodes) {
		if !s.nodeTakes(n, r, v) || (image != nil && !s.selects(image.Spec.NodeSelector, n.Spec.Tags, s.on(SettingAllowEmptyNodeSelector))) {
			continue
		}

		for _, name := range sortedKeys(n.Status.DiskStatus) {
			spec, status := n.Spec.Disks[name], n.Status.DiskStatus[name]
			if !s.diskTakes(n, name, replicas, v) ||
				(image != nil && !s.selects(image.Spec.DiskSelector, spec.Tags, s.on(SettingAllowEmptyDiskSelector))) {
				continue
			}

			places = append(places, place{
				node: n.Name, disk: name, uuid: status.DiskUUID, path: spec.Path, zone: n.Status.Zone,
				room: status.StorageAvailable - spec.StorageReserved - status.StorageScheduled,
			})
		}
	}

	// Longhorn spreads what is in use evenly; the disk with most room left does that.
	slices.SortStableFunc(places, func(a, b place) int {
		switch {
		case a.room > b.room:
			return -1
		case a.room < b.room:
			return 1
		}

		return 0
	})

	return places
}

func (s *State) nodeTakes(n *lh.Node, r *lh.Replica, v *lh.Volume) bool {
	return s.nodeSchedulable(n) &&
		(r.Spec.HardNodeAffinity == "" || r.Spec.HardNodeAffinity == n.Name) &&
		s.instanceManagerReady(n.Name, v.Spec.DataEngine) &&
		s.imageReady(n.Name, v) &&
		s.selects(v.Spec.NodeSelector, n.Spec.Tags, s.on(SettingAllowEmptyNodeSelector))
}

// nodeSchedulable is whether a node takes new replicas at all.
func (s *State) nodeSchedulable(n *lh.Node) bool {
	return n.DeletionTimestamp.IsZero() && n.Spec.AllowScheduling &&
		isTrue(n.Status.Conditions, lh.ConditionReady) && isTrue(n.Status.Conditions, lh.ConditionSchedulable)
}

func (s *State) diskTakes(n *lh.Node, name string, replicas []*lh.Replica, v *lh.Volume) bool {
	spec, there := n.Spec.Disks[name]
	status := n.Status.DiskStatus[name]

	if !there || !spec.AllowScheduling || spec.EvictionRequested || !isTrue(status.Conditions, lh.ConditionSchedulable) ||
		engineOfDisk(spec) != v.Spec.DataEngine || !s.selects(v.Spec.DiskSelector, spec.Tags, s.on(SettingAllowEmptyDiskSelector)) {
		return false
	}

	room := s.space(spec, &status)

	for _, r := range replicas {
		if _, counted := status.ScheduledReplica[r.Name]; !counted && r.Spec.NodeID == n.Name {
			room.scheduled += r.Spec.VolumeSize
		}
	}

	return room.refuses(v.Spec.Size, v.Status.ActualSize) == ""
}

// usage counts the nodes and zones of a volume's replicas. Failed replicas count while they may be used again. Source:
// getCurrentNodesAndZones.
func (s *State) usage(replicas []*lh.Replica, places []place, replenishing, ignoreFailed bool) usage {
	used := usage{
		nodes: map[string]bool{}, zones: map[string]bool{}, onlyEvictingNode: map[string]bool{}, onlyEvicting: map[string]bool{},
	}
	zones := map[string]string{}

	for _, p := range places {
		zones[p.node] = p.zone
	}

	for _, r := range replicas {
		if r.Spec.NodeID == "" || !r.DeletionTimestamp.IsZero() {
			continue
		}

		if r.Spec.FailedAt != "" && (ignoreFailed || replenishing || !reusable(r)) {
			continue
		}

		zone, listed := zones[r.Spec.NodeID]
		if !listed {
			n := s.Nodes[r.Spec.NodeID]
			if n == nil || !s.nodeSchedulable(n) {
				continue
			}

			zone = n.Status.Zone
		}

		evictingNode, seenNode := used.onlyEvictingNode[r.Spec.NodeID]
		used.onlyEvictingNode[r.Spec.NodeID] = r.Spec.EvictionRequested && (!seenNode || evictingNode)

		evictingZone, seenZone := used.onlyEvicting[zone]
		used.onlyEvicting[zone] = r.Spec.EvictionRequested && (!seenZone || evictingZone)

		used.nodes[r.Spec.NodeID], used.zones[zone] = true, true
	}

	return used
}

// spread leaves the disks without a replica of the volume, if there are any, or if the disks must differ. Source:
// filterDisksWithMatchingReplicas.
func (s *State) spread(places []place, replicas []*lh.Replica, v *lh.Volume, ignoreFailed bool) []place {
	onDisk := map[string]bool{}

	for _, r := range replicas {
		if r.Spec.FailedAt == "" || (!ignoreFailed && reusable(r)) {
			onDisk[r.Spec.DiskID] = true
		}
	}

	empty := slices.DeleteFunc(slices.Clone(places), func(p place) bool { return onDisk[p.uuid] })
	if len(empty) > 0 || !s.override(SettingReplicaDiskSoftAffinity, v.Spec.ReplicaDiskSoftAntiAffinity) {
		return empty
	}

	return places
}

// schedule puts a new replica on a disk, and says whether it could.
func (s *State) schedule(r *lh.Replica, v *lh.Volume) bool {
	replicas := s.replicasOf(v.Name)
	places := s.candidates(r, replicas, v)

	if v.Spec.DataLocality == lh.DataLocalityBestEffort && v.Spec.NodeID != "" {
		local := slices.DeleteFunc(slices.Clone(places), func(p place) bool { return p.node != v.Spec.NodeID })
		places = append(local, places...)
	}

	if len(places) == 0 {
		return false
	}

	r.Spec.NodeID, r.Spec.DiskID, r.Spec.DiskPath = places[0].node, places[0].uuid, places[0].path
	r.Spec.DataDirectoryName = v.Name + "-" + digest("directory", r.Name)[:8]
	setLabels(r)

	return true
}

// reusable is whether a failed replica may be used again some day. Source: IsPotentiallyReusableReplica.
func reusable(r *lh.Replica) bool {
	return r.Spec.FailedAt != "" && r.Spec.NodeID != "" && r.Spec.DiskID != "" &&
		r.Spec.RebuildRetryCount < maxRebuildRetries && !r.Spec.EvictionRequested
}

// reuse returns the failed replica to use again, the latest to fail, or nil. Source: CheckAndReuseFailedReplica,
// isFailedReplicaReusable.
func (s *State) reuse(v *lh.Volume, affinity string) *lh.Replica {
	if v.Spec.DataEngine == lh.DataEngineV2 && s.setting(SettingV2FastRebuild, lh.DataEngineV2) != "true" {
		return nil
	}

	var (
		replicas = s.replicasOf(v.Name)
		places   []place
		best     *lh.Replica
	)

	for _, r := range replicas {
		if s.reusableNow(r, v, affinity) {
			places = append(places, place{node: r.Spec.NodeID, uuid: r.Spec.DiskID, zone: s.Nodes[r.Spec.NodeID].Status.Zone})
		}
	}

	for _, p := range s.choose(places, s.usage(replicas, places, s.replenishing(v), true), replicas, v, true) {
		for _, r := range replicas {
			if r.Spec.DiskID == p.uuid && s.reusableNow(r, v, affinity) && (best == nil || r.Spec.FailedAt > best.Spec.FailedAt) {
				best = r
			}
		}
	}

	return best
}

func (s *State) reusableNow(r *lh.Replica, v *lh.Volume, affinity string) bool {
	if !reusable(r) || !r.Spec.Active || (affinity != "" && r.Spec.NodeID != affinity) {
		return false
	}

	n, name := s.disk(r.Spec.DiskID)
	if n == nil || n.Name != r.Spec.NodeID || !s.nodeSchedulable(n) {
		return false
	}

	spec, status := n.Spec.Disks[name], n.Status.DiskStatus[name]
	schedulable := lh.FindCondition(status.Conditions, lh.ConditionSchedulable)

	// A disk that has too much scheduled, and still has room, keeps what it had.
	if schedulable.Status != lh.ConditionTrue &&
		(schedulable.Reason != lh.ReasonDiskPressure || status.StorageAvailable <= status.StorageMaximum*s.number(SettingMinimalAvailable)/100) {
		return false
	}

	return isTrue(status.Conditions, lh.ConditionReady) && spec.AllowScheduling && !spec.EvictionRequested &&
		s.selects(v.Spec.DiskSelector, spec.Tags, s.on(SettingAllowEmptyDiskSelector)) &&
		s.instanceManagerReady(n.Name, r.Spec.DataEngine) && s.imageReady(n.Name, v)
}

// replenishing is whether a degraded volume has waited long enough for its failed replicas.
func (s *State) replenishing(v *lh.Volume) bool {
	return v.Status.Robustness == lh.RobustnessDegraded && s.replenishIn(v) <= 0
}

func (s *State) replenishIn(v *lh.Volume) time.Duration {
	return s.seconds(SettingReplenishmentWait) - s.since(v.Status.LastDegradedAt)
}

// mayAdd is whether a new replica may be made now. A degraded volume waits for a replica that may be used again. Source:
// RequireNewReplica.
func (s *State) mayAdd(v *lh.Volume, affinity string) bool {
	if v.Status.Robustness != lh.RobustnessDegraded || affinity != "" ||
		(v.Spec.DataEngine == lh.DataEngineV2 && s.setting(SettingV2FastRebuild, lh.DataEngineV2) != "true") ||
		!slices.ContainsFunc(s.replicasOf(v.Name), reusable) {
		return true
	}

	wait := s.replenishIn(v)
	s.wakeAt(s.Now.Add(wait))

	return wait <= 0
}
