// SPDX-License-Identifier: Apache-2.0

package talosconfig

import (
	"context"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/paused"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
)

// ensurePaused keeps the Paused condition, and says whether to stop here: because of a pause, or because the condition was written and the
// changed TalosConfig comes back from the cache. Until it does, the next reconcile is held back: with the old TalosConfig it would write
// the condition once more, since Secrets of the cluster that are made at the same time wake all TalosConfigs that wait.
func (r *Reconciler) ensurePaused(ctx context.Context, cluster *clusterv1.Cluster, config *bootstrapv1.TalosConfig) (bool, error) {
	noting := &notingClient{Client: r.Client}
	isPaused, changed, err := paused.EnsurePausedCondition(ctx, noting, cluster, config)

	if noting.version != "" {
		r.deferrer.DeferNextReconcileUntilCacheUpToDate(config, configKind, noting.version)
	}

	return isPaused || changed, err
}

// notingClient notes the resource version that a patch of the status has led to. Cluster API's function patches a copy of the object, and
// does not tell.
type notingClient struct {
	client.Client

	version string
}

// Status is the writer that notes.
func (c *notingClient) Status() client.SubResourceWriter {
	return notingWriter{c.Client.Status(), c}
}

type notingWriter struct {
	client.SubResourceWriter

	client *notingClient
}

// Patch patches and notes.
func (w notingWriter) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	err := w.SubResourceWriter.Patch(ctx, object, patch, options...)
	if err == nil {
		w.client.version = object.GetResourceVersion()
	}

	return err
}
