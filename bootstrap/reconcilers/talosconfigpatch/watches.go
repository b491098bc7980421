// SPDX-License-Identifier: Apache-2.0

package talosconfigpatch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/lru"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	capicontroller "sigs.k8s.io/cluster-api/util/controller"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/bootstrap/reporting"
	"github.com/maesh-dev/ichor/internal/consistency"
	"github.com/maesh-dev/ichor/internal/inputs"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// SetupWithManager adds the reconciler to the manager. A patch is looked at again when it changes, and some time after anything in its
// namespace that a render depends on has: one patch's render depends on all others that apply to the machine. What has not changed for a
// group of machines is not rendered again, so this costs a comparison.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	if r.Client == nil || r.Inputs == nil || r.Metadata == nil || r.Labels == nil || r.Clock == nil {
		return errors.New("talosconfigpatch: Client, Inputs, Metadata, Labels and Clock must be set")
	}

	r.judged, r.windows, r.bundles = lru.New(maxJudged), newWindows(), map[string]*secrets.Bundle{}
	r.failing = reporting.NewFailing(r.Clock)
	log := ctrl.LoggerFrom(ctx).WithValues("controller", "talosconfigpatch")
	// A little later than a survey may be made: one that a patch's own change has caused is not too young then.
	later := r.Settle + r.Settle/ownShare
	all := reporting.WakeLater(r.all, later)
	retried := reporting.Retry(r)
	guard := consistency.NewGuard(mgr, retried)
	metadata := func(kind string) source.Source {
		return reporting.Metadata(r.Metadata, kind, reporting.WakeLater(r.forReferenced(kind), later), mgr)
	}

	built, err := capicontroller.NewControllerManagedBy(mgr, log).
		For(&bootstrapv1.TalosConfigPatch{}, builder.WithPredicates(reporting.Own())).
		Watches(&bootstrapv1.TalosConfigPatch{}, all, predicate.GenerationChangedPredicate{}).
		Watches(&bootstrapv1.TalosConfig{}, all, configChanged()).
		Watches(&bootstrapv1.TalosClusterConfig{}, all, predicate.GenerationChangedPredicate{}).
		Watches(&bootstrapv1.TalosStorage{}, all, predicate.GenerationChangedPredicate{}).
		Watches(&clusterv1.Cluster{}, all, changed()).
		Watches(&clusterv1.Machine{}, all, changed()).
		Watches(&clusterv1.MachinePool{}, all, changed()).
		Watches(&corev1.Secret{}, all, pinChanged()).
		WatchesRawSource(metadata(machineconfig.KindSecret)).
		WatchesRawSource(metadata(machineconfig.KindConfigMap)).
		WatchesRawSource(retried.Source()).
		WithOptions(options).
		Build(ctx, guard)
	if err != nil {
		return fmt.Errorf("talosconfigpatch: build the controller: %w", err)
	}

	r.writer = reporting.Writer{
		Client: r.Client, Kind: capicontroller.StructuredObject(bootstrapv1.GroupVersion, machineconfig.KindTalosConfigPatch), Deferrer: guard.Deferrer(built),
	}

	return nil
}

// changed leaves out what only changes a status, but for a Machine that has joined. Of annotations, what the node runs counts.
func changed() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
			!maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) ||
			e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero() ||
			joined(e.ObjectOld) != joined(e.ObjectNew) ||
			e.ObjectOld.GetAnnotations()[bootstrapv1.RunningInputsAnnotation] != e.ObjectNew.GetAnnotations()[bootstrapv1.RunningInputsAnnotation]
	}}
}

// joined tells a Machine that has become a Node with the config that it was given.
func joined(object client.Object) bool {
	machine, ok := object.(*clusterv1.Machine)

	return ok && machine.Status.NodeRef.IsDefined()
}

// configChanged lets through a TalosConfig's spec, and of its status the contract that its machine is pinned to.
func configChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, isConfig := e.ObjectOld.(*bootstrapv1.TalosConfig)
		now, isConfigNow := e.ObjectNew.(*bootstrapv1.TalosConfig)

		return !isConfig || !isConfigNow || before.Generation != now.Generation || before.Status.ConfigContract != now.Status.ConfigContract
	}}
}

// pinChanged lets through the bundle Secrets of clusters when the contract that they pin may be another.
func pinChanged() predicate.Predicate {
	return predicate.And(
		predicate.NewPredicateFuncs(func(object client.Object) bool {
			cluster, own := secrets.ClusterOf(object.GetName())

			return own && object.GetName() == secrets.BundleName(cluster)
		}),
		predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetAnnotations()[secrets.ConfigContractAnnotation] != e.ObjectNew.GetAnnotations()[secrets.ConfigContractAnnotation]
		}},
	)
}

// all names the patches of the object's namespace, and notes that something there has changed.
func (r *Reconciler) all(ctx context.Context, object client.Object) ([]client.ObjectKey, error) {
	r.windows.of(object.GetNamespace()).changes.Add(1)

	patches := &bootstrapv1.TalosConfigPatchList{}
	if err := r.Client.List(ctx, patches, client.InNamespace(object.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list TalosConfigPatches: %w", err)
	}

	var keys []client.ObjectKey

	for i := range patches.Items {
		if r.responsible(&patches.Items[i]) {
			keys = append(keys, client.ObjectKeyFromObject(&patches.Items[i]))
		}
	}

	return keys, nil
}

// responsible says whether this manager reports on the patch.
func (r *Reconciler) responsible(patch *bootstrapv1.TalosConfigPatch) bool {
	return r.WatchFilter == "" || patch.Labels[clusterv1.WatchLabel] == r.WatchFilter
}

// forReferenced names the patches of the namespace if anything there refers to the Secret or ConfigMap.
func (r *Reconciler) forReferenced(kind string) reporting.MapFunc {
	return func(ctx context.Context, object client.Object) ([]client.ObjectKey, error) {
		key := machineconfig.ObjectKey{Kind: kind, Name: object.GetName()}

		patches, err := r.Inputs.Patches(ctx, object.GetNamespace())
		if err != nil || len(patches) == 0 {
			return nil, err
		}

		if slices.ContainsFunc(patches, func(patch *machineconfig.Patch) bool { return slices.Contains(patch.Objects(), key) }) {
			return r.all(ctx, object)
		}

		if kind != machineconfig.KindSecret {
			return nil, nil
		}

		configs := &bootstrapv1.TalosClusterConfigList{}
		if err := r.Client.List(ctx, configs, client.InNamespace(object.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list TalosClusterConfigs: %w", err)
		}

		for i := range configs.Items {
			if slices.Contains(inputs.ReferencedSecrets(&configs.Items[i]), key.Name) {
				return r.all(ctx, object)
			}
		}

		return nil, nil
	}
}
