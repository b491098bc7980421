// SPDX-License-Identifier: Apache-2.0

package talosconfig

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/lru"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	capicontroller "sigs.k8s.io/cluster-api/util/controller"
	"sigs.k8s.io/cluster-api/util/predicates"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/bootstrap/reporting"
	"github.com/maesh-dev/ichor/internal/clustersecrets"
	"github.com/maesh-dev/ichor/internal/consistency"
	"github.com/maesh-dev/ichor/internal/inputs"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// SetupWithManager adds the reconciler to the manager, with everything that it watches:
//
//	TalosConfig                        itself
//	Machine, MachinePool               the TalosConfig that its bootstrap.configRef names
//	Cluster                            the TalosConfigs of the cluster
//	Secret with cluster-name label     the TalosConfig of its name; for a cluster's own secrets, the waiting ones of the cluster
//	any Secret, metadata only          without the label the same; and the waiting ones whose TalosClusterConfig or patch refers to it
//	any ConfigMap, metadata only       the waiting ones whose patch refers to it
//	TalosClusterConfig                 the waiting TalosConfigs of the clusters that it targets
//	TalosConfigPatch, TalosStorage     the waiting TalosConfigs of the machines that it targets or that refer to it
//	Machine, MachinePool, TalosConfig, data Secret
//	                                   the waiting ones of a cluster without a bundle, when one no longer carries its lost secrets
//
// Waiting are those without a data Secret, and those of MachinePools: for all others an input changes nothing any more.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	if r.Client == nil || r.APIReader == nil || r.Metadata == nil || r.Inputs == nil || r.Recorder == nil || r.Secrets == nil || r.Clock == nil {
		return errors.New("talosconfig: Client, APIReader, Metadata, Inputs, Recorder, Secrets and Clock must be set")
	}

	r.refreshed, r.told, r.failing = newRefreshCache(), lru.New(maxTold), reporting.NewFailing(r.Clock)
	retried := reporting.Retry(r)
	guard := consistency.NewGuard(mgr, retried)

	scheme, log := mgr.GetScheme(), ctrl.LoggerFrom(ctx).WithValues("controller", "talosconfig")

	metadata := func(kind string, forObject mapFunc) source.Source {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))

		return source.Kind[client.Object](r.Metadata, object, r.enqueue(forObject), predicates.TypedResourceIsChanged[client.Object](scheme, log))
	}

	built, err := capicontroller.NewControllerManagedBy(mgr, log).
		For(&bootstrapv1.TalosConfig{}, builder.WithPredicates(predicates.ResourceHasFilterLabel(scheme, log, r.WatchFilter))).
		Watches(&corev1.Secret{}, r.enqueue(r.forLabelledSecret)).
		Watches(&clusterv1.Machine{}, r.enqueue(r.forMachine), machineChanged()).
		Watches(&clusterv1.MachinePool{}, r.enqueue(r.forMachinePool), machineChanged()).
		Watches(&clusterv1.Cluster{}, r.enqueue(r.forCluster), clusterChanged()).
		Watches(&clusterv1.Machine{}, r.enqueue(r.forCarrier), clustersecrets.CarrierChanged()).
		Watches(&clusterv1.MachinePool{}, r.enqueue(r.forCarrier), clustersecrets.CarrierChanged()).
		Watches(&bootstrapv1.TalosConfig{}, r.enqueue(r.forCarrier), clustersecrets.CarrierChanged()).
		Watches(&corev1.Secret{}, r.enqueue(r.forCarrier), clustersecrets.CarrierChanged()).
		Watches(&bootstrapv1.TalosClusterConfig{}, r.enqueue(r.forClusterConfig), contentChanged()).
		Watches(&bootstrapv1.TalosConfigPatch{}, r.enqueue(r.forPatch), contentChanged()).
		Watches(&bootstrapv1.TalosStorage{}, r.enqueue(r.forStorage), contentChanged()).
		WatchesRawSource(metadata(machineconfig.KindSecret, r.forSecretMetadata)).
		WatchesRawSource(metadata(machineconfig.KindConfigMap, r.forConfigMapMetadata)).
		WatchesRawSource(retried.Source()).
		WithOptions(options).
		Build(ctx, guard)
	if err != nil {
		return fmt.Errorf("talosconfig: build the controller: %w", err)
	}

	r.deferrer = guard.Deferrer(built)

	return nil
}

