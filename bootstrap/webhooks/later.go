// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/targeting"
	"github.com/maesh-dev/ichor/internal/validating"
)

// around looks at what there is beside an object. Its reader is the manager's cache.
type around struct{ reader client.Reader }

// clusterConfig warns of patches that go no further when the Talos of their clusters is to be one with etcd 3.7.
func (a around) clusterConfig(ctx context.Context, before, after *bootstrapv1.TalosClusterConfig) []string {
	field := laterEtcdIn(after)
	if field == "" || before != nil && laterEtcdIn(before) == field {
		return nil
	}

	clusters := &clusterv1.ClusterList{}
	if err := a.reader.List(ctx, clusters, client.InNamespace(after.Namespace)); err != nil {
		return nil
	}

	return validating.GoneEtcdFlags(ctx, a.reader, after.Namespace, field, func(patch *bootstrapv1.TalosConfigPatch) bool {
		return slices.ContainsFunc(clusters.Items, func(cluster clusterv1.Cluster) bool {
			return targets(after.Spec.ClusterTargeting, &cluster) && targets(patch.Spec.ClusterTargeting, &cluster)
		})
	})
}

func targets(target bootstrapv1.ClusterTargeting, cluster *clusterv1.Cluster) bool {
	ok, err := targeting.Cluster(target, cluster.Namespace, cluster)

	return ok && err == nil
}

// laterEtcdIn is the field that says that machines of the clusters run a Talos with etcd 3.7, or boot it; empty when none does.
func laterEtcdIn(config *bootstrapv1.TalosClusterConfig) string {
	talos := &config.Spec.Talos

	switch {
	case validating.NeedsLaterEtcd(talos.Version):
		return "spec.talos.version"
	case validating.NeedsLaterEtcd(talos.ConfigContract):
		return "spec.talos.configContract"
	}

	for i := range talos.Pools {
		if validating.NeedsLaterEtcd(talos.Pools[i].Version) {
			return "spec.talos.pools[" + talos.Pools[i].Name + "].version"
		}
	}

	return ""
}
