// SPDX-License-Identifier: Apache-2.0

package longhornsim

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	lh "github.com/maesh-dev/ichor/test/longhornsim/api/v1beta2"
	"github.com/maesh-dev/ichor/test/longhornsim/model"
)

// csiDriver is Longhorn's.
const csiDriver = "driver.longhorn.io"

// load reads everything that the model goes by.
func (s *Sim) load(ctx context.Context) (*model.State, error) {
	state, err := s.loadObjects(ctx)
	if err != nil {
		return nil, err
	}

	var (
		nodes   corev1.NodeList
		pods    corev1.PodList
		budgets policyv1.PodDisruptionBudgetList
	)

	if err := s.client.List(ctx, &nodes, client.MatchingLabels(s.options.NodeLabels)); err != nil {
		return nil, err
	}

	index(state.KubeNodes, nodes.Items)

	inNamespace := client.InNamespace(s.options.Namespace)
	if err := s.client.List(ctx, &pods, inNamespace, client.HasLabels{model.LabelComponent}); err != nil {
		return nil, err
	}

	index(state.Pods, pods.Items)

	if err := s.client.List(ctx, &budgets, inNamespace, client.HasLabels{model.LabelManagedBy}); err != nil {
		return nil, err
	}

	index(state.Budgets, budgets.Items)

	state.Claims, err = s.loadClaims(ctx)

	return state, err
}

// loadObjects reads Longhorn's own kinds.
func (s *Sim) loadObjects(ctx context.Context) (*model.State, error) {
	state := model.NewState(s.options.Namespace, s.reality, s.options.Clock.Now())

	var (
		backingImages lh.BackingImageList
		engines       lh.EngineList
		engineImages  lh.EngineImageList
		managers      lh.InstanceManagerList
		nodes         lh.NodeList
		replicas      lh.ReplicaList
		settings      lh.SettingList
		shards        lh.ShardList
		shardGroups   lh.ShardGroupList
		shareManagers lh.ShareManagerList
		volumes       lh.VolumeList
		attachments   lh.VolumeAttachmentList
	)

	group, ctx := errgroup.WithContext(ctx)

	for _, list := range []client.ObjectList{
		&backingImages, &engines, &engineImages, &managers, &nodes, &replicas, &settings, &shards, &shardGroups, &shareManagers,
		&volumes, &attachments,
	} {
		group.Go(func() error { return s.client.List(ctx, list, client.InNamespace(s.options.Namespace)) })
	}

	if err := group.Wait(); err != nil {
		return nil, err
	}

	index(state.BackingImages, backingImages.Items)
	index(state.Engines, engines.Items)
	index(state.EngineImages, engineImages.Items)
	index(state.InstanceManagers, managers.Items)
	index(state.Nodes, nodes.Items)
	index(state.Replicas, replicas.Items)
	index(state.Shards, shards.Items)
	index(state.ShardGroups, shardGroups.Items)
	index(state.ShareManagers, shareManagers.Items)
	index(state.Volumes, volumes.Items)
	index(state.VolumeAttachments, attachments.Items)

	for _, setting := range settings.Items {
		state.Settings[setting.Name] = setting.Value
	}

	return state, nil
}

func index[T any, P interface {
	*T
	client.Object
}](into map[string]P, items []T) {
	for i := range items {
		object := P(&items[i])
		into[object.GetName()] = object
	}
}

// loadClaims says which claims and pods use the volumes.
func (s *Sim) loadClaims(ctx context.Context) (map[string]lh.KubernetesStatus, error) {
	var (
		volumes corev1.PersistentVolumeList
		pods    corev1.PodList
		claims  = map[string]lh.KubernetesStatus{}
	)

	if err := s.client.List(ctx, &volumes); err != nil {
		return nil, err
	}

	volumes.Items = slices.DeleteFunc(volumes.Items, func(pv corev1.PersistentVolume) bool {
		return pv.Spec.CSI == nil || pv.Spec.CSI.Driver != csiDriver
	})
	if len(volumes.Items) == 0 {
		return claims, nil
	}

	if err := s.client.List(ctx, &pods); err != nil {
		return nil, err
	}

	for _, pv := range volumes.Items {
		status := lh.KubernetesStatus{PVName: pv.Name, PVStatus: string(pv.Status.Phase)}

		if ref := pv.Spec.ClaimRef; ref != nil {
			status.Namespace, status.PVCName = ref.Namespace, ref.Name

			for _, pod := range pods.Items {
				if pod.Namespace == ref.Namespace && uses(&pod, ref.Name) {
					status.WorkloadsStatus = append(status.WorkloadsStatus, workload(&pod))
				}
			}
		}

		claims[pv.Spec.CSI.VolumeHandle] = status
	}

	return claims, nil
}

// uses is whether a pod that has not ended names a claim.
func uses(pod *corev1.Pod, claim string) bool {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return false
	}

	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
	})
}

func workload(pod *corev1.Pod) lh.WorkloadStatus {
	status := lh.WorkloadStatus{PodName: pod.Name, PodStatus: string(pod.Status.Phase)}
	if owner := metav1.GetControllerOf(pod); owner != nil {
		status.WorkloadName, status.WorkloadType = owner.Name, owner.Kind
	}

	return status
}

