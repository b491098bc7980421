// SPDX-License-Identifier: Apache-2.0

package model

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	lh "github.com/maesh-dev/ichor/test/longhornsim/api/v1beta2"
)

// priorities of tickets, by who wants them. Source: k8s/pkg/apis/longhorn/v1beta2/volumeattachment.go.
var priorities = map[string]int{
	lh.AttacherAPI: 1000, lh.AttacherCSI: 900, lh.AttacherShareManager: 900,
	lh.AttacherEviction: 800, lh.AttacherRebuilding: 800, lh.AttacherBackup: 800, lh.AttacherSnapshot: 800,
}

// salvageWindow is how far apart replicas may have failed that are salvaged together (AutoSalvageTimeLimit).
const salvageWindow = time.Minute

func (s *State) ensureAttachment(v *lh.Volume) {
	if s.VolumeAttachments[v.Name] == nil {
		s.VolumeAttachments[v.Name] = &lh.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: v.Name, Namespace: s.Namespace, Labels: map[string]string{labelVolume: v.Name}},
			Spec:       lh.VolumeAttachmentSpec{Volume: v.Name},
		}
	}
}

func setTicket(va *lh.VolumeAttachment, ticket lh.AttachmentTicket) {
	if va.Spec.AttachmentTickets == nil {
		va.Spec.AttachmentTickets = map[string]lh.AttachmentTicket{}
	}

	va.Spec.AttachmentTickets[ticket.ID] = ticket
}

// syncAttachments decides where each volume shall be attached: where it is, as long as somebody wants that and nobody with a
// higher priority wants another place. Source: controller/volume_attachment_controller.go.
func (s *State) syncAttachments() {
	for _, va := range sorted(s.VolumeAttachments) {
		v := s.Volumes[va.Spec.Volume]
		if v == nil {
			delete(s.VolumeAttachments, va.Name)

			continue
		}

		s.dropManualTickets(va)

		best, here := s.ranked(v, va)

		switch {
		case best == nil:
			v.Spec.NodeID = ""
		case v.Spec.NodeID == "" && v.Status.State == lh.VolumeDetached:
			v.Spec.NodeID = best.NodeID
		case v.Spec.NodeID != "" && here < priorities[best.Type]:
			v.Spec.NodeID = ""
		}

		va.Status.AttachmentTicketStatuses = nil

		for id, ticket := range va.Spec.AttachmentTickets {
			satisfied := v.Status.State == lh.VolumeAttached && v.Status.CurrentNodeID == ticket.NodeID
			if served(v) && ticket.Type == lh.AttacherCSI {
				sm := s.ShareManagers[v.Name]
				satisfied = sm != nil && sm.Status.State == lh.ManagerRunning
			}

			if va.Status.AttachmentTicketStatuses == nil {
				va.Status.AttachmentTicketStatuses = map[string]lh.AttachmentTicketStatus{}
			}

			va.Status.AttachmentTicketStatuses[id] = lh.AttachmentTicketStatus{ID: id, Satisfied: satisfied, Generation: ticket.Generation}
		}
	}
}

// ranked returns the ticket with the highest priority, and the priority of the best that wants the volume where it is.
func (s *State) ranked(v *lh.Volume, va *lh.VolumeAttachment) (best *lh.AttachmentTicket, here int) {
	for _, id := range sortedKeys(va.Spec.AttachmentTickets) {
		ticket := va.Spec.AttachmentTickets[id]
		if served(v) && ticket.Type == lh.AttacherCSI {
			continue // the share manager attaches the volume
		}

		if best == nil || priorities[ticket.Type] > priorities[best.Type] {
			best = &ticket
		}

		if ticket.NodeID == v.Spec.NodeID {
			here = max(here, priorities[ticket.Type])
		}
	}

	return best, here
}

// dropManualTickets detaches what a user has attached to a node that is cordoned, if the setting says so (longhorn#9183).
func (s *State) dropManualTickets(va *lh.VolumeAttachment) {
	if !s.on(SettingDetachManuallyAttached) {
		return
	}

	maps.DeleteFunc(va.Spec.AttachmentTickets, func(_ string, ticket lh.AttachmentTicket) bool {
		return ticket.Type == lh.AttacherAPI && s.cordoned(ticket.NodeID)
	})
}

// syncState moves a volume between detached and attached. Source: reconcileAttachDetachStateMachine.
func (s *State) syncState(v *lh.Volume, e *lh.Engine) {
	switch {
	case v.Status.State == lh.VolumeCreating:
		v.Status.State = lh.VolumeDetached
	case v.Spec.NodeID != "" && v.Status.State == lh.VolumeDetached && v.Status.Robustness != lh.RobustnessFaulted:
		v.Status.State, v.Status.CurrentNodeID = lh.VolumeAttaching, v.Spec.NodeID
		s.Reality.attaching[v.Name] = s.Now
	case v.Status.State == lh.VolumeAttaching && v.Spec.NodeID == v.Status.CurrentNodeID:
		s.open(v, e)
	case v.Status.State == lh.VolumeAttached && s.stillAttached(v, e):
		v.Status.FrontendDisabled = v.Spec.DisableFrontend
	case v.Status.State == lh.VolumeDetached:
		if v.Status.Robustness != lh.RobustnessFaulted {
			v.Status.Robustness = lh.RobustnessUnknown
		}
	default:
		v.Status.State = lh.VolumeDetaching
		s.close(v, e)
	}
}

