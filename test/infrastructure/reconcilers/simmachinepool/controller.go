// SPDX-License-Identifier: Apache-2.0

// Package simmachinepool reconciles SimMachinePools: it makes as many simulated machines as the MachinePool wants, boots them with its
// bootstrap data, and takes away those that are too many. It is not pure.
package simmachinepool

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
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

// +kubebuilder:rbac:groups=infrastructure.ichor.maesh.dev,resources=simmachinepools,verbs=list;watch;patch
// +kubebuilder:rbac:groups=infrastructure.ichor.maesh.dev,resources=simclusters,verbs=list;watch
// +kubebuilder:rbac:groups=infrastructure.ichor.maesh.dev,resources=simmachinepools/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters;machinepools,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get

// look is how often a pool is looked at: what happens on its machines is no event of the API server.
const look = 2 * time.Second

// Reconciler reconciles SimMachinePools.
type Reconciler struct {
	Client client.Client
	// APIReader reads Secrets, which no cache should hold.
	APIReader client.Reader
	Farm      *machines.Farm

	// WatchFilter is the value of the label cluster.x-k8s.io/watch-filter on what is reconciled. Empty: everything.
	WatchFilter string
}

// SetupWithManager adds the reconciler to a manager.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	log := mgr.GetLogger().WithName("simmachinepool")

	ofCluster, err := util.ClusterToTypedObjectsMapper(mgr.GetClient(), &infrav1.SimMachinePoolList{}, mgr.GetScheme())
	if err != nil {
		return fmt.Errorf("SimMachinePool controller: %w", err)
	}

	err = ctrl.NewControllerManagedBy(mgr).
		Named("simmachinepool").
		For(&infrav1.SimMachinePool{}, builder.WithPredicates(predicates.ResourceHasFilterLabel(mgr.GetScheme(), log, r.WatchFilter))).
		Watches(&clusterv1.MachinePool{}, handler.EnqueueRequestsFromMapFunc(
			util.MachinePoolToInfrastructureMapFunc(ctx, infrav1.GroupVersion.WithKind("SimMachinePool")))).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(ofCluster),
			builder.WithPredicates(predicates.ClusterPausedTransitionsOrInfrastructureProvisioned(mgr.GetScheme(), log))).
		WithOptions(options).
		Complete(r)
	if err != nil {
		return fmt.Errorf("SimMachinePool controller: %w", err)
	}

	return nil
}

// Reconcile brings the pool to the number of machines that is wanted, or takes it away.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (result ctrl.Result, reterr error) {
	object := &infrav1.SimMachinePool{}
	if err := r.Client.Get(ctx, request.NamespacedName, object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}

	pool, cluster, err := r.owners(ctx, object)
	if err != nil {
		return ctrl.Result{}, err
	}

	if object.DeletionTimestamp.IsZero() && (pool == nil || cluster == nil) {
		return ctrl.Result{}, nil // Cluster API has not taken it over yet
	}

	if stop, changed, err := paused.EnsurePausedCondition(ctx, r.Client, cluster, object); err != nil || stop || changed {
		return ctrl.Result{}, err
	}

	if object.DeletionTimestamp.IsZero() {
		if added, err := finalizers.EnsureFinalizer(ctx, r.Client, object, infrav1.MachinePoolFinalizer); err != nil || added {
			return ctrl.Result{}, err
		}
	}

	helper, err := patch.NewHelper(object, r.Client)
	if err != nil {
		return ctrl.Result{}, err
	}

	defer func() { reterr = errors.Join(reterr, report.Patch(ctx, helper, object)) }()

	if !object.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.delete(object)
	}

	return r.reconcile(ctx, cluster, pool, object)
}

// owners are the MachinePool and the Cluster that the object belongs to, nil if there is none.
func (r *Reconciler) owners(ctx context.Context, object *infrav1.SimMachinePool) (*clusterv1.MachinePool, *clusterv1.Cluster, error) {
	pool, err := util.GetOwnerMachinePool(ctx, r.Client, object.ObjectMeta)
	if client.IgnoreNotFound(err) != nil {
		return nil, nil, fmt.Errorf("owner of SimMachinePool: %w", err)
	}

	cluster, err := util.GetClusterFromMetadata(ctx, r.Client, object.ObjectMeta)
	if err != nil && !errors.Is(err, util.ErrNoCluster) && client.IgnoreNotFound(err) != nil {
		return nil, nil, fmt.Errorf("cluster of SimMachinePool: %w", err)
	}

	return pool, cluster, nil
}

// delete takes all machines away.
func (r *Reconciler) delete(object *infrav1.SimMachinePool) error {
	setReady(object, metav1.ConditionFalse, infrav1.DeletingReason, "")

	for _, instance := range r.instances(object) {
		if err := r.Farm.Destroy(instance.id); err != nil {
			return err
		}
	}

	controllerutil.RemoveFinalizer(object, infrav1.MachinePoolFinalizer)

	return nil
}

func setReady(object *infrav1.SimMachinePool, status metav1.ConditionStatus, reason, message string) {
	conditions.Set(object, metav1.Condition{Type: infrav1.ReadyCondition, Status: status, Reason: reason, Message: message})
}
