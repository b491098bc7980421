// SPDX-License-Identifier: Apache-2.0

package talosconfig

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/bootstrap/reporting"
	"github.com/maesh-dev/ichor/internal/clustersecrets"
	"github.com/maesh-dev/ichor/internal/consistency"
	"github.com/maesh-dev/ichor/internal/inputs"
)

// The rights of the manager. What is only watched needs no get: reads come from the cache.
//
// +kubebuilder:rbac:groups=bootstrap.ichor.maesh.dev,resources=talosconfigs;talosclusterconfigs;talosconfigpatches;talosstorages,verbs=list;watch
// +kubebuilder:rbac:groups=bootstrap.ichor.maesh.dev,resources=talosconfigs/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters;machines;machinepools,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// Reconciler makes the bootstrap data of Machines and MachinePools from TalosConfigs.
type Reconciler struct {
	// Client reads from the cache, which has of Secrets only those with the cluster-name label, and writes.
	Client client.Client

	// Inputs reads what a config is rendered from.
	Inputs *inputs.Reader

	// APIReader reads live. It is used for Secrets of the cluster that the cache does not have, and only when a config is rendered.
	APIReader client.Reader

	// Metadata knows of every Secret and ConfigMap that it exists and when it changes, and no value.
	Metadata cache.Cache

	// Recorder writes events.
	Recorder events.EventRecorder

	// Secrets keeps the secrets of clusters.
	Secrets *clustersecrets.Keeper

	// Clock measures how long renders take.
	Clock clock.PassiveClock

	// WatchFilter is the value of the watch-filter label on the TalosConfigs to reconcile. Empty: all.
	WatchFilter string

	deferrer  consistency.Deferrer
	refreshed *refreshCache

	failing *reporting.Failing

	// told is the terminal fault of each TalosConfig that has been logged, by UID.
	told *lru.Cache
}

// cachePause is when to look again whether a cache has seen what a config is rendered from.
const cachePause = 200 * time.Millisecond

// noticePause is when to look again whether something is still to be said of a bundle that can be used.
const noticePause = time.Minute

// maxTold bounds the faults that are remembered as told.
const maxTold = 4096

// Reconcile brings one TalosConfig to its next state. Whatever it waits for is watched, see watches.go: nothing
// polls, but for a cache that is behind and for the time of a bundle, of which no event tells.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (_ ctrl.Result, reterr error) {
	config := &bootstrapv1.TalosConfig{}
	if err := r.Client.Get(ctx, req.NamespacedName, config); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}

	// The data Secret goes with its owner; there is nothing else to clean up.
	if !config.DeletionTimestamp.IsZero() || !r.responsible(config) {
		return ctrl.Result{}, nil
	}

	seen, err := r.observe(ctx, config)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observe: %w", err)
	}

	if stop, err := r.ensurePaused(ctx, seen.cluster, config); err != nil || stop {
		return ctrl.Result{}, err
	}

	ctx = ctrl.LoggerInto(ctx, ctrl.LoggerFrom(ctx).WithValues(seen.logValues()...))
	before := config.DeepCopy()

	next, done, fault := r.act(ctx, seen)

	if r.isMomentary(config, fault) {
		ctrl.LoggerFrom(ctx).V(3).Info("Waiting for a cache", "because", fault.Error())

		return ctrl.Result{RequeueAfter: cachePause}, nil
	}

	_, rendering := next.(render)
	_, refreshing := next.(refresh)

	if rendering || refreshing {
		recordFailure(done, fault)
	}

	done = r.explain(seen, next, done, fault)

	if err := r.notice(ctx, seen, &done); err != nil {
		return ctrl.Result{}, errors.Join(fault, err)
	}

	if err := r.report(ctx, before, config, done, fault); err != nil {
		// Alone: beside a fault that is terminal it would not be tried again, and nobody would read of the fault.
		if errors.Is(fault, reconcile.TerminalError(nil)) {
			fault = nil
		}

		return ctrl.Result{}, errors.Join(fault, err)
	}

	if err := r.tellOnce(ctx, config, fault); err != nil {
		return ctrl.Result{}, err
	}

	return noticed(done), nil
}

// act decides and does, with time left to say what has failed. The step is nil when it could not be decided on.
func (r *Reconciler) act(ctx context.Context, seen observation) (step, outcome, error) {
	ctx, cancel := reporting.WithTimeToTell(ctx)
	defer cancel()

	var err error
	if seen.secret, err = r.secret(ctx, seen.config); err != nil {
		return nil, outcome{}, fmt.Errorf("observe: %w", err)
	}

	next := decide(seen)
	done, err := r.execute(ctx, seen, next)

	return next, done, err
}

// notice adds to a bundle that can be used what is to be known of it.
func (r *Reconciler) notice(ctx context.Context, seen observation, done *outcome) (err error) {
	if seen.cluster != nil && done.bundle.status == metav1.ConditionTrue {
		done.bundle.message, err = r.Secrets.Notice(ctx, seen.cluster)
	}

	return err
}

// noticed has a TalosConfig looked at again that says something of the time of the cluster's bundle: the end of that is no event.
func noticed(done outcome) ctrl.Result {
	if done.bundle.status != metav1.ConditionTrue || done.bundle.message == "" {
		return ctrl.Result{}
	}

	return ctrl.Result{RequeueAfter: noticePause}
}

// tellOnce returns an error for controller-runtime to log. A fault that a user must mend, and that is looked at again because of something
// else, has been logged and is no news: it is in the conditions.
func (r *Reconciler) tellOnce(ctx context.Context, config *bootstrapv1.TalosConfig, fault error) error {
	if fault == nil {
		r.told.Remove(config.UID)
	}

	if !errors.Is(fault, reconcile.TerminalError(nil)) {
		return fault
	}

	if last, ok := r.told.Get(config.UID); ok && last == fault.Error() {
		ctrl.LoggerFrom(ctx).V(4).Info("The fault has not been mended", "fault", fault.Error())

		return nil
	}

	r.told.Add(config.UID, fault.Error())

	return fault
}

// responsible says whether this manager reconciles the TalosConfig. Other objects may wake any.
func (r *Reconciler) responsible(config *bootstrapv1.TalosConfig) bool {
	return r.WatchFilter == "" || config.Labels[clusterv1.WatchLabel] == r.WatchFilter
}