// stillAttached is whether an attached volume shall stay so. An engine of which nothing is known is left alone; one that died
// is started again after the volume was detached.
func (s *State) stillAttached(v *lh.Volume, e *lh.Engine) bool {
	if v.Spec.NodeID != v.Status.CurrentNodeID {
		return false
	}

	return s.runs(e.Name) || !s.alive(v.Status.CurrentNodeID)
}

// open starts the replicas that can start, marks the others failed, and starts the engine when they run.
func (s *State) open(v *lh.Volume, e *lh.Engine) {
	if !s.alive(v.Spec.NodeID) || !s.instanceManagerReady(v.Spec.NodeID, v.Spec.DataEngine) || s.Reality.Faults.AttachStuck[v.Name] {
		return
	}

	if done := s.Reality.attaching[v.Name].Add(s.Reality.Pace.Attach); s.Now.Before(done) {
		s.wakeAt(done)

		return
	}

	replicas := s.replicasOf(v.Name)
	first := !slices.ContainsFunc(replicas, func(r *lh.Replica) bool { return r.Spec.HealthyAt != "" || r.Spec.LastHealthyAt != "" })
	s.startReplicas(v, replicas)

	modes := map[string]lh.ReplicaMode{}

	for _, r := range replicas {
		if r.Spec.FailedAt != "" || r.Spec.DesireState != lh.InstanceRunning {
			continue
		}

		if !s.runs(r.Name) {
			return // it starts
		}

		if r.Spec.HealthyAt != "" || first {
			modes[r.Name] = lh.ModeRW
		}
	}

	if len(modes) == 0 {
		return // salvage has the next word
	}

	e.Spec.NodeID, e.Spec.DesireState = v.Spec.NodeID, lh.InstanceRunning
	e.Status.InstanceManagerName, e.Status.OwnerID = InstanceManagerName(v.Spec.NodeID, v.Spec.DataEngine), v.Spec.NodeID
	e.Status.CurrentState, e.Status.Started, e.Status.CurrentSize = lh.InstanceRunning, true, v.Spec.Size
	e.Status.CurrentImage, e.Status.ReplicaModeMap = v.Spec.Image, modes
	s.Reality.processes[e.Name] = process{node: v.Spec.NodeID, engine: v.Spec.DataEngine}
	delete(s.Reality.attaching, v.Name)

	v.Status.State, v.Status.CurrentImage = lh.VolumeAttached, v.Spec.Image
	if v.Status.ActualSize == 0 {
		v.Status.ActualSize = v.Spec.Size / 10
	}
}

// startReplicas has the replicas run that can. One whose node or disk is not there has failed. Source:
// openVolumeDependentResources.
func (s *State) startReplicas(v *lh.Volume, replicas []*lh.Replica) {
	for _, r := range replicas {
		if r.Spec.NodeID == "" || r.Spec.FailedAt != "" || s.runs(r.Name) {
			continue
		}

		switch {
		case s.launchable(r):
			if r.Spec.DesireState != lh.InstanceRunning || r.Status.CurrentState != lh.InstanceError {
				r.Spec.DesireState = lh.InstanceRunning
			}
		case v.Status.State == lh.VolumeAttaching:
			s.failReplica(r)
		}
	}
}

func (s *State) launchable(r *lh.Replica) bool {
	return s.alive(r.Spec.NodeID) && !s.downOrDeleted(r.Spec.NodeID) && s.diskReady(r.Spec.DiskID) &&
		s.instanceManagerReady(r.Spec.NodeID, r.Spec.DataEngine)
}

// close stops the engine, then the replicas.
func (s *State) close(v *lh.Volume, e *lh.Engine) {
	if s.runs(e.Name) && s.Reality.Faults.EngineStuck[v.Name] {
		return
	}

	s.Reality.Kill(e.Name)
	e.Spec.NodeID, e.Spec.DesireState = "", lh.InstanceStopped
	e.Status.CurrentState, e.Status.Started, e.Status.InstanceManagerName = lh.InstanceStopped, false, ""
	e.Status.ReplicaModeMap, e.Status.RebuildStatus, e.Status.CurrentReplicaAddressMap = nil, nil, nil

	for _, r := range s.replicasOf(v.Name) {
		r.Spec.DesireState = lh.InstanceStopped

		// A copy that was being made has no use.
		if _, making := s.Reality.rebuilds[r.Name]; making && r.Spec.HealthyAt == "" {
			s.failReplica(r)
		}

		s.Reality.Kill(r.Name)
	}

	delete(s.Reality.attaching, v.Name)
	v.Status.State, v.Status.CurrentNodeID = lh.VolumeDetached, ""

	if v.Status.Robustness != lh.RobustnessFaulted {
		v.Status.Robustness = lh.RobustnessUnknown
	}
}

