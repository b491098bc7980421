// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"context"
	"encoding/json"
	"maps"
	"net/netip"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// own sets the configured labels and annotations, and takes away those that it has set before and that the configuration
// no longer has: as the administrator on a control-plane node, as the node itself on a worker, whom the API server forbids
// some. Talos logs a refusal and goes on, and so does the stand-in, in LabelError. Source: Talos,
// internal/app/machined/pkg/controllers/k8s, NodeApplyController.
func (k *kubelet) own(ctx context.Context) {
	n := k.boot.node
	labels, annotations := k.boot.nodeLabels(k.config)
	err := k.apply(ctx, labels, annotations)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.labelError = err
}

func (k *kubelet) apply(ctx context.Context, labels, annotations map[string]string) error {
	node, err := k.nodes.Get(ctx, k.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	ownedLabels, err := json.Marshal(slices.Sorted(maps.Keys(labels)))
	if err != nil {
		return err
	}
	ownedAnnotations, err := json.Marshal(slices.Sorted(maps.Keys(annotations)))
	if err != nil {
		return err
	}
	setLabels, setAnnotations := withRemoved(labels, node, constants.AnnotationOwnedLabels), withRemoved(annotations, node, constants.AnnotationOwnedAnnotations)
	setAnnotations[constants.AnnotationOwnedLabels] = string(ownedLabels)
	setAnnotations[constants.AnnotationOwnedAnnotations] = string(ownedAnnotations)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": setLabels, "annotations": setAnnotations}})
	if err != nil {
		return err
	}
	patched, err := k.admin.Patch(ctx, k.name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err == nil {
		k.boot.see(patched)
	}
	return err
}

// withRemoved adds to what is to be set, as null, what was set before. An annotation of the Node lists that.
func withRemoved(wanted map[string]string, node *corev1.Node, listedIn string) map[string]any {
	all := stringMap(wanted)
	var before []string
	if json.Unmarshal([]byte(node.Annotations[listedIn]), &before) != nil {
		return all // there is no list yet
	}
	for _, key := range before {
		if _, kept := wanted[key]; !kept {
			all[key] = nil
		}
	}
	return all
}

// see takes note of the Node.
func (b *boot) see(node *corev1.Node) {
	seen := &k8s.NodeStatusSpec{
		Nodename: node.Name, Unschedulable: node.Spec.Unschedulable,
		Labels: maps.Clone(node.Labels), Annotations: maps.Clone(node.Annotations),
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			seen.NodeReady = condition.Status == corev1.ConditionTrue
		}
	}
	for _, cidr := range node.Spec.PodCIDRs {
		if prefix, err := netip.ParsePrefix(cidr); err == nil {
			seen.PodCIDRs = append(seen.PodCIDRs, prefix)
		}
	}
	b.mu.Lock()
	b.seen = seen
	b.mu.Unlock()
	b.publish()
}

// mirror shows the static pods that run as pods of the API server, as a kubelet does, with the versions that Talos gives
// them. A pod that changed is another pod.
func (k *kubelet) mirror(ctx context.Context, shown map[string]*corev1.Pod) {
	running := k.boot.runningPods()
	for _, id := range slices.Sorted(maps.Keys(running)) {
		name := id + "-" + k.name
		old := shown[name]
		delete(shown, name)
		if old != nil && old.Annotations[constants.AnnotationStaticPodConfigVersion] != running[id].version {
			k.remove(ctx, old)
			old = nil
		}
		if old == nil {
			created, err := k.createMirror(ctx, name, running[id])
			if err != nil {
				continue
			}
			old = created
		}
		k.showReadiness(ctx, old, running[id].ready)
	}
	for _, gone := range shown {
		k.remove(ctx, gone)
	}
}

func (k *kubelet) createMirror(ctx context.Context, name string, p pod) (*corev1.Pod, error) {
	node, err := k.nodes.Get(ctx, k.name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	annotations := p.annotations()
	annotations[corev1.MirrorPodAnnotationKey] = p.version
	mirrored := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: p.labels(), Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: k.name, UID: node.UID, Controller: new(true)}},
		},
		Spec: corev1.PodSpec{
			NodeName: k.name, HostNetwork: true, PriorityClassName: "system-cluster-critical",
			Containers:  []corev1.Container{{Name: p.id, Image: p.image}},
			Tolerations: []corev1.Toleration{{Effect: corev1.TaintEffectNoExecute, Operator: corev1.TolerationOpExists}},
		},
	}
	if k.boot.node.world.memory != nil {
		mirrored.OwnerReferences = nil // it would look for the Node in the Pod's namespace
	}
	created, err := k.pods(systemNamespace).Create(ctx, mirrored, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return k.pods(systemNamespace).Get(ctx, name, metav1.GetOptions{})
	}
	return created, err
}

// showReadiness keeps the status of a mirror pod. What fails is tried again at the next tick.
func (k *kubelet) showReadiness(ctx context.Context, mirrored *corev1.Pod, ready bool) {
	condition := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionStatus(boolWord(ready))}
	for _, known := range mirrored.Status.Conditions {
		if known.Type == condition.Type && known.Status == condition.Status {
			return
		}
	}
	updated := mirrored.DeepCopy()
	updated.Status.Phase, updated.Status.HostIP, updated.Status.PodIP = corev1.PodRunning, k.boot.node.address, k.boot.node.address
	updated.Status.Conditions = []corev1.PodCondition{condition}
	_, _ = k.pods(systemNamespace).UpdateStatus(ctx, updated, metav1.UpdateOptions{})
}
