// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/lru"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	capicontroller "sigs.k8s.io/cluster-api/util/controller"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/bootstrap/reporting"
	"github.com/maesh-dev/ichor/internal/clustersecrets"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// carrierSettle is how long machines that begin or end to carry secrets are gathered: a cluster gets them by the hundred.
const carrierSettle = time.Second

// SetupWithManager adds the reconciler to the manager, with everything that it watches:
//
//	Cluster                            itself, when it is unpaused, moved or initialized
//	TalosConfig                        the Cluster of a new one
//	Secret with cluster-name label     the Cluster whose bundle, authority or talosconfig it would be by its name
//	any Secret, metadata only          the same, for those that lack the label
//	Machine, MachinePool, TalosConfig  the Cluster, when one begins or ends to carry its secrets
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	if r.Client == nil || r.Metadata == nil || r.Secrets == nil || r.Clock == nil {
		return errors.New("clustersecrets: Client, Metadata, Secrets and Clock must be set")
	}

	r.told = lru.New(maxTold)
	log := ctrl.LoggerFrom(ctx).WithValues("controller", "clustersecrets")

	carrier := reporting.WakeLater(forCarrier, carrierSettle)
	retried := reporting.Retry(r)

	_, err := capicontroller.NewControllerManagedBy(mgr, log).
		For(&clusterv1.Cluster{}, builder.WithPredicates(clusterChanged())).
		Named("clustersecrets").
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(forSecret)).
		Watches(&bootstrapv1.TalosConfig{}, handler.EnqueueRequestsFromMapFunc(forTalosConfig), clusterNamed()).
		Watches(&clusterv1.Machine{}, carrier, clustersecrets.CarrierChanged()).
		Watches(&clusterv1.MachinePool{}, carrier, clustersecrets.CarrierChanged()).
		Watches(&bootstrapv1.TalosConfig{}, carrier, clustersecrets.CarrierChanged()).
		Watches(&corev1.Secret{}, carrier, clustersecrets.CarrierChanged()).
		WatchesRawSource(reporting.Metadata(r.Metadata, machineconfig.KindSecret, handler.EnqueueRequestsFromMapFunc(forUnlabelled), mgr)).
		WatchesRawSource(retried.Source()).
		WithOptions(options).
		Build(ctx, retried)
	if err != nil {
		return fmt.Errorf("clustersecrets: build the controller: %w", err)
	}

	return nil
}

// forSecret names the Cluster whose own the Secret would be by its name.
func forSecret(_ context.Context, object client.Object) []reconcile.Request {
	cluster, ok := secrets.ClusterOf(object.GetName())
	if !ok {
		return nil
	}

	return requestFor(object.GetNamespace(), cluster)
}

// forUnlabelled leaves those with the label to the manager's cache, whose own watch comes when that cache has seen the change.
func forUnlabelled(ctx context.Context, object client.Object) []reconcile.Request {
	if object.GetLabels()[clusterv1.ClusterNameLabel] != "" {
		return nil
	}

	return forSecret(ctx, object)
}

// forCarrier handles what may carry the secrets of its cluster.
func forCarrier(_ context.Context, object client.Object) ([]client.ObjectKey, error) {
	cluster := clustersecrets.CarrierOf(object)
	if cluster == "" {
		return nil, nil
	}

	return []client.ObjectKey{{Namespace: object.GetNamespace(), Name: cluster}}, nil
}

func forTalosConfig(_ context.Context, object client.Object) []reconcile.Request {
	cluster := object.GetLabels()[clusterv1.ClusterNameLabel]
	if cluster == "" {
		return nil
	}

	return requestFor(object.GetNamespace(), cluster)
}

func requestFor(namespace, cluster string) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: namespace, Name: cluster}}}
}

// clusterNamed lets a TalosConfig through when it is new or gets its labels, which Cluster API sets later. Of a change of anything else
// a cluster's secrets know nothing.
func clusterNamed() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool { return !maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// clusterChanged lets an update of a Cluster through when it is the periodic one, or something changed that its secrets depend on.
func clusterChanged() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, isCluster := e.ObjectOld.(*clusterv1.Cluster)
			now, isClusterNow := e.ObjectNew.(*clusterv1.Cluster)

			if !isCluster || !isClusterNow {
				return true
			}

			return before.ResourceVersion == now.ResourceVersion || before.UID != now.UID ||
				annotations.IsPaused(before, before) != annotations.IsPaused(now, now) || clustersecrets.Initialized(before) != clustersecrets.Initialized(now)
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}