// salvage brings a volume back whose replicas have all failed: those that failed last, as soon as their nodes and disks are
// there again. Source: ReconcileVolumeState, isAutoSalvageNeeded.
func (s *State) salvage(v *lh.Volume, e *lh.Engine) {
	replicas := s.replicasOf(v.Name)
	failed := slices.ContainsFunc(replicas, func(r *lh.Replica) bool { return r.Spec.FailedAt != "" })
	healthy := slices.ContainsFunc(replicas, func(r *lh.Replica) bool { return r.Spec.FailedAt == "" && r.Spec.HealthyAt != "" && r.Spec.Active })

	if healthy || !failed || (firstAttachment(replicas) && slices.ContainsFunc(replicas, func(r *lh.Replica) bool { return r.Spec.FailedAt == "" })) {
		if v.Status.Robustness == lh.RobustnessFaulted && v.Status.State == lh.VolumeDetached {
			v.Status.Robustness = lh.RobustnessUnknown
		}

		return
	}

	v.Status.Robustness = lh.RobustnessFaulted

	if v.Status.State == lh.VolumeAttaching || v.Status.State == lh.VolumeAttached {
		v.Status.State = lh.VolumeDetaching
		s.close(v, e)
	}

	if !s.on(SettingAutoSalvage) || v.Status.State != lh.VolumeDetached || v.Status.IsStandby || v.Status.RestoreRequired {
		return
	}

	if s.revive(replicas) {
		v.Status.Robustness, v.Status.RemountRequestedAt = lh.RobustnessUnknown, s.stamp()
	}
}

// revive takes the mark of failure from the replicas that can be salvaged.
func (s *State) revive(replicas []*lh.Replica) bool {
	var (
		usable []*lh.Replica
		last   time.Time
	)

	for _, r := range replicas {
		if r.Spec.HealthyAt == "" || s.downOrDeleted(r.Spec.NodeID) || !s.launchable(r) || !s.diskSchedulable(r.Spec.DiskID) {
			continue
		}

		failed, err := time.Parse(time.RFC3339, r.Spec.FailedAt)
		if err != nil {
			continue
		}

		usable = append(usable, r)

		if failed.After(last) {
			last = failed
		}
	}

	for _, r := range usable {
		if failed, _ := time.Parse(time.RFC3339, r.Spec.FailedAt); last.Sub(failed) <= salvageWindow {
			r.Spec.FailedAt = ""
		}
	}

	return len(usable) > 0
}

func (s *State) diskSchedulable(uuid string) bool {
	n, name := s.disk(uuid)

	return n != nil && isTrue(n.Status.DiskStatus[name].Conditions, lh.ConditionSchedulable)
}

func firstAttachment(replicas []*lh.Replica) bool {
	return !slices.ContainsFunc(replicas, func(r *lh.Replica) bool { return r.Spec.HealthyAt != "" })
}

// syncRebuildingTickets attaches volumes that are detached and lack copies, if that is wanted. Source: Longhorn 1.12
// documentation, offline replica rebuilding; controller/volume_rebuilding_controller.go.
func (s *State) syncRebuildingTickets() {
	for _, v := range sorted(s.Volumes) {
		va := s.VolumeAttachments[v.Name]
		if va == nil || sharded(v) {
			continue
		}

		id := lh.AttacherRebuilding + "-" + v.Name
		_, attachedForIt := va.Spec.AttachmentTickets[id]

		if s.wantsOfflineRebuild(v, attachedForIt) {
			setTicket(va, lh.AttachmentTicket{ID: id, Type: lh.AttacherRebuilding, NodeID: v.Status.OwnerID})
		} else {
			delete(va.Spec.AttachmentTickets, id)
		}
	}
}

func (s *State) wantsOfflineRebuild(v *lh.Volume, attachedForIt bool) bool {
	if !s.override(SettingOfflineRebuilding, v.Spec.OfflineRebuilding) || v.Status.OwnerID == "" ||
		(v.Status.State != lh.VolumeDetached && !attachedForIt) || v.Status.Robustness == lh.RobustnessFaulted {
		return false
	}

	replicas := s.replicasOf(v.Name)
	healthy := 0

	for _, r := range replicas {
		if availableHealthy(r) && s.launchable(r) {
			healthy++
		}
	}

	return healthy > 0 && healthy < v.Spec.NumberOfReplicas && isTrue(v.Status.Conditions, lh.VolumeConditionScheduled)
}