// mapFunc names the TalosConfigs that an object concerns.
type mapFunc func(context.Context, client.Object) ([]client.ObjectKey, error)

// enqueue makes a handler of a mapFunc. An error comes from the cache alone; it is logged, and the periodic reconcile
// makes up for what was missed.
func (r *Reconciler) enqueue(forObject mapFunc) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []reconcile.Request {
		keys, err := forObject(ctx, object)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot tell which TalosConfigs an object concerns", "object", client.ObjectKeyFromObject(object))
		}

		requests := make([]reconcile.Request, len(keys))
		for i, key := range keys {
			requests[i] = reconcile.Request{NamespacedName: key}
		}

		return requests
	})
}

// configs returns the TalosConfigs of a namespace that this manager reconciles; of one cluster, when it is named. They are the cache's own, and
// must not be changed: to copy those of a large namespace for each event would cost more than the event.
func (r *Reconciler) configs(ctx context.Context, namespace, cluster string) ([]bootstrapv1.TalosConfig, error) {
	labels := client.MatchingLabels{}
	if cluster != "" {
		labels[clusterv1.ClusterNameLabel] = cluster
	}

	if r.WatchFilter != "" {
		labels[clusterv1.WatchLabel] = r.WatchFilter
	}

	list := &bootstrapv1.TalosConfigList{}
	if err := r.Client.List(ctx, list, client.InNamespace(namespace), labels, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list TalosConfigs: %w", err)
	}

	return list.Items, nil
}

// waiting returns the TalosConfigs of the cluster that have no data Secret yet, or one that follows its inputs.
func (r *Reconciler) waiting(ctx context.Context, namespace, cluster string) ([]*bootstrapv1.TalosConfig, error) {
	configs, err := r.configs(ctx, namespace, cluster)
	if err != nil {
		return nil, err
	}

	var found []*bootstrapv1.TalosConfig

	for i := range configs {
		if !ptr.Deref(configs[i].Status.Initialization.DataSecretCreated, false) || isPools(&configs[i]) ||
			configs[i].Status.DataSecretName == configs[i].Name && isUnavailable(&configs[i]) {
			found = append(found, &configs[i])
		}
	}

	return found, nil
}

// isPools says whether a MachinePool owns the TalosConfig.
func isPools(config *bootstrapv1.TalosConfig) bool {
	return util.HasOwner(config.OwnerReferences, clusterv1.GroupVersion.String(), []string{machineconfig.KindMachinePool})
}

func keysOf(configs []*bootstrapv1.TalosConfig) []client.ObjectKey {
	keys := make([]client.ObjectKey, len(configs))
	for i, config := range configs {
		keys[i] = client.ObjectKeyFromObject(config)
	}

	return keys
}

func (r *Reconciler) forMachine(_ context.Context, object client.Object) ([]client.ObjectKey, error) {
	machine, ok := object.(*clusterv1.Machine)
	if !ok {
		return nil, fmt.Errorf("%T is no Machine", object)
	}

	return referredConfig(machine.Namespace, machine.Spec.Bootstrap), nil
}

func (r *Reconciler) forMachinePool(_ context.Context, object client.Object) ([]client.ObjectKey, error) {
	pool, ok := object.(*clusterv1.MachinePool)
	if !ok {
		return nil, fmt.Errorf("%T is no MachinePool", object)
	}

	return referredConfig(pool.Namespace, pool.Spec.Template.Spec.Bootstrap), nil
}

func referredConfig(namespace string, bootstrap clusterv1.Bootstrap) []client.ObjectKey {
	ref := bootstrap.ConfigRef
	if ref.APIGroup != bootstrapv1.GroupVersion.Group || ref.Kind != machineconfig.KindTalosConfig {
		return nil
	}

	return []client.ObjectKey{{Namespace: namespace, Name: ref.Name}}
}

// forCluster wakes all TalosConfigs of the cluster: pausing it concerns those with a Secret, too.
func (r *Reconciler) forCluster(ctx context.Context, object client.Object) ([]client.ObjectKey, error) {
	configs, err := r.configs(ctx, object.GetNamespace(), object.GetName())

	keys := make([]client.ObjectKey, len(configs))
	for i := range configs {
		keys[i] = client.ObjectKeyFromObject(&configs[i])
	}

	return keys, err
}

