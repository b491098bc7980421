// SPDX-License-Identifier: Apache-2.0

// Package simcluster reconciles SimClusters: it runs the load balancer at the control-plane endpoint of a cluster. It is not pure.
package simcluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/finalizers"
	"sigs.k8s.io/cluster-api/util/patch"
	"sigs.k8s.io/cluster-api/util/paused"
	"sigs.k8s.io/cluster-api/util/predicates"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
	"github.com/maesh-dev/ichor/test/infrastructure/machines"
	"github.com/maesh-dev/ichor/test/infrastructure/reconcilers/report"
)

// +kubebuilder:rbac:groups=infrastructure.ichor.maesh.dev,resources=simclusters,verbs=list;watch;patch
// +kubebuilder:rbac:groups=infrastructure.ichor.maesh.dev,resources=simclusters/status,verbs=patch
// +kubebuilder:rbac:groups=infrastructure.ichor.maesh.dev,resources=simmachinepools;simmachines,verbs=list;watch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters,verbs=list;watch

// Reconciler reconciles SimClusters.
type Reconciler struct {
	Client client.Client
	Farm   *machines.Farm

	// WatchFilter is the value of the label cluster.x-k8s.io/watch-filter on what is reconciled. Empty: everything.
	WatchFilter string
}

// SetupWithManager adds the reconciler to a manager.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	log := mgr.GetLogger().WithName("simcluster")
	toInfrastructure := util.ClusterToInfrastructureMapFunc(ctx, infrav1.GroupVersion.WithKind("SimCluster"), mgr.GetClient(), &infrav1.SimCluster{})

	err := ctrl.NewControllerManagedBy(mgr).
		Named("simcluster").
		For(&infrav1.SimCluster{}, builder.WithPredicates(
			predicates.ResourceHasFilterLabel(mgr.GetScheme(), log, r.WatchFilter),
			predicates.ResourceIsNotExternallyManaged(mgr.GetScheme(), log),
		)).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(toInfrastructure),
			builder.WithPredicates(predicates.ClusterPausedTransitions(mgr.GetScheme(), log))).
		Watches(&infrav1.SimMachine{}, handler.EnqueueRequestsFromMapFunc(r.ofMachine)).
		Watches(&infrav1.SimMachinePool{}, handler.EnqueueRequestsFromMapFunc(r.ofMachine)).
		WithOptions(options).
		Complete(r)
	if err != nil {
		return fmt.Errorf("SimCluster controller: %w", err)
	}

	return nil
}

// ofMachine leads from a machine or a pool that is going to its cluster, which may wait for that and whose Cluster may be gone.
func (r *Reconciler) ofMachine(ctx context.Context, machine client.Object) []ctrl.Request {
	name := machine.GetLabels()[clusterv1.ClusterNameLabel]
	if machine.GetDeletionTimestamp() == nil || name == "" {
		return nil
	}

	list := &infrav1.SimClusterList{}
	if err := r.Client.List(ctx, list, client.InNamespace(machine.GetNamespace())); err != nil {
		return nil
	}

	var requests []ctrl.Request

	for i := range list.Items {
		if key, known := clusterKey(&list.Items[i]); known && key.Name == name {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}

	return requests
}

// retry is how soon a SimCluster is looked at again whose Cluster is not there, since nothing else tells of one that comes, and one that goes
// before its machines.
const retry = time.Second

// Reconcile runs the load balancer, or ends it.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (_ ctrl.Result, reterr error) {
	object := &infrav1.SimCluster{}
	if err := r.Client.Get(ctx, request.NamespacedName, object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}

	cluster, err := util.GetOwnerCluster(ctx, r.Client, object.ObjectMeta)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("owner of SimCluster: %w", err)
	}

	// It has an owner that the cache has not seen yet, or that is gone.
	if err != nil && object.DeletionTimestamp.IsZero() {
		return ctrl.Result{RequeueAfter: retry}, nil
	}

	// Cluster API has not taken it over yet, or somebody else is responsible. What is deleted goes all the same.
	if cluster == nil && object.DeletionTimestamp.IsZero() || annotations.IsExternallyManaged(object) {
		return ctrl.Result{}, nil
	}

	if stop, requeue, err := paused.EnsurePausedCondition(ctx, r.Client, cluster, object); err != nil || stop || requeue {
		return ctrl.Result{}, err
	}

	if object.DeletionTimestamp.IsZero() {
		if added, err := finalizers.EnsureFinalizer(ctx, r.Client, object, infrav1.ClusterFinalizer); err != nil || added {
			return ctrl.Result{}, err
		}
	}

	helper, err := patch.NewHelper(object, r.Client)
	if err != nil {
		return ctrl.Result{}, err
	}

	defer func() { reterr = errors.Join(reterr, report.Patch(ctx, helper, object)) }()

	if !object.DeletionTimestamp.IsZero() {
		return r.delete(ctx, object)
	}

	return ctrl.Result{}, r.balance(cluster, object)
}

