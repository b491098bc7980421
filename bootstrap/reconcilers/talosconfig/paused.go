// SPDX-License-Identifier: Apache-2.0

package talosconfig

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/bootstrap/pausing"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// ensurePaused keeps the Paused condition, and says whether to stop here. Until the changed TalosConfig comes back from the cache, the next
// reconcile is held back: with the old TalosConfig it would write the condition once more, since Secrets of the cluster that are made at the
// same time wake all TalosConfigs that wait.
func (r *Reconciler) ensurePaused(ctx context.Context, cluster *clusterv1.Cluster, config *bootstrapv1.TalosConfig) (bool, error) {
	stop, version, err := pausing.Ensure(ctx, r.Client, cluster, config, &config.Status.ObservedGeneration)
	if version != "" {
		r.deferrer.DeferNextReconcileUntilCacheUpToDate(config, configKind, version)
	}

	// The first thing that is written to a TalosConfig.
	if secrets.IsRefusal(err) {
		r.recordUnwritten(config, err)
	}

	return stop, err
}

// isPausedNow asks the cache again, right before a write: a render takes a while, and what moves a cluster sets the pause and then copies what
// is there. Nothing is written either for what is gone, or has been made anew under its name: another machine's config would be in its way, with an
// owner that does not exist.
func (r *Reconciler) isPausedNow(ctx context.Context, seen observation) (bool, error) {
	cluster, config := &clusterv1.Cluster{}, &bootstrapv1.TalosConfig{}

	for _, object := range []struct{ then, now client.Object }{{seen.cluster, cluster}, {seen.config, config}} {
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(object.then), object.now); err != nil {
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		}

		if object.now.GetUID() != object.then.GetUID() {
			return true, nil
		}
	}

	return annotations.IsPaused(cluster, config), nil
}
