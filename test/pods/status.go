// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// report writes the status of a Pod, when it has changed.
func (r *Runner) report(ctx context.Context, object *corev1.Pod, now state) error {
	changed := object.DeepCopy()
	status := &changed.Status

	p, err := r.podOf(object)
	if err != nil {
		return err
	}

	status.PodIP, status.PodIPs = p.ip, []corev1.PodIP{{IP: p.ip}}
	status.Phase = corev1.PodPending

	container := object.Spec.Containers[0]
	told := corev1.ContainerStatus{
		Name: container.Name, Image: container.Image, RestartCount: now.restarts, Ready: now.ready, Started: new(now.waiting == ""),
	}

	if now.waiting == "" {
		status.Phase = corev1.PodRunning
		told.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now.started.Truncate(1e9))}
	} else {
		told.State.Waiting = &corev1.ContainerStateWaiting{Reason: now.waiting, Message: now.message}

		if now.restarts > 0 {
			status.Phase = corev1.PodRunning
		}
	}

	status.ContainerStatuses = []corev1.ContainerStatus{told}

	setCondition(status, corev1.PodScheduled, true)
	setCondition(status, corev1.PodInitialized, true)
	setCondition(status, corev1.ContainersReady, now.ready)
	setCondition(status, corev1.PodReady, now.ready)

	if equality.Semantic.DeepEqual(object.Status, changed.Status) {
		return nil
	}

	return client.IgnoreNotFound(r.Status().Patch(ctx, changed, client.MergeFrom(object)))
}

func setCondition(status *corev1.PodStatus, kind corev1.PodConditionType, is bool) {
	value := corev1.ConditionFalse
	if is {
		value = corev1.ConditionTrue
	}

	for i := range status.Conditions {
		condition := &status.Conditions[i]
		if condition.Type != kind {
			continue
		}

		if condition.Status != value {
			condition.Status, condition.LastTransitionTime = value, metav1.Now()
		}

		return
	}

	status.Conditions = append(status.Conditions, corev1.PodCondition{Type: kind, Status: value, LastTransitionTime: metav1.Now()})
}
