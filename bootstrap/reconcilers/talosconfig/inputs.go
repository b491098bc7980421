// SPDX-License-Identifier: Apache-2.0

package talosconfig

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
)

// renderInputs is what a config is rendered from.
type renderInputs struct {
	render machineconfig.Input

	// generations of the objects that may have gone in. Secrets have none.
	generations map[objectRef]int64

	// bundleSeen says that the cluster's secrets were found good, so that a later fault is not theirs.
	bundleSeen bool
}

// inputs reads what a render needs beyond the observation. What users refer to by name is read live, and once: no cache
// holds the values of Secrets that are not Ichor's.
func (r *Reconciler) inputs(ctx context.Context, seen observation) (renderInputs, error) {
	in := renderInputs{generations: map[objectRef]int64{}}
	in.add(machineconfig.KindTalosConfig, seen.config)
	in.add(machineconfig.KindCluster, seen.cluster)
	in.add(seen.owner.machine.Kind, seen.owner.object)

	namespace := client.InNamespace(seen.config.Namespace)

	configs := &bootstrapv1.TalosClusterConfigList{}
	if err := r.Client.List(ctx, configs, namespace); err != nil {
		return in, fmt.Errorf("list TalosClusterConfigs: %w", err)
	}

	clusterConfig, err := machineconfig.SelectClusterConfig(seen.cluster, configs.Items)
	if err != nil {
		return in, err
	}

	contract, bundle, err := r.clusterSecrets(ctx, seen, clusterConfig)
	if err != nil {
		return in, err
	}

	in.bundleSeen = true
	in.render = machineconfig.Input{
		Cluster:       seen.cluster,
		Machine:       seen.owner.machine,
		Bundle:        bundle,
		Contract:      contract,
		TalosConfig:   seen.config,
		ClusterConfig: clusterConfig,
	}

	if clusterConfig != nil {
		in.add(machineconfig.KindTalosClusterConfig, clusterConfig)
	}

	if in.render.Credentials, err = r.credentials(ctx, seen.config.Namespace, clusterConfig); err != nil {
		return in, err
	}

	return in, r.addSelectable(ctx, namespace, &in)
}

// addSelectable adds the objects of the namespace that select machines.
func (r *Reconciler) addSelectable(ctx context.Context, namespace client.InNamespace, in *renderInputs) error {
	storages := &bootstrapv1.TalosStorageList{}
	if err := r.Client.List(ctx, storages, namespace); err != nil {
		return fmt.Errorf("list TalosStorages: %w", err)
	}

	in.render.Storages = storages.Items
	for i := range storages.Items {
		in.add(machineconfig.KindTalosStorage, &storages.Items[i])
	}

	patches := &bootstrapv1.TalosConfigPatchList{}
	if err := r.Client.List(ctx, patches, namespace); err != nil {
		return fmt.Errorf("list TalosConfigPatches: %w", err)
	}

	in.render.Patches = r.patches.all(patches)
	for i := range patches.Items {
		in.add(machineconfig.KindTalosConfigPatch, &patches.Items[i])
	}

	var err error
	in.render.References, err = r.references(ctx, string(namespace), in.render)

	return err
}

// references reads the Secrets and ConfigMaps that the machine's patches refer to. What does not exist is the render's to report.
func (r *Reconciler) references(ctx context.Context, namespace string, in machineconfig.Input) (machineconfig.References, error) {
	values := map[machineconfig.ObjectKey]machineconfig.Object{}

	for _, object := range machineconfig.ReferencedObjects(in) {
		content, err := r.read(ctx, namespace, object)
		switch {
		case err == nil:
			values[object] = content
		case !apierrors.IsNotFound(err):
			return machineconfig.References{}, fmt.Errorf("%s %s: read: %w", object.Kind, object.Name, err)
		}
	}

	return machineconfig.NewReferences(values), nil
}

// read gets what a Secret or ConfigMap holds.
func (r *Reconciler) read(ctx context.Context, namespace string, object machineconfig.ObjectKey) (machineconfig.Object, error) {
	key := client.ObjectKey{Namespace: namespace, Name: object.Name}

	if object.Kind == machineconfig.KindSecret {
		secret := &corev1.Secret{}
		err := r.APIReader.Get(ctx, key, secret)

		return machineconfig.SecretObject(secret), err
	}

	configMap := &corev1.ConfigMap{}
	err := r.APIReader.Get(ctx, key, configMap)

	return machineconfig.ConfigMapObject(configMap), err
}

func (in *renderInputs) add(kind string, object client.Object) {
	in.generations[objectRef{kind, object.GetName()}] = object.GetGeneration()
}

// credentials reads the Secrets that the TalosClusterConfig refers to.
func (r *Reconciler) credentials(ctx context.Context, namespace string, config *bootstrapv1.TalosClusterConfig) (machineconfig.Credentials, error) {
	values := map[string]machineconfig.Object{}

	for _, name := range machineconfig.SecretNames(config) {
		secret := &corev1.Secret{}

		err := r.APIReader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret)
		switch {
		case err == nil:
			values[name] = machineconfig.SecretObject(secret)
		case !apierrors.IsNotFound(err):
			return machineconfig.Credentials{}, fmt.Errorf("secret %s: read: %w", name, err)
		}
	}

	return machineconfig.ResolveCredentials(config, values)
}
