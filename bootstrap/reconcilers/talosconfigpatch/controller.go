// SPDX-License-Identifier: Apache-2.0

package talosconfigpatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/bootstrap/moving"
	"github.com/maesh-dev/ichor/bootstrap/reporting"
	"github.com/maesh-dev/ichor/internal/inputs"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/internal/targeting"
)

// +kubebuilder:rbac:groups=bootstrap.ichor.maesh.dev,resources=talosconfigpatches;talosconfigs;talosclusterconfigs;talosstorages,verbs=list;watch
// +kubebuilder:rbac:groups=bootstrap.ichor.maesh.dev,resources=talosconfigpatches/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters;machines;machinepools,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=secrets;configmaps,verbs=get;list;watch

// Reconciler reports on TalosConfigPatches.
type Reconciler struct {
	// Client reads from the cache, and writes.
	Client client.Client

	// Inputs reads what configs are rendered from.
	Inputs *inputs.Reader

	// Metadata knows of every Secret and ConfigMap that it exists and when it changes, and no value.
	Metadata cache.Cache

	// Labels gives what is referred to the label that a move goes by.
	Labels *moving.Labeller

	// Clock gives the time for surveys, and for the certificates of the bundles that stand in for the clusters' own.
	Clock clock.PassiveClock

	// Settle is how long changes of other objects are gathered before the patches of their namespace are looked at again.
	Settle time.Duration

	// WatchFilter is the value of the watch-filter label on the TalosConfigPatches to report on. Empty: all.
	WatchFilter string

	failing *reporting.Failing
	writer  reporting.Writer
	judged  *lru.Cache
	windows windows

	standIns sync.Mutex
	bundles  map[string]*secrets.Bundle
}

// judged are the conditions that are unknown when nothing could be judged.
var judged = []string{
	bootstrapv1.TalosConfigPatchValidCondition, bootstrapv1.TalosConfigPatchEffectiveCondition, bootstrapv1.TalosConfigPatchReadyCondition,
}

// maxJudged bounds what is remembered of groups of machines.
const maxJudged = 4096

// Reconcile brings the status of one TalosConfigPatch up to date.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	before := &bootstrapv1.TalosConfigPatch{}
	if err := r.Client.Get(ctx, req.NamespacedName, before); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}

	if !before.DeletionTimestamp.IsZero() || !r.responsible(before) {
		return ctrl.Result{}, nil
	}

	// The cache hands out this kind without a copy.
	patch := before.DeepCopy()
	patch.Status.ObservedGeneration = patch.Generation

	if reporting.SetPaused(patch, machineconfig.KindTalosConfigPatch) {
		return r.writer.Write(ctx, before, patch)
	}

	surveyed, wait, err := r.look(ctx, patch)
	if err != nil {
		return r.failing.NotRead(ctx, r.writer, before, patch, err, judged...)
	}

	if wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}

	found, unread := surveyed.patches[patch.Name], ""

	// Of machines that could be judged is said what was found, once it is time to say why others could not.
	if found.unread == nil {
		r.failing.Passed(patch.UID)
	} else if unread = r.failing.Say(patch.UID, found.unread); unread == "" {
		return ctrl.Result{}, found.unread
	}

	clusters := &clusterv1.ClusterList{}
	if err := r.Client.List(ctx, clusters, client.InNamespace(patch.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, fmt.Errorf("list Clusters: %w", err)
	}

	report(patch, found, unread, clusters.Items)

	movable, labelErr := r.Labels.Label(ctx, patch.Namespace, pausedClusters(patch, found, clusters.Items), found.parsed.Objects()...)
	if movable != nil {
		conditions.Set(patch, *movable)
	} else if labelErr == nil {
		conditions.Delete(patch, bootstrapv1.MovableCondition)
	}

	// A label that cannot be set hides nothing of what is reported.
	result, err := r.writer.Write(ctx, before, patch)

	return result, errors.Join(err, labelErr, found.unread)
}

// look is survey with time left to say that it fails.
func (r *Reconciler) look(ctx context.Context, patch *bootstrapv1.TalosConfigPatch) (*survey, time.Duration, error) {
	ctx, cancel := reporting.WithTimeToTell(ctx)
	defer cancel()

	return r.survey(ctx, patch)
}

// pausedClusters are the Clusters that are paused and to which the patch applies, by its targeting or by reference.
func pausedClusters(patch *bootstrapv1.TalosConfigPatch, found *findings, clusters []clusterv1.Cluster) []string {
	var paused []string

	for i := range clusters {
		cluster := &clusters[i]
		if !ptr.Deref(cluster.Spec.Paused, false) {
			continue
		}

		targeted, err := targeting.Cluster(patch.Spec.ClusterTargeting, patch.Namespace, cluster)
		if targeted || err != nil || found.clusters.Has(cluster.Name) {
			paused = append(paused, cluster.Name)
		}
	}

	return paused
}
