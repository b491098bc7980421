// SPDX-License-Identifier: Apache-2.0

package talosconfig

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/internal/version"
)

// clusterSecrets returns the contract to render with and the cluster's secrets bundle, with its Secret. The bundle is made if the cluster has
// none, by whoever comes first; the Secrets that others read are made of it.
func (r *Reconciler) clusterSecrets(ctx context.Context, seen observation, config *bootstrapv1.TalosClusterConfig,
) (version.Contract, *secrets.Bundle, *corev1.Secret, error) {
	found, err := r.Secrets.Find(ctx, seen.cluster)
	if err != nil {
		return version.Contract{}, nil, nil, err
	}

	// Before the bundle is made: a cluster that nobody says the contract of gets no secrets either.
	contract, err := selectContract(seen, config, found)
	if err != nil {
		return version.Contract{}, nil, nil, err
	}

	if found == nil {
		if found, err = r.Secrets.Make(ctx, seen.cluster, config, contract); err != nil {
			return version.Contract{}, nil, nil, err
		}

		// It may be another manager's, which has pinned the cluster to what it knew.
		if contract, err = selectContract(seen, config, found); err != nil {
			return version.Contract{}, nil, nil, err
		}
	}

	bundle, err := r.Secrets.Open(ctx, seen.cluster, config, found, contract)

	return contract, bundle, found, err
}

// selectContract selects the contract with what the machine and the cluster are pinned to. The bundle's Secret may be nil.
func selectContract(seen observation, config *bootstrapv1.TalosClusterConfig, bundle *corev1.Secret) (version.Contract, error) {
	pins := machineconfig.Pins{Machine: machineconfig.MachinePin(seen.config, seen.owner.machine)}
	if bundle != nil {
		pins.Cluster = bundle.Annotations[secrets.ConfigContractAnnotation]
	}

	contract, err := machineconfig.SelectContract(seen.config, config, pins)

	// Of what the pins are from, only this function knows.
	if fault, ok := errors.AsType[*machineconfig.Error](err); ok && fault.Source == (machineconfig.Source{}) {
		fault.Source = machineconfig.Source{
			Layer: machineconfig.LayerBase, Kind: machineconfig.KindSecret, Name: secrets.BundleName(seen.cluster.Name),
			Path: "metadata.annotations[" + secrets.ConfigContractAnnotation + "]",
		}
	}

	return contract, err
}
