// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/clustersecrets"
)

// The rights of the manager that this reconciler needs are those of the TalosConfigs'.

const (
	// maxTold bounds the faults that are remembered as told, one for each cluster.
	maxTold = 1024

	// longest is how long the next look at a talosconfig may be put off: a timer of half a year would not follow a clock that is set.
	longest = 24 * time.Hour

	// conflictPause is how long to wait for the cache after somebody else has written first.
	conflictPause = time.Second
)

// Reconciler keeps the secrets of Clusters that have TalosConfigs.
type Reconciler struct {
	// Client reads from the manager's cache.
	Client client.Client

	// Metadata knows of every Secret that it exists and when it changes, and no value.
	Metadata cache.Cache

	// Secrets keeps the secrets of clusters.
	Secrets *clustersecrets.Keeper

	// Clock says how long it is until a certificate is renewed.
	Clock clock.PassiveClock

	// WatchFilter is the value of the watch-filter label on the TalosConfigs of the Clusters to reconcile. Empty: all.
	WatchFilter string

	// told is the fault of each cluster that has been told, by UID.
	told *lru.Cache
}

// Reconcile sees to the secrets of one Cluster.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cluster := &clusterv1.Cluster{}
	if err := r.Client.Get(ctx, req.NamespacedName, cluster); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}

	// A paused Cluster may be on its way to another management cluster.
	if !cluster.DeletionTimestamp.IsZero() || annotations.IsPaused(cluster, cluster) {
		return ctrl.Result{}, nil
	}

	if ours, err := r.responsible(ctx, cluster); !ours || err != nil {
		return ctrl.Result{}, err
	}

	next, err := r.Secrets.Keep(ctx, cluster)

	return r.report(cluster, next, err)
}

// responsible says whether the Cluster has a TalosConfig that this manager reconciles. The Secrets of other Talos providers have the same
// names, and are theirs until a machine of the cluster has a TalosConfig.
func (r *Reconciler) responsible(ctx context.Context, cluster *clusterv1.Cluster) (bool, error) {
	labels := client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name}
	if r.WatchFilter != "" {
		labels[clusterv1.WatchLabel] = r.WatchFilter
	}

	configs := &bootstrapv1.TalosConfigList{}

	err := r.Client.List(ctx, configs, client.InNamespace(cluster.Namespace), labels, client.Limit(1), client.UnsafeDisableDeepCopy)
	if err != nil {
		return false, fmt.Errorf("list TalosConfigs: %w", err)
	}

	return len(configs.Items) > 0, nil
}

// report says when to come again, and tells a fault once.
func (r *Reconciler) report(cluster *clusterv1.Cluster, next time.Time, err error) (ctrl.Result, error) {
	if fault, ok := errors.AsType[*clustersecrets.FaultError](err); ok {
		news := r.tell(cluster, fault)

		switch {
		case fault.Again:
			return ctrl.Result{}, err
		case news:
			// What is at fault is watched.
			return ctrl.Result{}, reconcile.TerminalError(err)
		}

		return ctrl.Result{}, nil
	}

	switch {
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: conflictPause}, nil
	case err != nil:
		return ctrl.Result{}, err
	}

	r.told.Remove(cluster.UID)

	if next.IsZero() {
		return ctrl.Result{}, nil
	}

	return ctrl.Result{RequeueAfter: min(max(next.Sub(r.Clock.Now()), time.Second), longest)}, nil
}

// tell writes an event unless it has been the last thing that was told of the Cluster, and says whether it did.
func (r *Reconciler) tell(cluster *clusterv1.Cluster, fault *clustersecrets.FaultError) bool {
	if last, ok := r.told.Get(cluster.UID); ok && last == fault.Error() {
		return false
	}

	r.told.Add(cluster.UID, fault.Error())
	r.Secrets.RecordFault(cluster, fault)

	return true
}
