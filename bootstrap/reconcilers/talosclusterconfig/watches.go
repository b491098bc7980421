// SPDX-License-Identifier: Apache-2.0

package talosclusterconfig

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/internal/targeting"
)

// SetupWithManager adds the reconciler to the manager, with everything that it watches:
//
//	TalosClusterConfig          itself, and all others of the namespace: they may target one Cluster
//	Cluster                     those that target it, before the change or after
//	any Secret, metadata only   those that refer to it; for a cluster's bundle, those that target the Cluster
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	if r.Client == nil || r.APIReader == nil || r.Inputs == nil || r.Metadata == nil || r.Secrets == nil || r.Clock == nil {
		return errors.New("talosclusterconfig: Client, APIReader, Inputs, Metadata, Secrets and Clock must be set")
	}

	r.judged = lru.New(maxJudged)
	scheme, log := mgr.GetScheme(), ctrl.LoggerFrom(ctx).WithValues("controller", "talosclusterconfig")

	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))

	_, err := capicontroller.NewControllerManagedBy(mgr, log).
		For(&bootstrapv1.TalosClusterConfig{}).
		Watches(&bootstrapv1.TalosClusterConfig{}, r.enqueue(everyOne), predicate.GenerationChangedPredicate{}).
		Watches(&clusterv1.Cluster{}, r.enqueue(targets), clusterChanged()).
		WatchesRawSource(source.Kind[client.Object](r.Metadata, secret, r.enqueue(refersTo), predicates.TypedResourceIsChanged[client.Object](scheme, log))).
		WithOptions(options).
		Build(ctx, r)
	if err != nil {
		return fmt.Errorf("talosclusterconfig: build the controller: %w", err)
	}

	return nil
}

// clusterChanged lets through what selects a Cluster, and that its control plane answers.
func clusterChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, isCluster := e.ObjectOld.(*clusterv1.Cluster)
		now, isClusterNow := e.ObjectNew.(*clusterv1.Cluster)

		return !isCluster || !isClusterNow || !maps.Equal(before.Labels, now.Labels) || initialized(before) != initialized(now)
	}}
}

// concern says whether a change of the object concerns the TalosClusterConfig.
type concern func(config *bootstrapv1.TalosClusterConfig, object client.Object) bool

func everyOne(*bootstrapv1.TalosClusterConfig, client.Object) bool { return true }

func targets(config *bootstrapv1.TalosClusterConfig, object client.Object) bool {
	cluster, ok := object.(*clusterv1.Cluster)
	if !ok {
		return false
	}

	targeted, err := targeting.Cluster(config.Spec.ClusterTargeting, config.Namespace, cluster)

	return targeted || err != nil
}

// refersTo is for Secrets.
func refersTo(config *bootstrapv1.TalosClusterConfig, object client.Object) bool {
	return slices.Contains(inputs.ReferencedSecrets(config), object.GetName())
}

func (r *Reconciler) enqueue(concerns concern) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []reconcile.Request {
		keys, err := r.concerned(ctx, object, concerns)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot tell which TalosClusterConfigs an object concerns", "object", client.ObjectKeyFromObject(object))
		}

		requests := make([]reconcile.Request, len(keys))
		for i, key := range keys {
			requests[i] = reconcile.Request{NamespacedName: key}
		}

		return requests
	})
}

// concerned names the TalosClusterConfigs that the object concerns.
func (r *Reconciler) concerned(ctx context.Context, object client.Object, concerns concern) ([]client.ObjectKey, error) {
	configs := &bootstrapv1.TalosClusterConfigList{}
	if err := r.Client.List(ctx, configs, client.InNamespace(object.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list TalosClusterConfigs: %w", err)
	}

	if len(configs.Items) == 0 {
		return nil, nil
	}

	bundleOf, err := r.bundleOf(ctx, object)
	if err != nil {
		return nil, err
	}

	var keys []client.ObjectKey

	for i := range configs.Items {
		config := &configs.Items[i]
		if concerns(config, object) || bundleOf != nil && targets(config, bundleOf) {
			keys = append(keys, client.ObjectKeyFromObject(config))
		}
	}

	return keys, nil
}

// bundleOf is the Cluster whose bundle the object is; nil for everything else.
func (r *Reconciler) bundleOf(ctx context.Context, object client.Object) (*clusterv1.Cluster, error) {
	if _, isMetadata := object.(*metav1.PartialObjectMetadata); !isMetadata {
		return nil, nil
	}

	clusters := &clusterv1.ClusterList{}
	if err := r.Client.List(ctx, clusters, client.InNamespace(object.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Clusters: %w", err)
	}

	for i := range clusters.Items {
		if secrets.BundleName(clusters.Items[i].Name) == object.GetName() {
			return clusters.Items[i].DeepCopy(), nil
		}
	}

	return nil, nil
}
