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

	// clusters are those that are targeted, by name, and others how many of the namespace are not.
	clusters []clusterv1.Cluster
	others   []clusterv1.Cluster

	// faults are of the selection: a selector that is none, others that target one of the clusters.
	faults []error

	// object changes with everything that is judged of the object alone, and states with what is of each of the clusters.
	object objectState
	states []clusterState
}

// objectState is what a judgement of the object holds for.
type objectState struct {
	config  inputs.Version
	secrets []secretState
}

type secretState struct {
	name    string
	version inputs.Version
}

func (s objectState) equal(other objectState) bool {
	return s.config == other.config && slices.Equal(s.secrets, other.secrets)
}

// clusterState is what a judgement of a cluster's secrets holds for.
type clusterState struct {
	cluster     types.UID
	initialized bool

	// contract and version are what the config says of the contract that a bundle is copied for.
	contract, version string

	// ref is the Secret to copy the bundle from.
	ref secretState

	// secrets are the cluster's own, in the order of clustersecrets.Checked.
	secrets []secretState

	// lost says that the bundle does not exist and must not be made again.
	lost string
}

func (s clusterState) equal(other clusterState) bool {
	return s.cluster == other.cluster && s.initialized == other.initialized && s.contract == other.contract && s.version == other.version &&
		s.ref == other.ref && s.lost == other.lost && slices.Equal(s.secrets, other.secrets)
}

func (r *Reconciler) observe(ctx context.Context, config *bootstrapv1.TalosClusterConfig) (observation, error) {
	seen := observation{config: config}
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
			seen.others = append(seen.others, *cluster)

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
	config := seen.config
	seen.object.config = inputs.Version{UID: config.UID, Generation: config.Generation}

	var err error
	if seen.object.secrets, err = r.versions(ctx, config.Namespace, inputs.ReferencedSecrets(config)); err != nil {
		return err
	}

	var ref secretState

	if config.Spec.SecretsRef != nil {
		at := slices.IndexFunc(seen.object.secrets, func(secret secretState) bool { return secret.name == config.Spec.SecretsRef.Name })
		ref = seen.object.secrets[at]
	}

	for i := range seen.clusters {
		cluster := &seen.clusters[i]
		state := clusterState{
			cluster: cluster.UID, initialized: clustersecrets.Initialized(cluster), ref: ref,
			contract: config.Spec.Talos.ConfigContract, version: config.Spec.Talos.Version,
		}

		if state.secrets, err = r.versions(ctx, cluster.Namespace, clustersecrets.Checked(cluster.Name)); err != nil {
			return err
		}

		if !state.exists(secrets.BundleName(cluster.Name)) {
			if state.lost, err = r.lost(ctx, cluster); err != nil {
				return err
			}
		}

		seen.states = append(seen.states, state)
	}

	return nil
}

func (r *Reconciler) versions(ctx context.Context, namespace string, names []string) ([]secretState, error) {
	states := make([]secretState, len(names))

	for i, name := range names {
		now, err := r.Inputs.Version(ctx, namespace, machineconfig.ObjectKey{Kind: machineconfig.KindSecret, Name: name})
		if err != nil {
			return nil, err
		}

		states[i] = secretState{name, now}
	}

	return states, nil
}

// versionOf is that of one of the cluster's Secrets or of the one that it is copied from; the zero value is that of one that does not exist.
func (s clusterState) versionOf(name string) inputs.Version {
	for _, secret := range append([]secretState{s.ref}, s.secrets...) {
		if secret.name == name {
			return secret.version
		}
	}

	return inputs.Version{}
}

func (s clusterState) exists(name string) bool { return s.versionOf(name) != inputs.Version{} }

// lost says why a bundle that does not exist must not be made again; it is empty when it is still to be made.
func (r *Reconciler) lost(ctx context.Context, cluster *clusterv1.Cluster) (string, error) {
	err := r.Secrets.RefuseLost(ctx, cluster)

	if fault, ok := errors.AsType[*clustersecrets.FaultError](err); ok {
		return fault.Error(), nil
	}

	return "", err
}

func isPaused(cluster *clusterv1.Cluster) bool { return ptr.Deref(cluster.Spec.Paused, false) }
