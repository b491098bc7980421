// SPDX-License-Identifier: Apache-2.0

package longhornsim

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	lh "github.com/maesh-dev/ichor/test/longhornsim/api/v1beta2"
	"github.com/maesh-dev/ichor/test/longhornsim/model"
)

const (
	// ticketPrefix begins the IDs of the tickets that belong to Kubernetes' VolumeAttachments, whose names they are.
	ticketPrefix = "csi-"

	attacherFinalizer = "external-attacher/driver-longhorn-io"
)

// cluster is what Kubernetes wants of Longhorn's volumes.
type cluster struct {
	// handles are the volumes' names, by that of the PersistentVolume.
	handles     map[string]string
	volumes     []corev1.PersistentVolume
	attachments []storagev1.VolumeAttachment
	pods        []corev1.Pod
}

// wanted turns Kubernetes' VolumeAttachments into tickets, as the CSI driver does.
func (s *Sim) wanted(o *objects, state *model.State) *cluster {
	c := &cluster{handles: map[string]string{}}

	for _, pv := range o.kubeVolumes.Items {
		if state.Volumes[pv.Spec.CSI.VolumeHandle] != nil {
			c.handles[pv.Name] = pv.Spec.CSI.VolumeHandle
			c.volumes = append(c.volumes, pv)
		}
	}

	for _, attachment := range o.kubeAttachments.Items {
		if attachment.Spec.Attacher == csiDriver && c.handles[ptr.Deref(attachment.Spec.Source.PersistentVolumeName, "")] != "" {
			c.attachments = append(c.attachments, attachment)
		}
	}

	if s.options.Workloads {
		c.pods = slices.DeleteFunc(o.pods.Items, func(pod corev1.Pod) bool { return state.KubeNodes[pod.Spec.NodeName] == nil })
	}

	c.tickets(state)

	return c
}

// tickets writes a ticket for each attachment that is wanted, and takes away those of attachments that are not.
func (c *cluster) tickets(state *model.State) {
	wanted := map[string]bool{}

	for _, attachment := range c.attachments {
		va := state.VolumeAttachments[c.handles[ptr.Deref(attachment.Spec.Source.PersistentVolumeName, "")]]
		if va == nil || !attachment.DeletionTimestamp.IsZero() {
			continue
		}

		wanted[attachment.Name] = true

		if va.Spec.AttachmentTickets == nil {
			va.Spec.AttachmentTickets = map[string]lh.AttachmentTicket{}
		}

		va.Spec.AttachmentTickets[attachment.Name] = lh.AttachmentTicket{
			ID: attachment.Name, Type: lh.AttacherCSI, NodeID: attachment.Spec.NodeName,
		}
	}

	for _, va := range state.VolumeAttachments {
		maps.DeleteFunc(va.Spec.AttachmentTickets, func(id string, ticket lh.AttachmentTicket) bool {
			return ticket.Type == lh.AttacherCSI && strings.HasPrefix(id, ticketPrefix) && !wanted[id]
		})
	}
}

// writeKubernetes answers the VolumeAttachments, and plays what Options.Workloads says. It says whether it has done anything.
func (s *Sim) writeKubernetes(ctx context.Context, state *model.State, c *cluster) (bool, error) {
	done := false

	for i := range c.attachments {
		changed, err := s.answer(ctx, state, c, &c.attachments[i])
		if err != nil {
			return false, fmt.Errorf("attachment %s: %w", c.attachments[i].Name, err)
		}

		done = done || changed
	}

	if !s.options.Workloads {
		return done, nil
	}

	for i := range c.pods {
		changed, err := s.playKubelet(ctx, state, &c.pods[i])
		if err != nil {
			return false, fmt.Errorf("pod %s/%s: %w", c.pods[i].Namespace, c.pods[i].Name, err)
		}

		done = done || changed
	}

	changed, err := s.playAttachDetach(ctx, c)

	return done || changed, err
}

// answer says that a volume is attached when it is, and lets an attachment go when it is not.
func (s *Sim) answer(ctx context.Context, state *model.State, c *cluster, attachment *storagev1.VolumeAttachment) (bool, error) {
	v := state.Volumes[c.handles[ptr.Deref(attachment.Spec.Source.PersistentVolumeName, "")]]

	if !attachment.DeletionTimestamp.IsZero() {
		detached := v.Status.CurrentNodeID != attachment.Spec.NodeName || v.Spec.AccessMode == lh.AccessReadWriteMany
		if !detached || !controllerutil.RemoveFinalizer(attachment, attacherFinalizer) {
			return false, nil
		}

		return true, client.IgnoreNotFound(s.client.Update(ctx, attachment))
	}

	done := false

	if controllerutil.AddFinalizer(attachment, attacherFinalizer) {
		if err := s.client.Update(ctx, attachment); err != nil {
			return false, err
		}

		done = true
	}

	ticket := state.VolumeAttachments[v.Name].Status.AttachmentTicketStatuses[attachment.Name]
	if attachment.Status.Attached == ticket.Satisfied {
		return done, nil
	}

	attachment.Status.Attached = ticket.Satisfied

	return true, s.client.Status().Update(ctx, attachment)
}

// playKubelet runs a pod of a node that runs, and ends it when it is deleted.
func (s *Sim) playKubelet(ctx context.Context, state *model.State, pod *corev1.Pod) (bool, error) {
	if !state.Alive(pod.Spec.NodeName) {
		return false, nil
	}

	if !pod.DeletionTimestamp.IsZero() {
		return true, client.IgnoreNotFound(s.client.Delete(ctx, pod, client.GracePeriodSeconds(0)))
	}

	if pod.Status.Phase != corev1.PodPending && pod.Status.Phase != "" {
		return false, nil
	}

	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}

	return true, client.IgnoreNotFound(s.client.Status().Update(ctx, pod))
}

// playAttachDetach wants a volume attached to each node with a pod that uses it.
func (s *Sim) playAttachDetach(ctx context.Context, c *cluster) (bool, error) {
	wanted := map[string]*storagev1.VolumeAttachment{}

	for _, pv := range c.volumes {
		for _, pod := range c.pods {
			if ref := pv.Spec.ClaimRef; ref == nil || pod.Namespace != ref.Namespace || !uses(&pod, ref.Name) {
				continue
			}

			hash := sha256.Sum256([]byte(pv.Spec.CSI.VolumeHandle + csiDriver + pod.Spec.NodeName))
			name := ticketPrefix + hex.EncodeToString(hash[:])
			wanted[name] = &storagev1.VolumeAttachment{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec: storagev1.VolumeAttachmentSpec{
					Attacher: csiDriver, NodeName: pod.Spec.NodeName,
					Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new(pv.Name)},
				},
			}
		}
	}

	done := false

	for i := range c.attachments {
		attachment := &c.attachments[i]
		if wanted[attachment.Name] == nil && attachment.DeletionTimestamp.IsZero() {
			if err := s.client.Delete(ctx, attachment); client.IgnoreNotFound(err) != nil {
				return false, err
			}

			done = true
		}

		delete(wanted, attachment.Name)
	}

	for _, attachment := range wanted {
		if err := s.client.Create(ctx, attachment); err != nil && !apierrors.IsAlreadyExists(err) {
			return false, err
		}

		done = true
	}

	return done, nil
}
