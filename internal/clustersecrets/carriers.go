// SPDX-License-Identifier: Apache-2.0

package clustersecrets

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// carrier names a Machine or MachinePool of the cluster that has bootstrap data or has joined, or a TalosConfig whose data
// Secret Cluster API has not taken over yet, always the same one; it is empty when there is none.
func (k *Keeper) carrier(ctx context.Context, cluster *clusterv1.Cluster) (string, error) {
	namespace := client.InNamespace(cluster.Namespace)
	machines, pools := &clusterv1.MachineList{}, &clusterv1.MachinePoolList{}

	// The lists are only read, so they need no copy of what may be all machines of a large namespace.
	if err := k.client.List(ctx, machines, namespace, client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("list Machines: %w", err)
	}

	if err := k.client.List(ctx, pools, namespace, client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("list MachinePools: %w", err)
	}

	if carrier := carrierOf(cluster.Name, machines.Items, pools.Items); carrier != "" {
		return carrier, nil
	}

	return k.dataCarrier(ctx, cluster)
}

// dataCarrier names a TalosConfig of the cluster whose data Secret exists. Its status may have been lost, so it is not asked.
func (k *Keeper) dataCarrier(ctx context.Context, cluster *clusterv1.Cluster) (string, error) {
	list := &corev1.SecretList{}

	err := k.client.List(ctx, list, client.InNamespace(cluster.Namespace),
		client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return "", fmt.Errorf("list Secrets: %w", err)
	}

	return firstThatIs(list, func(owner metav1.OwnerReference) (bool, error) {
		config := &bootstrapv1.TalosConfig{}
		if err := k.client.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: owner.Name}, config); err != nil {
			return false, client.IgnoreNotFound(err)
		}

		return config.UID == owner.UID, nil
	})
}

// liveCarrier is dataCarrier past the caches, which may not have seen a Secret that was written a moment ago, with a bundle that is gone since.
// It reads no values.
func (k *Keeper) liveCarrier(ctx context.Context, cluster *clusterv1.Cluster) (string, error) {
	list := metadataList(corev1.SchemeGroupVersion.WithKind(machineconfig.KindSecret))
	if err := k.live.List(ctx, list, client.InNamespace(cluster.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name}); err != nil {
		return "", &secrets.ReadError{Object: "Secrets", Err: err}
	}

	// The rights of the manager do not let it get one of them.
	configs := sync.OnceValues(func() (sets.Set[types.UID], error) {
		list := metadataList(bootstrapv1.GroupVersion.WithKind(machineconfig.KindTalosConfig))
		if err := k.live.List(ctx, list, client.InNamespace(cluster.Namespace)); err != nil {
			return nil, &secrets.ReadError{Object: "TalosConfigs", Err: err}
		}

		found := sets.New[types.UID]()
		for i := range list.Items {
			found.Insert(list.Items[i].UID)
		}

		return found, nil
	})

	return firstThatIs(list, func(owner metav1.OwnerReference) (bool, error) {
		found, err := configs()

		return found.Has(owner.UID), err
	})
}

func metadataList(kind schema.GroupVersionKind) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))

	return list
}

// firstThatIs names the first, by name, of the TalosConfigs that control the Secrets of a list and still exist. The Secret of one that is gone
// goes too, and is of no machine.
func firstThatIs(list client.ObjectList, exists func(metav1.OwnerReference) (bool, error)) (string, error) {
	first := ""

	err := meta.EachListItem(list, func(item runtime.Object) error {
		secret, err := meta.Accessor(item)
		if err != nil {
			return fmt.Errorf("list Secrets: %w", err)
		}

		controller := metav1.GetControllerOf(secret)
		if controller == nil || !IsTalosConfig(*controller) || first != "" && controller.Name >= first {
			return nil
		}

		ok, err := exists(*controller)
		if err != nil {
			return fmt.Errorf("TalosConfig %s: %w", controller.Name, err)
		}

		if ok {
			first = controller.Name
		}

		return nil
	})
	if first == "" || err != nil {
		return "", err
	}

	return "TalosConfig " + first, nil
}

// IsTalosConfig says whether the reference is to a TalosConfig of Ichor's. Other providers have a kind of this name, too.
func IsTalosConfig(ref metav1.OwnerReference) bool {
	group, _, _ := strings.Cut(ref.APIVersion, "/")

	return group == bootstrapv1.GroupVersion.Group && ref.Kind == machineconfig.KindTalosConfig
}

func carrierOf(cluster string, machines []clusterv1.Machine, pools []clusterv1.MachinePool) string {
	var carriers []string

	for i := range machines {
		if machine := &machines[i]; machine.Spec.ClusterName == cluster && machineCarries(machine) {
			carriers = append(carriers, "Machine "+machine.Name)
		}
	}

	for i := range pools {
		if pool := &pools[i]; pool.Spec.ClusterName == cluster && poolCarries(pool) {
			carriers = append(carriers, "MachinePool "+pool.Name)
		}
	}

	if len(carriers) == 0 {
		return ""
	}

	return slices.Min(carriers)
}

func machineCarries(machine *clusterv1.Machine) bool {
	return machine.Spec.Bootstrap.DataSecretName != nil || machine.Status.NodeRef.IsDefined()
}

func poolCarries(pool *clusterv1.MachinePool) bool {
	return pool.Spec.Template.Spec.Bootstrap.DataSecretName != nil || len(pool.Status.NodeRefs) > 0
}

// CarrierOf returns the cluster whose secrets the object may carry: a Machine, a MachinePool, a TalosConfig or the data Secret of one. It
// is empty for every other object.
func CarrierOf(object client.Object) string {
	switch object := object.(type) {
	case *clusterv1.Machine:
		return object.Spec.ClusterName
	case *clusterv1.MachinePool:
		return object.Spec.ClusterName
	case *bootstrapv1.TalosConfig:
		return object.Labels[clusterv1.ClusterNameLabel]
	case *corev1.Secret:
		if controller := metav1.GetControllerOf(object); controller != nil && IsTalosConfig(*controller) {
			return object.Labels[clusterv1.ClusterNameLabel]
		}
	}

	return ""
}

// CarrierChanged lets through what makes an object carry the secrets of its cluster, and what ends that: whether lost secrets may be made
// again, and those of an earlier cluster be taken over, depends on it. Of a TalosConfig and its data Secret that is their beginning and end.
func CarrierChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return isCarrier(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return isCarrier(e.ObjectOld) != isCarrier(e.ObjectNew) },
		DeleteFunc: func(e event.DeleteEvent) bool { return isCarrier(e.Object) },
	}
}

func isCarrier(object client.Object) bool {
	switch object := object.(type) {
	case *clusterv1.Machine:
		return machineCarries(object)
	case *clusterv1.MachinePool:
		return poolCarries(object)
	}

	return CarrierOf(object) != ""
}
