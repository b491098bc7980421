// SPDX-License-Identifier: Apache-2.0

package model

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	lh "github.com/maesh-dev/ichor/test/longhornsim/api/v1beta2"
)

func shareManagerPod(volume string) string { return "share-manager-" + volume }

// served is whether a volume is attached to a share manager, and its users are clients of that.
func served(v *lh.Volume) bool {
	return v.Spec.AccessMode == lh.AccessReadWriteMany && !v.Spec.Migratable
}

// syncShareManagers runs an NFS server for each volume that many may write and somebody uses. When its pod is evicted, it goes
// to another node, and the volume with it. Source: controller/share_manager_controller.go.
func (s *State) syncShareManagers() {
	for _, v := range sorted(s.Volumes) {
		if !served(v) || s.VolumeAttachments[v.Name] == nil {
			continue
		}

		sm := s.ShareManagers[v.Name]
		if sm == nil {
			sm = &lh.ShareManager{
				ObjectMeta: metav1.ObjectMeta{Name: v.Name, Namespace: s.Namespace, Labels: map[string]string{labelVolume: v.Name}},
				Spec:       lh.ShareManagerSpec{Image: "longhornio/longhorn-share-manager:v1.12.1"},
				Status:     lh.ShareManagerStatus{State: lh.ManagerStopped},
			}
			s.ShareManagers[v.Name] = sm
		}

		s.syncShareManager(v, sm)
	}

	for name := range s.ShareManagers {
		if v := s.Volumes[name]; v == nil || !served(v) {
			delete(s.ShareManagers, name)
			delete(s.Pods, shareManagerPod(name))
		}
	}
}

func (s *State) syncShareManager(v *lh.Volume, sm *lh.ShareManager) {
	va := s.VolumeAttachments[v.Name]
	id := lh.AttacherShareManager + "-" + v.Name
	used := false

	for _, ticket := range va.Spec.AttachmentTickets {
		used = used || ticket.Type == lh.AttacherCSI
	}

	pod := s.Pods[shareManagerPod(v.Name)]

	if !used {
		sm.Status.State, sm.Status.Endpoint = lh.ManagerStopped, ""
		v.Status.ShareState, v.Status.ShareEndpoint = string(sm.Status.State), ""

		delete(va.Spec.AttachmentTickets, id)
		delete(s.Pods, shareManagerPod(v.Name))

		return
	}

	// A server that lost its pod is started where there is room for it; a cordoned node takes none.
	if pod == nil || !pod.DeletionTimestamp.IsZero() || !s.alive(sm.Status.OwnerID) {
		if pod != nil && !s.alive(sm.Status.OwnerID) && s.downOrDeleted(sm.Status.OwnerID) {
			delete(s.Pods, shareManagerPod(v.Name))

			pod = nil
		}

		sm.Status.State = lh.ManagerStarting
		if pod == nil {
			sm.Status.OwnerID = s.placeForShareManager(sm.Status.OwnerID)
		}
	}

	if sm.Status.OwnerID == "" {
		return
	}

	setTicket(va, lh.AttachmentTicket{ID: id, Type: lh.AttacherShareManager, NodeID: sm.Status.OwnerID})

	if v.Status.State != lh.VolumeAttached || v.Status.CurrentNodeID != sm.Status.OwnerID {
		return
	}

	if pod == nil {
		s.Pods[shareManagerPod(v.Name)] = s.newPod(shareManagerPod(v.Name), sm.Status.OwnerID, sm.Spec.Image, map[string]string{
			LabelComponent: ComponentShareManager, LabelShareManager: v.Name, LabelManagedBy: "longhorn-manager",
		})

		return
	}

	if pod.DeletionTimestamp.IsZero() {
		sm.Status.State, sm.Status.Endpoint = lh.ManagerRunning, "nfs://"+shareManagerPod(v.Name)+"/"+v.Name
		v.Status.ShareState, v.Status.ShareEndpoint = string(sm.Status.State), sm.Status.Endpoint
	}
}

func (s *State) placeForShareManager(now string) string {
	fits := func(node string) bool {
		n := s.Nodes[node]

		return n != nil && s.managerUp(node) && !s.cordoned(node) && isTrue(n.Status.Conditions, lh.ConditionReady)
	}

	if fits(now) {
		return now
	}

	for _, n := range sorted(s.Nodes) {
		if fits(n.Name) {
			return n.Name
		}
	}

	return ""
}
