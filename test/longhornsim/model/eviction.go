// SPDX-License-Identifier: Apache-2.0

package model

import (
	lh "github.com/maesh-dev/ichor/test/longhornsim/api/v1beta2"
)

// syncEvictionRequests hands the wishes of nodes and disks, and of the drain policy, down to the replicas and the files of
// backing images. Each node's own manager does it: on a node that does not run they stay as they are. Source:
// controller/node_controller.go, syncReplicaEvictionRequested and syncBackingImageEvictionRequested.
func (s *State) syncEvictionRequests() {
	for _, n := range sorted(s.Nodes) {
		if !s.managerUp(n.Name) {
			continue
		}

		n.Status.AutoEvicting = false

		for _, name := range sortedKeys(n.Status.DiskStatus) {
			spec, status := n.Spec.Disks[name], n.Status.DiskStatus[name]
			requested := n.Spec.EvictionRequested || spec.EvictionRequested

			for replica := range status.ScheduledReplica {
				r := s.Replicas[replica]
				if r == nil {
					continue
				}

				r.Spec.EvictionRequested = s.shouldEvict(n, requested, r)
				if r.Spec.EvictionRequested && !requested {
					n.Status.AutoEvicting = true
				}
			}

			s.requestFileEviction(status.DiskUUID, requested)
		}
	}
}

// shouldEvict is whether a replica shall leave its disk. Source: controller/node_controller.go, shouldEvictReplica.
func (s *State) shouldEvict(n *lh.Node, requested bool, r *lh.Replica) bool {
	if s.downOrDeleted(n.Name) {
		return false
	}

	if requested {
		return true
	}

	if !s.cordoned(n.Name) {
		return false
	}

	switch s.setting(SettingNodeDrainPolicy, lh.DataEngineV1) {
	case DrainBlockForEviction:
		return true
	case DrainBlockForEvictionIfLastR:
		elsewhere, known := s.protectedElsewhere(r.Spec.VolumeName, n.Name)

		return known && !elsewhere
	}

	return false
}

func (s *State) requestFileEviction(uuid string, requested bool) {
	for _, image := range s.BackingImages {
		if file, here := image.Spec.DiskFileSpecMap[uuid]; here {
			file.EvictionRequested = requested
			image.Spec.DiskFileSpecMap[uuid] = file
		}
	}
}

// protectedElsewhere is whether a volume has a healthy replica on another node that is not cordoned, whose instance manager
// runs and has a disruption budget. It is not known if a Kubernetes Node is missing that a healthy replica names: Longhorn
// returns an error then, and whoever asked goes no further (longhorn#10833). Source: datastore/longhorn.go,
// ListVolumePDBProtectedHealthyReplicasRO.
func (s *State) protectedElsewhere(volume, node string) (elsewhere, known bool) {
	for _, r := range s.replicasOf(volume) {
		if r.Spec.HealthyAt == "" || r.Spec.FailedAt != "" {
			continue
		}

		kube := s.KubeNodes[r.Spec.NodeID]
		if kube == nil {
			return false, false
		}

		im := s.instanceManager(r.Spec.NodeID, r.Spec.DataEngine)
		if kube.Spec.Unschedulable || im == nil || im.Status.CurrentState != lh.ManagerRunning || s.Budgets[im.Name] == nil {
			continue
		}

		if r.Spec.NodeID != node {
			elsewhere = true
		}
	}

	return elsewhere, true
}

// syncEvictionTickets attaches volumes that are detached and have a replica to evict, if each such replica has a disk to go
// to; if one has none, the volume stays detached, and nothing says so. Source: controller/volume_eviction_controller.go.
func (s *State) syncEvictionTickets() {
	for _, v := range sorted(s.Volumes) {
		va := s.VolumeAttachments[v.Name]
		if va == nil {
			continue
		}

		id := lh.AttacherEviction + "-" + v.Name

		switch {
		case !s.wantsEvictionTicket(v):
			if !s.Reality.Faults.TicketStays[v.Name] {
				delete(va.Spec.AttachmentTickets, id)
			}
		case va.Spec.AttachmentTickets[id].NodeID != v.Status.OwnerID:
			setTicket(va, lh.AttachmentTicket{
				ID: id, Type: lh.AttacherEviction, NodeID: v.Status.OwnerID, Parameters: map[string]string{"disableFrontend": "any"},
			})
		}
	}
}

func (s *State) wantsEvictionTicket(v *lh.Volume) bool {
	replicas := s.replicasOf(v.Name)
	evicting := false

	for _, r := range replicas {
		if !r.Spec.EvictionRequested {
			continue
		}

		evicting = true

		if evictionIsUseless(v) || (!s.hasPendingReplica(replicas) && len(s.candidates(r, replicas, v)) == 0) {
			return false
		}
	}

	return evicting && v.Status.OwnerID != ""
}

// evictionIsUseless is whether a volume's replica cannot move: a strict-local one is where its engine is.
func evictionIsUseless(v *lh.Volume) bool {
	return v.Spec.DataLocality == lh.DataLocalityStrictLocal
}

// hasPendingReplica is whether a new replica is being made already.
func (s *State) hasPendingReplica(replicas []*lh.Replica) bool {
	for _, r := range replicas {
		if r.Spec.HealthyAt == "" && r.Spec.FailedAt == "" && r.Spec.NodeID != "" {
			return true
		}
	}

	return false
}

// evict makes one more replica for a volume that is healthy and has some to evict. Source: controller/volume_controller.go,
// EvictReplicas.
func (s *State) evict(v *lh.Volume, e *lh.Engine, replicas []*lh.Replica, healthy int) {
	if evictionIsUseless(v) {
		return
	}

	for _, r := range replicas {
		if r.Spec.HealthyAt == "" && r.Spec.FailedAt == "" {
			return // one at a time
		}

		if r.Spec.EvictionRequested && e.Status.ReplicaModeMap[r.Name] == lh.ModeRW {
			healthy--
		}
	}

	if healthy < v.Spec.NumberOfReplicas {
		s.replenish(v, e, "")
	}
}

// removeEvicted deletes one replica that shall go, of a volume that has one more than it needs. One healthy replica always
// stays. Source: controller/volume_controller.go, cleanupEvictionRequestedReplicas.
func (s *State) removeEvicted(replicas []*lh.Replica) bool {
	last := ""

	for _, r := range replicas {
		if !availableHealthy(r) {
			continue
		}

		if !r.Spec.EvictionRequested {
			last = ""

			break
		}

		last = r.Name
	}

	for _, r := range replicas {
		if r.Spec.EvictionRequested && r.Name != last {
			s.deleteReplica(r)

			return true
		}
	}

	return false
}

// availableHealthy is Longhorn's own word for a replica with all data (datastore/longhorn.go, IsAvailableHealthyReplica).
func availableHealthy(r *lh.Replica) bool {
	return r.DeletionTimestamp.IsZero() && r.Spec.FailedAt == "" && r.Spec.HealthyAt != ""
}
