// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"cmp"
	"errors"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/targeting"
)

// Select returns the TalosStorage that governs a machine of the cluster, an element of storages, or nil if none does: of those in the
// Cluster's namespace that target the Cluster and whose machineSelector matches the machine's labels, the first by name. The labels are
// those of the CAPI Machine, or of a MachinePool's machine template.
//
// It is the only implementation of the rule. Rendering, evacuation and status all call it with the same labels, so that a node cannot be
// prepared by one TalosStorage and protected by another.
//
// The error is an Error: a TalosStorage whose selector is invalid, if that one could be the first.
func Select(cluster *clusterv1.Cluster, storages []bootstrapv1.TalosStorage, machineLabels map[string]string) (*bootstrapv1.TalosStorage, error) {
	byName := make([]*bootstrapv1.TalosStorage, 0, len(storages))
	for i := range storages {
		byName = append(byName, &storages[i])
	}

	slices.SortFunc(byName, func(a, b *bootstrapv1.TalosStorage) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace))
	})

	for _, storage := range byName {
		governs, err := governs(storage, cluster, machineLabels)
		if err != nil {
			return nil, named(storage.Name, err)
		}

		if governs {
			return storage, nil
		}
	}

	return nil, nil //nolint:nilnil // no TalosStorage is an ordinary answer
}

func governs(storage *bootstrapv1.TalosStorage, cluster *clusterv1.Cluster, machineLabels map[string]string) (bool, error) {
	// Another namespace's objects do not concern the cluster, broken or not.
	if storage.Namespace != cluster.Namespace {
		return false, nil
	}

	targeted, err := targeting.Cluster(storage.Spec.ClusterTargeting, storage.Namespace, cluster)
	if err != nil {
		return false, selectorFault("spec.clusterSelector", err)
	}

	if !targeted {
		return false, nil
	}

	matches, err := targeting.Machine(storage.Spec.MachineTargeting, machineLabels)
	if err != nil {
		return false, selectorFault("spec.machineSelector", err)
	}

	return matches, nil
}

// selectorFault takes the name of the selector out of the words of a targeting error. One that wraps nothing is about fields that do
// not go together, and names them itself.
func selectorFault(field string, err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return &Error{Field: field, Err: inner}
	}

	return &Error{Field: "spec", Err: err}
}
