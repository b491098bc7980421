// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"slices"

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
	return map[client.Object]cache.ByObject{
		&corev1.Secret{}:           launch.Secrets(isOfCluster),
		&clusterv1.Machine{}:       {Transform: stripMachine},
		&bootstrapv1.TalosConfig{}: {Transform: stripTalosConfig},
		// Every render lists all patches of a namespace. Nothing changes them, so they need not be copied each time.
		&bootstrapv1.TalosConfigPatch{}: {UnsafeDisableDeepCopy: new(true)},
	}
}

// isOfCluster says whether a Secret of the name belongs to a cluster as a whole.
func isOfCluster(name string) bool {
	_, ok := secrets.ClusterOf(name)

	return ok
}

// stripMachine leaves of a Machine's status whether it has joined, which is all that is asked of it. A status has conditions that make up
// most of a Machine, and Cluster API writes it often. Nothing of a Machine is ever written, so nothing is lost.
func stripMachine(in any) (any, error) {
	machine, ok := in.(*clusterv1.Machine)
	if !ok {
		return in, nil
	}

	machine.ManagedFields = nil
	delete(machine.Annotations, corev1.LastAppliedConfigAnnotation)
	machine.Status = clusterv1.MachineStatus{NodeRef: machine.Status.NodeRef}

	return machine, nil
}

// stripTalosConfig leaves all but the bookkeeping of who has written what, and gives back the room that decoding leaves behind lists.
func stripTalosConfig(in any) (any, error) {
	config, ok := in.(*bootstrapv1.TalosConfig)
	if !ok {
		return in, nil
	}

	config.ManagedFields = nil
	config.Status.Conditions = slices.Clone(config.Status.Conditions)

	return config, nil
}

