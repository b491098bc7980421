// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/lru"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	capicontroller "sigs.k8s.io/cluster-api/util/controller"
	"sigs.k8s.io/cluster-api/util/predicates"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/consistency"
	"github.com/maesh-dev/ichor/internal/targeting"
)

const controllerName = "taloscontrolplane"

// SetupWithManager adds the reconciler to the manager, with everything that it watches:
//
//	TalosControlPlane                  itself
//	Machine                            the control plane of its cluster, when it is a control-plane Machine; any, while the control plane goes
//	Cluster                            the control plane that it refers to
//	TalosConfig                        the control plane of its cluster, when it is of a control-plane Machine
//	TalosClusterConfig                 the control planes of the clusters that it targets: it says how nodes are reached
//	Secret with cluster-name label     the control plane of its cluster: bundle, authority, kubeconfig
//	connection to a workload cluster   the control plane of the cluster, when it comes and when it goes
//
// Nodes are not watched: they are looked at when that is due.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	if r.Client == nil || r.APIReader == nil || r.Metadata == nil || r.Recorder == nil || r.Secrets == nil || r.ClusterCache == nil ||
		r.Talos == nil || r.Clock == nil || r.GracePeriod <= 0 || r.HealthInterval <= 0 || r.PollInterval <= 0 {
		return errors.New("taloscontrolplane: Client, APIReader, Metadata, Recorder, Secrets, ClusterCache, Talos, Clock, GracePeriod, HealthInterval and PollInterval must be set")
	}

	r.memory, r.retries = newMemory(), newRetries(r.PollInterval)
	r.authorities = &authorityCache{metadata: r.Metadata, live: r.APIReader, read: lru.New(maxAuthorities)}

	var err error

	r.deletions, err = capicontroller.NewClientWithDeleteResponse(&clusterv1.Machine{},
		clusterv1.GroupVersion.WithResource("machines").GroupResource(), mgr.GetScheme(), mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("%s: client for deletions: %w", controllerName, err)
	}

	scheme, log := mgr.GetScheme(), ctrl.LoggerFrom(ctx).WithValues("controller", controllerName)

	guard := consistency.NewGuard(mgr, r)

	built, err := capicontroller.NewControllerManagedBy(mgr, log).
		For(&controlplanev1.TalosControlPlane{}, builder.WithPredicates(predicates.ResourceHasFilterLabel(scheme, log, r.WatchFilter))).
		Named(controllerName).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(r.forMachine)).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(forCluster)).
		Watches(&bootstrapv1.TalosConfig{}, handler.EnqueueRequestsFromMapFunc(r.forConfig), predicate.GenerationChangedPredicate{}).
		Watches(&bootstrapv1.TalosClusterConfig{}, handler.EnqueueRequestsFromMapFunc(r.forClusterConfig), predicate.GenerationChangedPredicate{}).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.forSecret)).
		WatchesRawSource(r.ClusterCache.GetClusterSource(controllerName, forCluster, clustercache.WatchForProbeFailure(r.GracePeriod))).
		WithOptions(options).
		Build(ctx, guard)
	if err != nil {
		return fmt.Errorf("%s: build the controller: %w", controllerName, err)
	}

	r.deferrer = guard.Deferrer(built)

	return nil
}

// forCluster names the control plane that a Cluster refers to.
func forCluster(_ context.Context, object client.Object) []reconcile.Request {
	cluster, ok := object.(*clusterv1.Cluster)
	if !ok {
		return nil
	}

	ref := cluster.Spec.ControlPlaneRef
	if ref.APIGroup != controlplanev1.GroupVersion.Group || ref.Kind != talosControlPlaneKind {
		return nil
	}

	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: cluster.Namespace, Name: ref.Name}}}
}

// forClusterNamed names the control plane of a Cluster. Without the Cluster, those that have belonged to it: they may be going.
func (r *Reconciler) forClusterNamed(ctx context.Context, namespace, name string) []reconcile.Request {
	if name == "" {
		return nil
	}

	cluster := &clusterv1.Cluster{}

	err := r.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, cluster)
	if err == nil {
		return forCluster(ctx, cluster)
	}

	list := &controlplanev1.TalosControlPlaneList{}
	if err := r.Client.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot tell which control planes an object concerns", "Cluster", name)

		return nil
	}

	var requests []reconcile.Request

	for i := range list.Items {
		if clusterName(&list.Items[i], nil) == name {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}

	return requests
}

// forMachine handles control-plane Machines, and workers that are being deleted, for which a control plane that goes waits.
func (r *Reconciler) forMachine(ctx context.Context, object client.Object) []reconcile.Request {
	if _, ours := object.GetLabels()[clusterv1.MachineControlPlaneLabel]; !ours && object.GetDeletionTimestamp().IsZero() {
		return nil
	}

	return r.forClusterNamed(ctx, object.GetNamespace(), object.GetLabels()[clusterv1.ClusterNameLabel])
}

func (r *Reconciler) forConfig(ctx context.Context, object client.Object) []reconcile.Request {
	if _, ours := object.GetLabels()[clusterv1.MachineControlPlaneLabel]; !ours {
		return nil
	}

	return r.forClusterNamed(ctx, object.GetNamespace(), object.GetLabels()[clusterv1.ClusterNameLabel])
}

// forSecret handles the Secrets of clusters as a whole. Bootstrap data has the label, too, and is of no interest.
func (r *Reconciler) forSecret(ctx context.Context, object client.Object) []reconcile.Request {
	cluster := object.GetLabels()[clusterv1.ClusterNameLabel]
	if cluster == "" || !isOwnSecret(object.GetName(), cluster) {
		return nil
	}

	return r.forClusterNamed(ctx, object.GetNamespace(), cluster)
}

func (r *Reconciler) forClusterConfig(ctx context.Context, object client.Object) []reconcile.Request {
	config, ok := object.(*bootstrapv1.TalosClusterConfig)
	if !ok {
		return nil
	}

	clusters := &clusterv1.ClusterList{}
	if err := r.Client.List(ctx, clusters, client.InNamespace(config.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot tell which control planes an object concerns", "TalosClusterConfig", config.Name)

		return nil
	}

	var requests []reconcile.Request

	for i := range clusters.Items {
		if ok, err := targeting.Cluster(config.Spec.ClusterTargeting, config.Namespace, &clusters.Items[i]); ok || err != nil {
			requests = append(requests, forCluster(ctx, &clusters.Items[i])...)
		}
	}

	return requests
}
