// SPDX-License-Identifier: Apache-2.0

package clustersecrets

import (
	"context"
	"fmt"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// refuseShared says so when a bundle to copy is that of another Cluster of the namespace: whoever administers one of two clusters with the
// same secrets administers the other, and their nodes find each other. What is compared is the id that Talos gives a cluster, which every
// generated bundle has of its own. Nothing that is watched tells when the other Cluster is gone.
func (k *Keeper) refuseShared(ctx context.Context, others reader, cluster *clusterv1.Cluster, config *bootstrapv1.TalosClusterConfig,
	bundle *secrets.Bundle,
) error {
	clusters := &clusterv1.ClusterList{}
	if err := k.client.List(ctx, clusters, client.InNamespace(cluster.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Clusters: %w", err)
	}

	var sharing []string

	for i := range clusters.Items {
		other := &clusters.Items[i]
		if other.Name == cluster.Name {
			continue
		}

		secret, err := others(ctx, keyOf(other, secrets.BundleName(other.Name)))
		if err != nil {
			return err
		}

		if secret == nil {
			continue
		}

		// One that cannot be read is a fault of the other Cluster.
		if theirs, err := k.bundles.get(secret, k.clock); err == nil && theirs.Cluster != nil && theirs.Cluster.ID == bundle.Cluster.ID {
			sharing = append(sharing, other.Name)
		}
	}

	if len(sharing) == 0 {
		return nil
	}

	return &FaultError{Reason: bootstrapv1.SecretsBundleMismatchReason, Again: true, Err: fmt.Errorf(
		"TalosClusterConfig %s: spec.secretsRef: secret %s: holds the bundle of Cluster %s, whose administrators would be this Cluster's, too: "+
			"give each Cluster a bundle of its own", config.Name, userBundle(config), slices.Min(sharing))}
}
