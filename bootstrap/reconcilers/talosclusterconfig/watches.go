// SPDX-License-Identifier: Apache-2.0

package talosclusterconfig

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	capicontroller "sigs.k8s.io/cluster-api/util/controller"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/bootstrap/reporting"
	"github.com/maesh-dev/ichor/internal/clustersecrets"
	"github.com/maesh-dev/ichor/internal/consistency"
	"github.com/maesh-dev/ichor/internal/inputs"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/internal/targeting"
)

// SetupWithManager adds the reconciler to the manager, with everything that it watches:
//
//	TalosClusterConfig          itself, and all others of the namespace: they may target one Cluster
//	Cluster                     those that target it, before the change or after, or target none
//	any Secret, metadata only   those that refer to it; for one of a cluster's own, those that target the Cluster
//	Machine, MachinePool, TalosConfig, data Secret
//	                            those that target its Cluster, when it begins or ends to carry the cluster's secrets
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	if r.Client == nil || r.APIReader == nil || r.Inputs == nil || r.Metadata == nil || r.Secrets == nil || r.Labels == nil {
		return errors.New("talosclusterconfig: Client, APIReader, Inputs, Metadata, Secrets and Labels must be set")
	}

	r.objects, r.secrets, r.failing = lru.New(maxObjects), lru.New(maxClusters), reporting.NewFailing(clock.RealClock{})
	log := ctrl.LoggerFrom(ctx).WithValues("controller", "talosclusterconfig")
	carrier := reporting.WakeLater(r.forCarrier, r.Settle)
	retried := reporting.Retry(r)
	guard := consistency.NewGuard(mgr, retried)

	built, err := capicontroller.NewControllerManagedBy(mgr, log).
		For(&bootstrapv1.TalosClusterConfig{}, builder.WithPredicates(predicate.Or(reporting.Own(), beganToSayNoCluster()))).
		Watches(&bootstrapv1.TalosClusterConfig{}, reporting.Wake(r.forConfig), predicate.GenerationChangedPredicate{}).
		Watches(&clusterv1.Cluster{}, reporting.Wake(r.forCluster), clusterChanged()).
		Watches(&clusterv1.Machine{}, carrier, clustersecrets.CarrierChanged()).
		Watches(&clusterv1.MachinePool{}, carrier, clustersecrets.CarrierChanged()).
		Watches(&bootstrapv1.TalosConfig{}, carrier, clustersecrets.CarrierChanged()).
		Watches(&corev1.Secret{}, carrier, clustersecrets.CarrierChanged()).
		WatchesRawSource(reporting.Metadata(r.Metadata, machineconfig.KindSecret, reporting.Wake(r.forSecret), mgr)).
		WatchesRawSource(retried.Source()).
		WithOptions(options).
		Build(ctx, guard)
	if err != nil {
		return fmt.Errorf("talosclusterconfig: build the controller: %w", err)
	}

	r.writer = reporting.Writer{
		Client: r.Client, Kind: capicontroller.StructuredObject(bootstrapv1.GroupVersion, machineconfig.KindTalosClusterConfig), Deferrer: guard.Deferrer(built),
	}

	return nil
}

// clusterChanged lets through what selects a Cluster, that its control plane answers, and whether it is paused.
func clusterChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, isCluster := e.ObjectOld.(*clusterv1.Cluster)
		now, isClusterNow := e.ObjectNew.(*clusterv1.Cluster)

		return !isCluster || !isClusterNow || !maps.Equal(before.Labels, now.Labels) ||
			clustersecrets.Initialized(before) != clustersecrets.Initialized(now) || isPaused(before) != isPaused(now)
	}}
}

// forConfig wakes all of the namespace.
func (r *Reconciler) forConfig(ctx context.Context, object client.Object) ([]client.ObjectKey, error) {
	return r.matching(ctx, object.GetNamespace(), func(*bootstrapv1.TalosClusterConfig) bool { return true })
}

