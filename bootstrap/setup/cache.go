// SPDX-License-Identifier: Apache-2.0

package setup

import (
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/launch"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// cached is what the manager's cache does with some kinds. Of Secrets it has the values only of the few that belong to a cluster as a
// whole.
func cached() map[client.Object]cache.ByObject {
	slim := slimmer{launch.NewSlimmer()}

	return map[client.Object]cache.ByObject{
		&corev1.Secret{}:           dataSecrets(),
		&clusterv1.Machine{}:       {Transform: slim.machine},
		&bootstrapv1.TalosConfig{}: {Transform: slim.talosConfig},
		// Every render lists all patches of a namespace. Nothing changes them, so they need not be copied each time.
		&bootstrapv1.TalosConfigPatch{}: {UnsafeDisableDeepCopy: new(true)},
	}
}

// dataSecrets are Secrets as the cache has them, most of which are machines' bootstrap data. Those of a pool are rendered from the same objects,
// under one contract.
func dataSecrets() cache.ByObject {
	return launch.Secrets(isOfCluster, bootstrapv1.RenderedInputsAnnotation, bootstrapv1.ConfigContractAnnotation)
}

// isOfCluster says whether a Secret of the name belongs to a cluster as a whole.
func isOfCluster(name string) bool {
	_, ok := secrets.ClusterOf(name)

	return ok
}
