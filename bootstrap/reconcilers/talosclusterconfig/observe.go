// SPDX-License-Identifier: Apache-2.0

package talosclusterconfig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/clustersecrets"
	"github.com/maesh-dev/ichor/internal/inputs"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/internal/targeting"
)

// observation is what the caches say.
type observation struct {
	config *bootstrapv1.TalosClusterConfig

	// clusters are those that are targeted, by name.
	clusters []clusterv1.Cluster

	// faults are of the selection: a selector that is none, others that target one of the clusters.
	faults []error

	// state changes with everything that is judged.
	state state
}

// state is what a judgement holds for.
type state struct {
	config  inputs.Version
	secrets []secretState
	bundles []bundleState
}

type secretState struct {
	name    string
	version inputs.Version
}

type bundleState struct {
	cluster     types.UID
	initialized bool
	version     inputs.Version

	// lost says that the bundle does not exist and must not be made again.
	lost string
}

func (s state) equal(other state) bool {
	return s.config == other.config && slices.Equal(s.secrets, other.secrets) && slices.Equal(s.bundles, other.bundles)
}

func (r *Reconciler) observe(ctx context.Context, config *bootstrapv1.TalosClusterConfig) (observation, error) {
	seen := observation{config: config, state: state{config: inputs.Version{UID: config.UID, Generation: config.Generation}}}
	namespace := client.InNamespace(config.Namespace)

	clusters := &clusterv1.ClusterList{}
	if err := r.Client.List(ctx, clusters, namespace); err != nil {
		return seen, fmt.Errorf("list Clusters: %w", err)
	}

	configs := &bootstrapv1.TalosClusterConfigList{}
	if err := r.Client.List(ctx, configs, namespace); err != nil {
		return seen, fmt.Errorf("list TalosClusterConfigs: %w", err)
	}

	slices.SortFunc(clusters.Items, func(a, b clusterv1.Cluster) int { return cmp.Compare(a.Name, b.Name) })

	for i := range clusters.Items {
		cluster := &clusters.Items[i]

		targeted, err := targeting.Cluster(config.Spec.ClusterTargeting, config.Namespace, cluster)
		if err != nil {
			seen.faults = append(seen.faults, fmt.Errorf("TalosClusterConfig %s spec: %w", config.Name, err))

			break
		}

		if !targeted {
			continue
		}

		seen.clusters = append(seen.clusters, *cluster)

		if _, err := machineconfig.SelectClusterConfig(cluster, configs.Items); err != nil {
			seen.faults = append(seen.faults, err)
		}
	}

	return seen, r.observeSecrets(ctx, &seen)
}

// observeSecrets notes the versions of all Secrets that are looked into.
func (r *Reconciler) observeSecrets(ctx context.Context, seen *observation) error {
	version := func(name string) (inputs.Version, error) {
		return r.Inputs.Version(ctx, seen.config.Namespace, machineconfig.ObjectKey{Kind: machineconfig.KindSecret, Name: name})
	}

	for _, name := range inputs.ReferencedSecrets(seen.config) {
		now, err := version(name)
		if err != nil {
			return err
		}

		seen.state.secrets = append(seen.state.secrets, secretState{name, now})
	}

	for i := range seen.clusters {
		cluster := &seen.clusters[i]

		now, err := version(secrets.BundleName(cluster.Name))
		if err != nil {
			return err
		}

		lost := ""
		if now == (inputs.Version{}) {
			if lost, err = r.lost(ctx, cluster); err != nil {
				return err
			}
		}

		seen.state.bundles = append(seen.state.bundles, bundleState{cluster.UID, initialized(cluster), now, lost})
	}

	return nil
}

// lost says why a bundle that does not exist must not be made again; it is empty when it is still to be made.
func (r *Reconciler) lost(ctx context.Context, cluster *clusterv1.Cluster) (string, error) {
	err := r.Secrets.RefuseLost(ctx, cluster)

	if fault, ok := errors.AsType[*clustersecrets.FaultError](err); ok {
		return fault.Error(), nil
	}

	return "", err
}

func initialized(cluster *clusterv1.Cluster) bool {
	return ptr.Deref(cluster.Status.Initialization.ControlPlaneInitialized, false)
}
