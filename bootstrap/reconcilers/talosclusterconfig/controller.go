// SPDX-License-Identifier: Apache-2.0

package talosclusterconfig

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/bootstrap/moving"
	"github.com/maesh-dev/ichor/bootstrap/pausing"
	"github.com/maesh-dev/ichor/internal/clustersecrets"
	"github.com/maesh-dev/ichor/internal/inputs"
	"github.com/maesh-dev/ichor/internal/machineconfig"
)

// +kubebuilder:rbac:groups=bootstrap.ichor.maesh.dev,resources=talosclusterconfigs,verbs=list;watch
// +kubebuilder:rbac:groups=bootstrap.ichor.maesh.dev,resources=talosclusterconfigs/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;patch

// Reconciler reports on TalosClusterConfigs.
type Reconciler struct {
	// Client reads from the cache, and writes.
	Client client.Client

	// APIReader reads the Secrets of bundles live.
	APIReader client.Reader

	// Inputs reads what a TalosClusterConfig refers to.
	Inputs *inputs.Reader

	// Metadata knows of every Secret that it exists and when it changes, and no value.
	Metadata cache.Cache

	// Secrets knows whether a bundle that does not exist is still to be made.
	Secrets *clustersecrets.Keeper

	// Clock gives the time at which certificates are looked at.
	Clock clock.PassiveClock

	// WatchFilter is the value of the watch-filter label on the TalosClusterConfigs to report on. Empty: all.
	WatchFilter string

	judged *lru.Cache
}

// maxJudged bounds what is remembered of TalosClusterConfigs.
const maxJudged = 4096

// Reconcile brings the status of one TalosClusterConfig up to date.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	config := &bootstrapv1.TalosClusterConfig{}
	if err := r.Client.Get(ctx, req.NamespacedName, config); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}

	if !config.DeletionTimestamp.IsZero() || (r.WatchFilter != "" && config.Labels[clusterv1.WatchLabel] != r.WatchFilter) {
		return ctrl.Result{}, nil
	}

	// No Cluster is handed in: several may be targeted, and one that is paused stops no report.
	if stop, _, err := pausing.Ensure(ctx, r.Client, nil, config, &config.Status.ObservedGeneration); err != nil || stop {
		return ctrl.Result{}, err
	}

	seen, err := r.observe(ctx, config)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observe: %w", err)
	}

	found, err := r.judge(ctx, seen)
	if err != nil {
		return ctrl.Result{}, err
	}

	var references []machineconfig.ObjectKey
	for _, name := range inputs.ReferencedSecrets(config) {
		references = append(references, machineconfig.ObjectKey{Kind: machineconfig.KindSecret, Name: name})
	}

	// A label that is refused, by a policy for example, hides nothing of what is reported.
	return ctrl.Result{}, errors.Join(
		r.report(ctx, seen, found),
		moving.Label(ctx, r.Client, r.Inputs, config.Namespace, references...),
	)
}
