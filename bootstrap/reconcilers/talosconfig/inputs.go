// SPDX-License-Identifier: Apache-2.0

package talosconfig

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/maesh-dev/ichor/internal/inputs"
	"github.com/maesh-dev/ichor/internal/machineconfig"
)

// renderInputs is what a config is rendered from.
type renderInputs struct {
	render machineconfig.Input

	// generations of the objects that may have gone in. Secrets have none.
	generations map[machineconfig.ObjectKey]int64

	// fingerprint stands for the content of all of it, for MachinePools. It is empty where a render says what is wrong.
	fingerprint string

	// bundle is the Secret with the cluster's secrets, set when they were found good, so that a later fault is not theirs.
	bundle *corev1.Secret
}

func (o observation) subject() inputs.Subject {
	return inputs.Subject{TalosConfig: o.config, Cluster: o.cluster, Owner: o.owner.object, Machine: o.owner.machine}
}

// resolve reads what a render needs beyond the caches, and has the cluster's secrets made if there are none. What users refer to by name
// is read live, and once: no cache holds the values of Secrets that are not Ichor's.
func (r *Reconciler) resolve(ctx context.Context, seen observation, observed inputs.Observed) (renderInputs, error) {
	in := renderInputs{generations: observed.Generations}

	if err := observed.Err(); err != nil {
		return in, err
	}

	contract, bundle, opened, err := r.clusterSecrets(ctx, seen, observed.ClusterConfig)
	if err != nil {
		return in, err
	}

	in.bundle = opened
	in.render, err = r.Inputs.Live(seen.config.Namespace).Resolve(ctx, observed)
	in.render.Contract, in.render.Bundle = contract, bundle

	if err != nil || seen.owner.machine.Kind != machineconfig.KindMachinePool {
		return in, err
	}

	// What cannot be told apart is rendered, which says why.
	if in.fingerprint, err = machineconfig.Fingerprint(in.render); machineconfig.ReasonOf(err) != "" {
		err = nil
	}

	return in, err
}
