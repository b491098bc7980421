// SPDX-License-Identifier: Apache-2.0

package talosclusterconfig

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/bootstrap/moving"
	"github.com/maesh-dev/ichor/bootstrap/reporting"
	"github.com/maesh-dev/ichor/internal/clustersecrets"
	"github.com/maesh-dev/ichor/internal/inputs"
	"github.com/maesh-dev/ichor/internal/machineconfig"
)

// +kubebuilder:rbac:groups=bootstrap.ichor.maesh.dev,resources=talosclusterconfigs;talosconfigs,verbs=list;watch
// +kubebuilder:rbac:groups=bootstrap.ichor.maesh.dev,resources=talosclusterconfigs/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters;machines;machinepools,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch

// Reconciler reports on TalosClusterConfigs.
type Reconciler struct {
	// Client reads from the cache, and writes.
	Client client.Client

	// APIReader reads Secrets that the cache does not have, or has in another version than Metadata, live.
	APIReader client.Reader

	// Inputs reads what a TalosClusterConfig refers to.
	Inputs *inputs.Reader

	// Metadata knows of every Secret that it exists and when it changes, and no value.
	Metadata cache.Cache

	// Secrets judges the secrets of clusters.
	Secrets *clustersecrets.Keeper

	// Labels gives what is referred to the label that a move goes by.
	Labels *moving.Labeller

	// Settle is how long machines that begin or end to carry secrets are gathered: a cluster gets them by the hundred.
	Settle time.Duration

	// WatchFilter is the value of the watch-filter label on the TalosClusterConfigs to report on. Empty: all.
	WatchFilter string

	objects, secrets *lru.Cache
	failing          *reporting.Failing
	writer           reporting.Writer
}

const (
	// maxObjects bounds what is remembered of TalosClusterConfigs, and maxClusters of clusters under one.
	maxObjects  = 4096
	maxClusters = 16384
)

// lookAgain is how long a finding is kept that nothing which is watched ends.
const lookAgain = time.Minute

// clusterKey is a cluster under a TalosClusterConfig.
type clusterKey struct{ config, cluster types.UID }

// Reconcile brings the status of one TalosClusterConfig up to date.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	before := &bootstrapv1.TalosClusterConfig{}
	if err := r.Client.Get(ctx, req.NamespacedName, before); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}

	if !before.DeletionTimestamp.IsZero() || (r.WatchFilter != "" && before.Labels[clusterv1.WatchLabel] != r.WatchFilter) {
		return ctrl.Result{}, nil
	}

	config := before.DeepCopy()
	config.Status.ObservedGeneration = config.Generation

	if reporting.SetPaused(config, machineconfig.KindTalosClusterConfig) {
		return r.writer.Write(ctx, before, config)
	}

	seen, err := r.observe(ctx, config)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observe: %w", err)
	}

	found, err := r.look(ctx, seen)
	if err != nil {
		return r.failing.NotRead(ctx, r.writer, before, config, err,
			bootstrapv1.RegistriesResolvedCondition, bootstrapv1.SecretsBundleAvailableCondition, bootstrapv1.TalosClusterConfigReadyCondition)
	}

	r.failing.Passed(config.UID)
	report(config, seen, found)

	movable, labelErr := r.label(ctx, seen)
	if movable = orNotCreatable(config, movable); movable != nil {
		conditions.Set(config, *movable)
	} else if labelErr == nil {
		conditions.Delete(config, bootstrapv1.MovableCondition)
	}

	// A label that cannot be set hides nothing of what is reported.
	result, err := r.writer.Write(ctx, before, config)
	if result.IsZero() && (!found.notices.Empty() || slices.ContainsFunc(found.bundles, func(finding bundleFinding) bool { return finding.again })) {
		result.RequeueAfter = lookAgain
	}

	return result, errors.Join(err, labelErr)
}

// look is judge with time left to say that it fails.
func (r *Reconciler) look(ctx context.Context, seen observation) (judgement, error) {
	ctx, cancel := reporting.WithTimeToTell(ctx)
	defer cancel()

	return r.judge(ctx, seen)
}

// label labels the Secrets that the TalosClusterConfig refers to, unless one of its Clusters is paused.
func (r *Reconciler) label(ctx context.Context, seen observation) (*metav1.Condition, error) {
	var (
		references []machineconfig.ObjectKey
		paused     []string
	)

	for _, name := range inputs.ReferencedSecrets(seen.config) {
		references = append(references, machineconfig.ObjectKey{Kind: machineconfig.KindSecret, Name: name})
	}

	for i := range seen.clusters {
		if isPaused(&seen.clusters[i]) {
			paused = append(paused, seen.clusters[i].Name)
		}
	}

	return r.Labels.Label(ctx, seen.config.Namespace, paused, references...)
}