// forLabelledSecret handles the Secrets that the manager's cache has.
func (r *Reconciler) forLabelledSecret(ctx context.Context, object client.Object) ([]client.ObjectKey, error) {
	return r.forSecretName(ctx, client.ObjectKeyFromObject(object))
}

// forSecretName handles a Secret for its name: a data Secret, or what stands in the way of one, has its TalosConfig's; the
// bundle and what is made of it have names that their cluster's begins.
func (r *Reconciler) forSecretName(ctx context.Context, secret client.ObjectKey) ([]client.ObjectKey, error) {
	var keys []client.ObjectKey

	err := r.Client.Get(ctx, secret, &bootstrapv1.TalosConfig{})
	if err == nil {
		keys = append(keys, secret)
	}

	cluster, ok := secrets.ClusterOf(secret.Name)
	if !ok {
		return keys, client.IgnoreNotFound(err)
	}

	configs, waitingErr := r.waiting(ctx, secret.Namespace, cluster)

	return append(keys, keysOf(configs)...), errors.Join(client.IgnoreNotFound(err), waitingErr)
}

// forCarrier handles what may carry the secrets of a cluster whose bundle is lost: when nothing does any more, the bundle is made again.
func (r *Reconciler) forCarrier(ctx context.Context, object client.Object) ([]client.ObjectKey, error) {
	cluster := clustersecrets.CarrierOf(object)
	if cluster == "" {
		return nil, nil
	}

	bundle := client.ObjectKey{Namespace: object.GetNamespace(), Name: secrets.BundleName(cluster)}
	if err := r.Client.Get(ctx, bundle, &corev1.Secret{}); client.IgnoreNotFound(err) != nil || err == nil {
		return nil, err
	}

	configs, err := r.waiting(ctx, object.GetNamespace(), cluster)

	return keysOf(configs), err
}

// forSecretMetadata handles Secrets that the manager's cache may not have, and those that TalosClusterConfigs and patches refer to.
func (r *Reconciler) forSecretMetadata(ctx context.Context, object client.Object) ([]client.ObjectKey, error) {
	var (
		namespace, name = object.GetNamespace(), object.GetName()
		keys            []client.ObjectKey
		faults          []error
	)

	// With the label, the manager's cache has it, and its own watch comes when that cache has seen the change.
	if object.GetLabels()[clusterv1.ClusterNameLabel] == "" {
		concerned, err := r.forSecretName(ctx, client.ObjectKeyFromObject(object))
		keys, faults = concerned, append(faults, err)
	}

	list := &bootstrapv1.TalosClusterConfigList{}
	faults = append(faults, r.Client.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy))

	for i := range list.Items {
		if !refersTo(&list.Items[i], name) {
			continue
		}

		concerned, err := r.forClusterConfig(ctx, &list.Items[i])
		keys, faults = append(keys, concerned...), append(faults, err)
	}

	concerned, err := r.forReferenced(ctx, namespace, machineconfig.ObjectKey{Kind: machineconfig.KindSecret, Name: name})

	return append(keys, concerned...), errors.Join(append(faults, err)...)
}

func (r *Reconciler) forConfigMapMetadata(ctx context.Context, object client.Object) ([]client.ObjectKey, error) {
	return r.forReferenced(ctx, object.GetNamespace(), machineconfig.ObjectKey{Kind: machineconfig.KindConfigMap, Name: object.GetName()})
}

// forReferenced handles an object that patches may refer to.
func (r *Reconciler) forReferenced(ctx context.Context, namespace string, object machineconfig.ObjectKey) ([]client.ObjectKey, error) {
	patches, err := r.Inputs.Patches(ctx, namespace)
	if err != nil {
		return nil, err
	}

	var (
		keys   []client.ObjectKey
		faults []error
	)

	for _, patch := range patches {
		if !slices.Contains(patch.Objects(), object) {
			continue
		}

		concerned, err := r.forPatch(ctx, patch.Object())
		keys, faults = append(keys, concerned...), append(faults, err)
	}

	return keys, errors.Join(faults...)
}

// refersTo says whether a render with the TalosClusterConfig reads the Secret.
func refersTo(config *bootstrapv1.TalosClusterConfig, name string) bool {
	return slices.Contains(inputs.ReferencedSecrets(config), name)
}
