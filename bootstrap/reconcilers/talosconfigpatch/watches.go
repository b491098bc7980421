// SPDX-License-Identifier: Apache-2.0

package talosconfigpatch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/lru"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	capicontroller "sigs.k8s.io/cluster-api/util/controller"
	"sigs.k8s.io/cluster-api/util/predicates"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/inputs"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// SetupWithManager adds the reconciler to the manager. A patch is looked at again when it changes, and some time after anything in its
// namespace that a render depends on has: one patch's render depends on all others that apply to the machine. What has not changed for a
// group of machines is not rendered again, so this costs a comparison.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	if r.Client == nil || r.Inputs == nil || r.Metadata == nil || r.Clock == nil {
		return errors.New("talosconfigpatch: Client, Inputs, Metadata and Clock must be set")
	}

	r.judged, r.bundles = lru.New(maxJudged), map[string]*secrets.Bundle{}
	scheme, log := mgr.GetScheme(), ctrl.LoggerFrom(ctx).WithValues("controller", "talosconfigpatch")

	metadata := func(kind string) source.Source {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))

		return source.Kind[client.Object](r.Metadata, object, r.later(r.forReferenced(kind)), predicates.TypedResourceIsChanged[client.Object](scheme, log))
	}

	_, err := capicontroller.NewControllerManagedBy(mgr, log).
		For(&bootstrapv1.TalosConfigPatch{}).
		Watches(&bootstrapv1.TalosConfigPatch{}, r.later(r.all), predicate.GenerationChangedPredicate{}).
		Watches(&bootstrapv1.TalosConfig{}, r.later(r.all), predicate.GenerationChangedPredicate{}).
		Watches(&bootstrapv1.TalosClusterConfig{}, r.later(r.all), predicate.GenerationChangedPredicate{}).
		Watches(&bootstrapv1.TalosStorage{}, r.later(r.all), predicate.GenerationChangedPredicate{}).
		Watches(&clusterv1.Cluster{}, r.later(r.all), changed()).
		Watches(&clusterv1.Machine{}, r.later(r.all), changed()).
		Watches(&clusterv1.MachinePool{}, r.later(r.all), changed()).
		WatchesRawSource(metadata(machineconfig.KindSecret)).
		WatchesRawSource(metadata(machineconfig.KindConfigMap)).
		WithOptions(options).
		Build(ctx, r)
	if err != nil {
		return fmt.Errorf("talosconfigpatch: build the controller: %w", err)
	}

	return nil
}

// changed leaves out what only changes a status. Of annotations, what the node runs counts.
func changed() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
			!maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) ||
			e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero() ||
			e.ObjectOld.GetAnnotations()[bootstrapv1.RunningInputsAnnotation] != e.ObjectNew.GetAnnotations()[bootstrapv1.RunningInputsAnnotation]
	}}
}

// mapFunc names the TalosConfigPatches that a change of an object concerns.
type mapFunc func(context.Context, client.Object) ([]client.ObjectKey, error)

// all names the patches of the object's namespace.
func (r *Reconciler) all(ctx context.Context, object client.Object) ([]client.ObjectKey, error) {
	patches, err := r.Inputs.Patches(ctx, object.GetNamespace())

	keys := make([]client.ObjectKey, len(patches))
	for i, patch := range patches {
		keys[i] = client.ObjectKeyFromObject(patch.Object())
	}

	return keys, err
}

// forReferenced names the patches of the namespace if anything there refers to the Secret or ConfigMap.
func (r *Reconciler) forReferenced(kind string) mapFunc {
	return func(ctx context.Context, object client.Object) ([]client.ObjectKey, error) {
		key := machineconfig.ObjectKey{Kind: kind, Name: object.GetName()}

		patches, err := r.Inputs.Patches(ctx, object.GetNamespace())
		if err != nil || len(patches) == 0 {
			return nil, err
		}

		if slices.ContainsFunc(patches, func(patch *machineconfig.Patch) bool { return slices.Contains(patch.Objects(), key) }) {
			return r.all(ctx, object)
		}

		if kind != machineconfig.KindSecret {
			return nil, nil
		}

		configs := &bootstrapv1.TalosClusterConfigList{}
		if err := r.Client.List(ctx, configs, client.InNamespace(object.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list TalosClusterConfigs: %w", err)
		}

		for i := range configs.Items {
			if slices.Contains(inputs.ReferencedSecrets(&configs.Items[i]), key.Name) {
				return r.all(ctx, object)
			}
		}

		return nil, nil
	}
}

// later wakes the patches after Settle: a thousand changes within it wake each once.
func (r *Reconciler) later(forObject mapFunc) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

	wake := func(ctx context.Context, object client.Object, q queue) {
		keys, err := forObject(ctx, object)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot tell which TalosConfigPatches an object concerns", "object", client.ObjectKeyFromObject(object))
		}

		for _, key := range keys {
			q.AddAfter(reconcile.Request{NamespacedName: key}, r.Settle)
		}
	}

	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { wake(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { wake(ctx, e.ObjectNew, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { wake(ctx, e.Object, q) },
	}
}
