// SPDX-License-Identifier: Apache-2.0

package talosconfig

import (
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/clustersecrets"
)

// contentChanged lets an update through when the user has changed the object: its spec, or the labels that it may be
// selected by. Our own status writes do not come back as work.
func contentChanged() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{})
}

// clusterChanged lets an update of a Cluster through when something changed that a TalosConfig waits for or is rendered from.
func clusterChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, isCluster := e.ObjectOld.(*clusterv1.Cluster)
		now, isClusterNow := e.ObjectNew.(*clusterv1.Cluster)

		if !isCluster || !isClusterNow {
			return true
		}

		return before.Generation != now.Generation || !maps.Equal(before.Labels, now.Labels) ||
			provisioned(before) != provisioned(now) || clustersecrets.Initialized(before) != clustersecrets.Initialized(now)
	}}
}

func provisioned(cluster *clusterv1.Cluster) bool {
	return ptr.Deref(cluster.Status.Initialization.InfrastructureProvisioned, false)
}

// machineChanged lets an update of a Machine or MachinePool through unless only its status changed; of that, only whether
// the machine has joined counts.
func machineChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		if e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
			!maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) ||
			!equality.Semantic.DeepEqual(e.ObjectOld.GetOwnerReferences(), e.ObjectNew.GetOwnerReferences()) ||
			e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero() {
			return true
		}

		before, isMachine := e.ObjectOld.(*clusterv1.Machine)
		now, isMachineNow := e.ObjectNew.(*clusterv1.Machine)

		return isMachine && isMachineNow && before.Status.NodeRef.IsDefined() != now.Status.NodeRef.IsDefined()
	}}
}

// isUnavailable says that the last reconcile found no data Secret where there should be one: it was deleted, and could not
// be made again.
func isUnavailable(config *bootstrapv1.TalosConfig) bool {
	return conditions.IsFalse(config, bootstrapv1.TalosConfigDataSecretAvailableCondition)
}
