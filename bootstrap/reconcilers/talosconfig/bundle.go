// SPDX-License-Identifier: Apache-2.0

package talosconfig

import (
	"context"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/internal/version"
)

// clusterSecrets returns the contract to render with and the cluster's secrets bundle. The bundle is made if the cluster
// has none, by whoever comes first; the Secrets that others read are made of it.
func (r *Reconciler) clusterSecrets(ctx context.Context, seen observation, config *bootstrapv1.TalosClusterConfig,
) (version.Contract, *secrets.Bundle, error) {
	found, err := r.Secrets.Find(ctx, seen.cluster)
	if err != nil {
		return version.Contract{}, nil, err
	}

	pins := machineconfig.Pins{Machine: seen.config.Status.ConfigContract}
	if found != nil {
		pins.Cluster = found.Annotations[secrets.ConfigContractAnnotation]
	}

	// Before the bundle is made: a cluster that nobody says the contract of gets no secrets either.
	contract, err := machineconfig.SelectContract(seen.config, config, pins)
	if err != nil {
		return version.Contract{}, nil, err
	}

	if found == nil {
		if found, err = r.Secrets.Make(ctx, seen.cluster, config, contract); err != nil {
			return version.Contract{}, nil, err
		}
	}

	bundle, err := r.Secrets.Open(ctx, seen.cluster, config, found, contract)

	return contract, bundle, err
}