func (r *Reconciler) balance(cluster *clusterv1.Cluster, object *infrav1.SimCluster) error {
	wanted := object.Spec.ControlPlaneEndpoint

	host, port, err := r.Farm.Balance(ClusterOf(cluster, object), wanted.Host, wanted.Port)
	if err != nil {
		setReady(object, metav1.ConditionFalse, infrav1.EndpointUnavailableReason, err.Error())

		// Whoever has the address may leave it.
		return fmt.Errorf("control-plane endpoint: %w", err)
	}

	object.Spec.ControlPlaneEndpoint = infrav1.APIEndpoint{Host: host, Port: port}
	object.Status.FailureDomains = object.Spec.FailureDomains
	object.Status.Initialization.Provisioned = new(true)
	setReady(object, metav1.ConditionTrue, infrav1.ServingReason, "")

	return nil
}

// delete ends the load balancer after the last machine. The Cluster may be gone already. It looks again by itself: a SimMachine that has never had
// a Machine has no finalizer, and so it is gone without having said that it goes.
func (r *Reconciler) delete(ctx context.Context, object *infrav1.SimCluster) (ctrl.Result, error) {
	key, known := clusterKey(object)
	if !known {
		controllerutil.RemoveFinalizer(object, infrav1.ClusterFinalizer)

		return ctrl.Result{}, nil
	}

	list := &infrav1.SimMachineList{}
	if err := r.Client.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: key.Name}); err != nil {
		return ctrl.Result{}, fmt.Errorf("list SimMachines: %w", err)
	}

	pools := &infrav1.SimMachinePoolList{}
	if err := r.Client.List(ctx, pools, client.InNamespace(key.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: key.Name}); err != nil {
		return ctrl.Result{}, fmt.Errorf("list SimMachinePools: %w", err)
	}

	if count := len(list.Items) + len(pools.Items); count > 0 {
		setReady(object, metav1.ConditionFalse, infrav1.DeletingReason, fmt.Sprintf("SimMachines and SimMachinePools that are still there: %d", count))

		return ctrl.Result{RequeueAfter: retry}, nil
	}

	setReady(object, metav1.ConditionFalse, infrav1.DeletingReason, "")

	if err := r.Farm.CloseCluster(key); err != nil {
		return ctrl.Result{}, err
	}

	controllerutil.RemoveFinalizer(object, infrav1.ClusterFinalizer)

	return ctrl.Result{}, nil
}

// clusterKey names the Cluster that the object belongs to, or has belonged to; false if nobody has ever taken it over.
func clusterKey(object *infrav1.SimCluster) (client.ObjectKey, bool) {
	key := client.ObjectKey{Namespace: object.Namespace, Name: object.Labels[clusterv1.ClusterNameLabel]}

	for _, owner := range object.OwnerReferences {
		if util.HasOwner([]metav1.OwnerReference{owner}, clusterv1.GroupVersion.String(), []string{"Cluster"}) {
			key.Name = owner.Name
		}
	}

	return key, key.Name != ""
}

// ClusterOf is how the farm knows a cluster. object is its infrastructure, or nil.
func ClusterOf(cluster *clusterv1.Cluster, object *infrav1.SimCluster) machines.Cluster {
	of := machines.Cluster{ObjectKey: client.ObjectKeyFromObject(cluster)}
	if object != nil && object.Spec.Fidelity != "" {
		of.Full = new(object.Spec.Fidelity == infrav1.FidelityFull)
		of.Kubernetes = new(object.Spec.Fidelity == infrav1.FidelityInMemory)
	}

	return of
}

// Find is how the farm knows a cluster whose infrastructure may be of another provider.
func Find(ctx context.Context, c client.Reader, cluster *clusterv1.Cluster) (machines.Cluster, error) {
	object := &infrav1.SimCluster{}

	err := c.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Spec.InfrastructureRef.Name}, object)
	if apierrors.IsNotFound(err) {
		return ClusterOf(cluster, nil), nil
	}

	if err != nil {
		return machines.Cluster{}, fmt.Errorf("infrastructure of the Cluster: %w", err)
	}

	return ClusterOf(cluster, object), nil
}

func setReady(object *infrav1.SimCluster, status metav1.ConditionStatus, reason, message string) {
	conditions.Set(object, metav1.Condition{Type: infrav1.ReadyCondition, Status: status, Reason: reason, Message: message})
}
