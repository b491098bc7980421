// SPDX-License-Identifier: Apache-2.0

package longhornsim

import (
	"context"
	"fmt"
	"maps"
	"slices"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/maesh-dev/ichor/test/longhornsim/model"
)

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
	if equality.Semantic.DeepEqual(old, object) {
		return nil
	}

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