// save writes what has changed.
func (s *Sim) save(ctx context.Context, before, after *model.State) error {
	s.own(after)

	for _, write := range []func() error{
		func() error { return write(ctx, s.client, before.EngineImages, after.EngineImages) },
		func() error { return write(ctx, s.client, before.Nodes, after.Nodes) },
		func() error {
			s.own(after)
			return write(ctx, s.client, before.InstanceManagers, after.InstanceManagers)
		},
		func() error { return write(ctx, s.client, before.BackingImages, after.BackingImages) },
		func() error { return write(ctx, s.client, before.Volumes, after.Volumes) },
		func() error { return write(ctx, s.client, before.Engines, after.Engines) },
		func() error { return write(ctx, s.client, before.Replicas, after.Replicas) },
		func() error { return write(ctx, s.client, before.VolumeAttachments, after.VolumeAttachments) },
		func() error { return write(ctx, s.client, before.ShardGroups, after.ShardGroups) },
		func() error { return write(ctx, s.client, before.Shards, after.Shards) },
		func() error { return write(ctx, s.client, before.ShareManagers, after.ShareManagers) },
		func() error { s.own(after); return write(ctx, s.client, before.Pods, after.Pods) },
		func() error { return write(ctx, s.client, withoutStatus(before.Budgets), withoutStatus(after.Budgets)) },
	} {
		if err := write(); err != nil {
			return err
		}
	}

	return nil
}

// withoutStatus leaves the status of disruption budgets to the controller whose it is.
func withoutStatus(budgets map[string]*policyv1.PodDisruptionBudget) map[string]*policyv1.PodDisruptionBudget {
	bare := make(map[string]*policyv1.PodDisruptionBudget, len(budgets))

	for name, budget := range budgets {
		bare[name] = budget.DeepCopy()
		bare[name].Status = policyv1.PodDisruptionBudgetStatus{}
	}

	return bare
}

// own names the owners of what is owned, as far as these are there: an instance manager belongs to its node, a pod to what it
// is the pod of. A drain asks for the owner of a pod.
func (s *Sim) own(state *model.State) {
	for _, im := range state.InstanceManagers {
		if n := state.Nodes[im.Spec.NodeID]; n != nil && n.UID != "" && len(im.OwnerReferences) == 0 {
			_ = controllerutil.SetOwnerReference(n, im, s.client.Scheme()) // both are in one namespace
		}
	}

	for name, pod := range state.Pods {
		if metav1.GetControllerOf(pod) != nil {
			continue
		}

		if im := state.InstanceManagers[name]; im != nil && im.UID != "" {
			_ = controllerutil.SetControllerReference(im, pod, s.client.Scheme()) // both are in one namespace
		}

		if sm := state.ShareManagers[pod.Labels[model.LabelShareManager]]; sm != nil && sm.UID != "" {
			_ = controllerutil.SetControllerReference(sm, pod, s.client.Scheme()) // both are in one namespace
		}
	}
}

// write creates, changes and deletes the objects of one kind.
func write[T client.Object](ctx context.Context, c client.Client, before, after map[string]T) error {
	for _, name := range slices.Sorted(maps.Keys(after)) {
		object := after[name]

		old, existed := before[name]
		if existed && object.GetUID() == "" {
			// Another one has taken its place meanwhile.
			if err := c.Delete(ctx, old, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("delete %T %s: %w", old, name, err)
			}

			existed = false
		}

		if !existed {
			wanted := object.DeepCopyObject()
			if err := c.Create(ctx, object); err != nil {
				return fmt.Errorf("create %T %s: %w", object, name, err)
			}

			fresh, err := content(object)
			if err != nil {
				return err
			}

			if err := writeStatus(ctx, c, fresh["status"], wanted.(T), object); err != nil { //nolint:forcetypeassert // a copy
				return err
			}

			continue
		}

		if err := change(ctx, c, old, object); err != nil {
			return err
		}
	}

	for name, old := range before {
		if _, kept := after[name]; kept {
			continue
		}

		if err := c.Delete(ctx, old, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %T %s: %w", old, name, err)
		}
	}

	return nil
}

// change writes what is different: all but the status, and the status.
func change[T client.Object](ctx context.Context, c client.Client, old, object T) error {
	oldContent, err := content(old)
	if err != nil {
		return err
	}

	newContent, err := content(object)
	if err != nil {
		return err
	}

	oldStatus, newStatus := oldContent["status"], newContent["status"]
	delete(oldContent, "status")
	delete(newContent, "status")

	wanted := object.DeepCopyObject()

	if !equality.Semantic.DeepEqual(oldContent, newContent) {
		if err := c.Update(ctx, object); err != nil {
			return fmt.Errorf("update %T %s: %w", object, object.GetName(), err)
		}
	}

	if equality.Semantic.DeepEqual(oldStatus, newStatus) {
		return nil
	}

	return writeStatus(ctx, c, oldStatus, wanted.(T), object) //nolint:forcetypeassert // a copy
}

// writeStatus writes the status that is wanted onto the object as the server has it now.
func writeStatus[T client.Object](ctx context.Context, c client.Client, old any, wanted, object T) error {
	wantedContent, err := content(wanted)
	if err != nil {
		return err
	}

	if status, has := wantedContent["status"]; !has || equality.Semantic.DeepEqual(status, old) {
		return nil
	}

	wanted.SetResourceVersion(object.GetResourceVersion())
	wanted.SetUID(object.GetUID())

	if err := c.Status().Update(ctx, wanted); err != nil {
		return fmt.Errorf("update the status of %T %s: %w", object, object.GetName(), err)
	}

	object.SetResourceVersion(wanted.GetResourceVersion())

	return nil
}

func content(object client.Object) (map[string]any, error) {
	return runtime.DefaultUnstructuredConverter.ToUnstructured(object)
}
