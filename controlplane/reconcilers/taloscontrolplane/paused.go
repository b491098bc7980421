// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/paused"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/rollout"
)

// ensurePaused keeps the Paused condition, and says whether to stop here: because of a pause, or because the condition was written and the
// changed object comes back from the cache. While it is paused the plan says so, and the generation is observed: nobody else notes it then,
// and tools that wait for a change to be seen would wait until the pause ends.
func (r *Reconciler) ensurePaused(ctx context.Context, cluster *clusterv1.Cluster, tcp *controlplanev1.TalosControlPlane) (bool, error) {
	isPaused, changed, err := paused.EnsurePausedCondition(ctx, r.Client, cluster, tcp)
	if err != nil || !isPaused || changed {
		return isPaused || changed, err
	}

	before := tcp.DeepCopy()
	tcp.Status.ObservedGeneration = tcp.Generation
	setPlan(tcp, rollout.Plan(rollout.Snapshot{
		Cluster: clusterOf(cluster), ControlPlane: rollout.ControlPlane{Name: tcp.Name, Paused: annotations.HasPaused(tcp)},
	}), "", r.Clock.Now())

	if equality.Semantic.DeepEqual(before.Status, tcp.Status) {
		return true, nil
	}

	if err := r.Client.Status().Patch(ctx, tcp, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return true, fmt.Errorf("report the pause: %w", err)
	}

	return true, nil
}
