// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"context"
	"errors"
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/clustersecrets"
	"github.com/maesh-dev/ichor/internal/prose"
	"github.com/maesh-dev/ichor/internal/talos"
	"github.com/maesh-dev/ichor/internal/targeting"
)

func (r *Reconciler) observeSecrets(ctx context.Context, seen *observation) error {
	if seen.cluster == nil {
		return nil
	}

	// What the caches have is not decoded and proved again each time.
	state, err := r.Secrets.State(ctx, seen.cluster)
	if err != nil {
		return fmt.Errorf("secrets bundle: %w", err)
	}

	if state.Bundle != nil {
		seen.bundle, seen.secretsFault = state.Bundle, state.Fault

		return nil
	}

	if seen.bundle, err = r.Secrets.Find(ctx, seen.cluster); err != nil {
		return fmt.Errorf("secrets bundle: %w", err)
	}

	if seen.bundle == nil {
		// It is made with the first machine config, unless it has been there.
		err = r.Secrets.RefuseLost(ctx, seen.cluster)
	} else if err = r.Secrets.RefuseLeftover(ctx, seen.cluster, seen.bundle); err == nil {
		_, err = r.Secrets.Look(ctx, seen.cluster, "")
	}

	if fault, ok := errors.AsType[*clustersecrets.FaultError](err); ok {
		seen.secretsFault, err = fault, nil
	}

	return err
}

// clusterConfig is the TalosClusterConfig of the cluster, or nil. With several, nobody can tell how the nodes are reached and which authorities
// they trust: to go by neither would dial the wrong addresses, and take nodes for foreign.
func (r *Reconciler) clusterConfig(ctx context.Context, cluster *clusterv1.Cluster) (*bootstrapv1.TalosClusterConfig, error) {
	list := &bootstrapv1.TalosClusterConfigList{}
	if err := r.Client.List(ctx, list, client.InNamespace(cluster.Namespace)); err != nil {
		return nil, fmt.Errorf("list TalosClusterConfigs: %w", err)
	}

	var found *bootstrapv1.TalosClusterConfig

	for i := range list.Items {
		if ok, err := targeting.Cluster(list.Items[i].Spec.ClusterTargeting, cluster.Namespace, cluster); !ok || err != nil {
			continue
		}

		if found != nil {
			return nil, fmt.Errorf("TalosClusterConfigs %s both target Cluster %s, and nobody can tell by which of them its nodes are reached: change or delete one",
				prose.Names([]string{found.Name, list.Items[i].Name}), cluster.Name)
		}

		found = &list.Items[i]
	}

	return found, nil
}

// connect opens the way to the nodes, if there are secrets for it and something to learn.
func (r *Reconciler) connect(ctx context.Context, seen *observation) error {
	if seen.cluster == nil || seen.bundle == nil || !seen.etcdMatters() {
		return nil
	}

	bundle, err := seen.plane.bundle(seen.bundle, r.Secrets.Read)
	if err != nil {
		return nil //nolint:nilerr // The snapshot has it already: the secrets have been looked at.
	}

	config, err := r.clusterConfig(ctx, seen.cluster)
	if err != nil {
		return err
	}

	reach := talos.Reach{Endpoint: seen.cluster.Spec.ControlPlaneEndpoint.Host}
	credentials := talos.Credentials{Bundle: bundle}

	if config != nil {
		reach.API = config.Spec.TalosAPI

		if credentials.AcceptedCAs, err = r.acceptedCAs(ctx, config); err != nil {
			return err
		}
	}

	opened, err := r.Talos.Open(seen.plane.cluster, credentials)
	if err != nil {
		return fmt.Errorf("connect to the nodes: %w", err)
	}

	machines := make([]talos.Machine, len(seen.all))
	for i := range seen.all {
		machines[i] = talos.MachineOf(&seen.all[i])
	}

	for i := range machines {
		for j := range seen.snapshot.Machines {
			if seen.snapshot.Machines[j].Name == machines[i].Name {
				machines[i].Recorded = seen.snapshot.Machines[j].RecordedMembers
			}
		}
	}

	seen.nodes = opened.Nodes(reach, machines)

	return nil
}

// etcdMatters is false when the whole control plane goes and nobody needs it any more.
func (o *observation) etcdMatters() bool {
	return !o.snapshot.ControlPlane.Deleting || (o.snapshot.Cluster != nil && len(o.snapshot.Workers) > 0)
}

// acceptedCAs are the authorities of nodes that are trusted beside the bundle's, while those are rotated.
func (r *Reconciler) acceptedCAs(ctx context.Context, config *bootstrapv1.TalosClusterConfig) ([]byte, error) {
	ref := config.Spec.AcceptedCAsSecretRef
	if ref == nil {
		return nil, nil
	}

	return r.authorities.get(ctx, client.ObjectKey{Namespace: config.Namespace, Name: ref.Name})
}