// forCluster wakes those that target the Cluster, and those that say which Clusters there are because they target none.
func (r *Reconciler) forCluster(ctx context.Context, object client.Object) ([]client.ObjectKey, error) {
	cluster, ok := object.(*clusterv1.Cluster)
	if !ok {
		return nil, fmt.Errorf("%T is no Cluster", object)
	}

	return r.matching(ctx, cluster.Namespace, func(config *bootstrapv1.TalosClusterConfig) bool {
		return targets(config, cluster) || saysNoCluster(config)
	})
}

func targets(config *bootstrapv1.TalosClusterConfig, cluster *clusterv1.Cluster) bool {
	targeted, err := targeting.Cluster(config.Spec.ClusterTargeting, config.Namespace, cluster)

	return targeted || err != nil
}

func saysNoCluster(config *bootstrapv1.TalosClusterConfig) bool {
	return slices.ContainsFunc(config.Status.Conditions, func(condition metav1.Condition) bool {
		return condition.Type == bootstrapv1.SecretsBundleAvailableCondition && condition.Reason == bootstrapv1.SecretsBundleNoClusterReason
	})
}

// beganToSayNoCluster lets through the report that there is no Cluster. Which there are is said with it, and one that came while that was decided
// and written has woken nobody: what said nothing of Clusters yet was not concerned.
func beganToSayNoCluster() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, isConfig := e.ObjectOld.(*bootstrapv1.TalosClusterConfig)
		now, isConfigNow := e.ObjectNew.(*bootstrapv1.TalosClusterConfig)

		return isConfig && isConfigNow && !saysNoCluster(before) && saysNoCluster(now)
	}}
}

// forSecret handles Secrets that are referred to, and a cluster's own.
func (r *Reconciler) forSecret(ctx context.Context, object client.Object) ([]client.ObjectKey, error) {
	var (
		name       = object.GetName()
		of, ofErr  = r.ownedCluster(ctx, object.GetNamespace(), name)
		keys, err2 = r.matching(ctx, object.GetNamespace(), func(config *bootstrapv1.TalosClusterConfig) bool {
			return slices.Contains(inputs.ReferencedSecrets(config), name) || of != nil && targets(config, of)
		})
	)

	return keys, errors.Join(ofErr, err2)
}

// ownedCluster is the Cluster whose own the Secret would be by its name; nil when there is none.
func (r *Reconciler) ownedCluster(ctx context.Context, namespace, secret string) (*clusterv1.Cluster, error) {
	name, ok := secrets.ClusterOf(secret)
	if !ok {
		return nil, nil
	}

	return r.cluster(ctx, namespace, name)
}

func (r *Reconciler) cluster(ctx context.Context, namespace, name string) (*clusterv1.Cluster, error) {
	cluster := &clusterv1.Cluster{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, cluster); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil, nil
		}

		return nil, fmt.Errorf("cluster %s: %w", name, err)
	}

	return cluster, nil
}

// forCarrier handles what may carry the secrets of its cluster.
func (r *Reconciler) forCarrier(ctx context.Context, object client.Object) ([]client.ObjectKey, error) {
	cluster, err := r.cluster(ctx, object.GetNamespace(), clustersecrets.CarrierOf(object))
	if cluster == nil || err != nil {
		return nil, err
	}

	return r.matching(ctx, cluster.Namespace, func(config *bootstrapv1.TalosClusterConfig) bool { return targets(config, cluster) })
}

// matching names the TalosClusterConfigs of the namespace that match.
func (r *Reconciler) matching(ctx context.Context, namespace string, matches func(*bootstrapv1.TalosClusterConfig) bool) ([]client.ObjectKey, error) {
	configs := &bootstrapv1.TalosClusterConfigList{}
	if err := r.Client.List(ctx, configs, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list TalosClusterConfigs: %w", err)
	}

	var keys []client.ObjectKey

	for i := range configs.Items {
		if matches(&configs.Items[i]) {
			keys = append(keys, client.ObjectKeyFromObject(&configs.Items[i]))
		}
	}

	return keys, nil
}
