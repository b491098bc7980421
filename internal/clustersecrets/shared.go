// SPDX-License-Identifier: Apache-2.0

package clustersecrets

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// refuseShared says so when a bundle to copy is that of another Cluster of the namespace: whoever administers one of two clusters with the
// same secrets administers the other, and their nodes find each other. What is compared is the id that Talos gives a cluster, which every
// generated bundle has of its own. Nothing that is watched tells when the other Cluster is gone.
//
// What the cache has of the others' bundles is not read with others: a fleet has hundreds, of which none that is made gets another id. Those that it
// lacks may have been made a moment ago. Two processes that copy one bundle for two Clusters in the same moment see neither's; leader election keeps
// a second from working.
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

		key := keyOf(other, secrets.BundleName(other.Name))

		secret, err := k.cached(ctx, key)
		if secret == nil && err == nil {
			secret, err = others(ctx, key)
		}

		if err != nil {
			return err
		}

		if secret != nil && isOf(secret, bundle, k.clock) {
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

// isOf says whether the Secret has the bundle. It is decoded for this alone: those of all others would take the place of the few that machines are
// rendered with. One that cannot be read is a fault of the other Cluster.
func isOf(secret *corev1.Secret, bundle *secrets.Bundle, clock secrets.Clock) bool {
	theirs, err := secrets.Decode(secret.Data[secrets.BundleKey], clock)

	return err == nil && theirs.Cluster != nil && theirs.Cluster.ID == bundle.Cluster.ID
}
