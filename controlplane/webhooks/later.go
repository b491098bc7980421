// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/targeting"
	"github.com/maesh-dev/ichor/internal/validating"
)

// The manager has no cache of patches: they are read live, when a config contract is said that brings another etcd.
//
// +kubebuilder:rbac:groups=bootstrap.ichor.maesh.dev,resources=talosconfigpatches,verbs=list

// around looks at what there is beside an object.
type around struct{ cached, live client.Reader }

// controlPlane warns of patches that go no further when its machines are to boot a Talos with etcd 3.7.
func (a around) controlPlane(ctx context.Context, before, after *controlplanev1.TalosControlPlane) []string {
	now := &after.Spec.TalosConfigSpec
	if !validating.NeedsLaterEtcd(now.ConfigContract) {
		return nil
	}

	if before != nil && before.Spec.TalosConfigSpec.ConfigContract == now.ConfigContract &&
		slices.Equal(before.Spec.TalosConfigSpec.PatchRefs, now.PatchRefs) {
		return nil
	}

	clusters := &clusterv1.ClusterList{}
	if err := a.cached.List(ctx, clusters, client.InNamespace(after.Namespace)); err != nil {
		return nil
	}

	own := slices.DeleteFunc(clusters.Items, func(cluster clusterv1.Cluster) bool {
		ref := cluster.Spec.ControlPlaneRef

		return ref.APIGroup != controlplanev1.GroupVersion.Group || ref.Name != after.Name
	})

	return validating.GoneEtcdFlags(ctx, a.live, after.Namespace, "spec.talosConfigSpec.configContract", func(patch *bootstrapv1.TalosConfigPatch) bool {
		referred := slices.ContainsFunc(now.PatchRefs, func(ref bootstrapv1.PatchReference) bool { return ref.Name == patch.Name })

		return referred || slices.ContainsFunc(own, func(cluster clusterv1.Cluster) bool {
			ok, err := targeting.Cluster(patch.Spec.ClusterTargeting, patch.Namespace, &cluster)

			return ok && err == nil
		})
	})
}
