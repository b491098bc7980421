// SPDX-License-Identifier: Apache-2.0

package talosconfig

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/targeting"
)

// forClusterConfig handles a TalosClusterConfig. It also wakes clusters that it targets besides another one.
func (r *Reconciler) forClusterConfig(ctx context.Context, object client.Object) ([]client.ObjectKey, error) {
	config, ok := object.(*bootstrapv1.TalosClusterConfig)
	if !ok {
		return nil, fmt.Errorf("%T is no TalosClusterConfig", object)
	}

	return r.targeted(ctx, config.Namespace, config.Spec.ClusterTargeting, nil)
}

func (r *Reconciler) forStorage(ctx context.Context, object client.Object) ([]client.ObjectKey, error) {
	storage, ok := object.(*bootstrapv1.TalosStorage)
	if !ok {
		return nil, fmt.Errorf("%T is no TalosStorage", object)
	}

	return r.targeted(ctx, storage.Namespace, storage.Spec.ClusterTargeting, func(_ *bootstrapv1.TalosConfig, machine machineconfig.Machine) bool {
		return selects(storage.Spec.MachineTargeting, machine)
	})
}

// forPatch handles a patch that selects machines, and one that TalosConfigs refer to.
func (r *Reconciler) forPatch(ctx context.Context, object client.Object) ([]client.ObjectKey, error) {
	patch, ok := object.(*bootstrapv1.TalosConfigPatch)
	if !ok {
		return nil, fmt.Errorf("%T is no TalosConfigPatch", object)
	}

	referring, err := r.referring(ctx, patch)
	if err != nil || (patch.Spec.ClusterName == "" && patch.Spec.ClusterSelector == nil) {
		return referring, err
	}

	selected, err := r.targeted(ctx, patch.Namespace, patch.Spec.ClusterTargeting, func(_ *bootstrapv1.TalosConfig, machine machineconfig.Machine) bool {
		return (patch.Spec.Role == "" || patch.Spec.Role == machine.Role()) && selects(patch.Spec.MachineTargeting, machine)
	})

	return append(referring, selected...), err
}

// referring returns the waiting TalosConfigs that refer to the patch.
func (r *Reconciler) referring(ctx context.Context, patch *bootstrapv1.TalosConfigPatch) ([]client.ObjectKey, error) {
	configs, err := r.waiting(ctx, patch.Namespace, "")

	var keys []client.ObjectKey

	for _, config := range configs {
		for _, ref := range config.Spec.PatchRefs {
			if ref.Name == patch.Name {
				keys = append(keys, client.ObjectKeyFromObject(config))
			}
		}
	}

	return keys, err
}

// targeted returns the waiting TalosConfigs of the targeted clusters whose machine is concerned; nil means every machine.
func (r *Reconciler) targeted(ctx context.Context, namespace string, target bootstrapv1.ClusterTargeting,
	concerns func(*bootstrapv1.TalosConfig, machineconfig.Machine) bool,
) ([]client.ObjectKey, error) {
	clusters := &clusterv1.ClusterList{}
	if err := r.Client.List(ctx, clusters, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Clusters: %w", err)
	}

	targeted := sets.New[string]()

	for i := range clusters.Items {
		// A selector that is invalid fails the render of every machine of the namespace, so it concerns them all.
		if ok, err := targeting.Cluster(target, namespace, &clusters.Items[i]); err != nil || ok {
			targeted.Insert(clusters.Items[i].Name)
		}
	}

	if targeted.Len() == 0 {
		return nil, nil
	}

	// Of all clusters at once: each list goes through the TalosConfigs of the whole namespace.
	configs, err := r.waiting(ctx, namespace, "")
	if err != nil {
		return nil, err
	}

	var (
		keys   []client.ObjectKey
		faults []error
	)

	for _, config := range configs {
		if !targeted.Has(config.Labels[clusterv1.ClusterNameLabel]) {
			continue
		}

		owner, err := r.owner(ctx, config)
		faults = append(faults, err)

		if owner != nil && (concerns == nil || concerns(config, owner.machine)) {
			keys = append(keys, client.ObjectKeyFromObject(config))
		}
	}

	return keys, errors.Join(faults...)
}

// selects says whether the selector selects the machine. One that is invalid concerns every machine, since it fails them.
func selects(target bootstrapv1.MachineTargeting, machine machineconfig.Machine) bool {
	ok, err := targeting.Machine(target, machine.Labels)

	return ok || err != nil
}
