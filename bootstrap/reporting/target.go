// SPDX-License-Identifier: Apache-2.0

package reporting

import (
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/prose"
	"github.com/maesh-dev/ichor/internal/suggest"
)

// NoCluster says why an object of the namespace targets none of the namespace's Clusters, which are all that it can target. A name that
// is nearly that of one is taken for a mistake.
func NoCluster(target bootstrapv1.ClusterTargeting, namespace string, clusters []clusterv1.Cluster) string {
	if target.ClusterName == "" {
		return fmt.Sprintf("spec.clusterSelector selects none of the %d Clusters in namespace %s", len(clusters), namespace)
	}

	names := make([]string, len(clusters))
	for i := range clusters {
		names[i] = clusters[i].Name
	}

	message := fmt.Sprintf("spec.clusterName: no Cluster %q is in namespace %s", target.ClusterName, namespace)

	if near := suggest.Nearest(target.ClusterName, names); near != "" {
		return fmt.Sprintf("%s: did you mean %q?", message, near)
	}

	if near := suggest.Longer(target.ClusterName, names); near != "" {
		return fmt.Sprintf("%s: did you mean %q?", message, near)
	}

	if len(names) == 0 {
		return message + ", nor any other"
	}

	return fmt.Sprintf("%s; there are %s", message, prose.Names(names))
}
