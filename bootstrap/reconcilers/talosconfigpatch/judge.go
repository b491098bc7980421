// SPDX-License-Identifier: Apache-2.0

package talosconfigpatch

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/internal/inputs"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/internal/version"
)

// verdict is what a render of a group of machines has found. It holds no value of the config.
type verdict struct {
	faults []fault

	// ineffective are the names of the patches that change nothing.
	ineffective sets.Set[string]
}

// fault is why the machines do not render. Patch is empty when it is not a TalosConfigPatch's.
type fault struct{ patch, message string }

// judge renders the group, unless nothing that goes in has changed since the last time.
func (p *pass) judge(ctx context.Context, group inputs.Group) (verdict, error) {
	pin, err := p.pin(ctx, group.Cluster)
	if err != nil {
		return verdict{}, err
	}

	current, err := p.Inputs.GroupFingerprint(ctx, group, pin)
	if err != nil {
		return verdict{}, err
	}

	if cached, ok := p.judged.Get(current); ok {
		if known, ok := cached.(verdict); ok {
			return known, nil
		}
	}

	found, err := p.render(ctx, group.Observed, pin)
	if err != nil {
		return verdict{}, err
	}

	p.judged.Add(current, found)

	return found, nil
}

// pin is the config contract of the Cluster's first render.
func (p *pass) pin(ctx context.Context, cluster *clusterv1.Cluster) (string, error) {
	if pin, ok := p.pins[cluster.Name]; ok {
		return pin, nil
	}

	secret := &corev1.Secret{}

	err := p.Client.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: secrets.BundleName(cluster.Name)}, secret)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("secret %s: %w", secrets.BundleName(cluster.Name), err)
	}

	p.pins[cluster.Name] = secret.Annotations[secrets.ConfigContractAnnotation]

	return p.pins[cluster.Name], nil
}

func (p *pass) render(ctx context.Context, seen inputs.Observed, pin string) (verdict, error) {
	config, err := p.config(ctx, seen, pin)
	if err != nil {
		faults := machineconfig.Errors(err)
		if len(faults) == 0 {
			return verdict{}, err
		}

		var found verdict

		for _, each := range faults {
			name := ""
			if each.Source.Kind == machineconfig.KindTalosConfigPatch {
				name = each.Source.Name
			}

			found.faults = append(found.faults, fault{name, each.Error()})
		}

		return found, nil
	}

	idle := map[string]int{}

	for _, source := range config.Provenance.Ineffective {
		if source.Kind == machineconfig.KindTalosConfigPatch {
			idle[source.Name]++
		}
	}

	applied, err := seen.Applied()
	if err != nil {
		return verdict{}, err
	}

	found := verdict{ineffective: sets.New[string]()}

	for _, patch := range applied {
		spec := &patch.Object().Spec
		if idle[patch.Object().Name] == len(spec.Documents)+len(spec.Deletions) {
			found.ineffective.Insert(patch.Object().Name)
		}
	}

	return found, nil
}

// config renders with a bundle that stands in for the cluster's own: no patch can touch what is in it. An endpoint that the
// infrastructure has not given yet is made up for the same reason.
func (p *pass) config(ctx context.Context, seen inputs.Observed, pin string) (machineconfig.Config, error) {
	if err := seen.Err(); err != nil {
		return machineconfig.Config{}, err
	}

	contract, err := machineconfig.SelectContract(seen.TalosConfig, seen.ClusterConfig,
		machineconfig.Pins{Machine: machineconfig.MachinePin(seen.TalosConfig, seen.Machine), Cluster: pin})
	if err != nil {
		return machineconfig.Config{}, err
	}

	in, err := p.live.Resolve(ctx, seen)
	if err != nil {
		return machineconfig.Config{}, err
	}

	if !in.Cluster.Spec.ControlPlaneEndpoint.IsValid() {
		in.Cluster = in.Cluster.DeepCopy()
		in.Cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "endpoint.invalid", Port: 6443}
	}

	in.Contract, in.Provenance = contract, true
	if in.Bundle, err = p.standIn(contract); err != nil {
		return machineconfig.Config{}, err
	}

	return machineconfig.Render(in)
}

// standIn is a bundle that no cluster has, one for each contract.
func (r *Reconciler) standIn(contract version.Contract) (*secrets.Bundle, error) {
	r.standIns.Lock()
	defer r.standIns.Unlock()

	if bundle, ok := r.bundles[contract.String()]; ok {
		return bundle, nil
	}

	bundle, err := secrets.New(r.Clock, contract, secrets.WithECDSAServiceAccountKey())
	if err != nil {
		return nil, fmt.Errorf("make a bundle to render with: %w", err)
	}

	r.bundles[contract.String()] = bundle

	return bundle, nil
}
