// SPDX-License-Identifier: Apache-2.0

package talosconfig

import (
	"context"
	"fmt"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// refuseLostBundle says so when machines of the cluster carry secrets that no bundle holds any more. A new bundle would
// give every later machine a cluster of its own. The Cluster's status alone does not tell: it is set only when the control
// plane answers, and a move drops it.
func (r *Reconciler) refuseLostBundle(ctx context.Context, seen observation) error {
	carrier, err := r.carrier(ctx, seen.cluster)
	if carrier == "" || err != nil {
		return err
	}

	return &bundleError{bootstrapv1.SecretsBundleMissingReason, fmt.Errorf(
		"secret %s does not exist, and %s of Cluster %s has bootstrap data already: the cluster's secrets are not made again; "+
			"restore the Secret from a backup", secrets.BundleName(seen.cluster.Name), carrier, seen.cluster.Name)}
}

// carrier names a Machine or MachinePool of the cluster that has bootstrap data or has joined, always the same one; it is
// empty when there is none.
func (r *Reconciler) carrier(ctx context.Context, cluster *clusterv1.Cluster) (string, error) {
	namespace := client.InNamespace(cluster.Namespace)
	machines, pools := &clusterv1.MachineList{}, &clusterv1.MachinePoolList{}

	// The lists are only read, so they need no copy of what may be all machines of a large namespace.
	if err := r.Client.List(ctx, machines, namespace, client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("list Machines: %w", err)
	}

	if err := r.Client.List(ctx, pools, namespace, client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("list MachinePools: %w", err)
	}

	return carrierOf(cluster.Name, machines.Items, pools.Items), nil
}

func carrierOf(cluster string, machines []clusterv1.Machine, pools []clusterv1.MachinePool) string {
	var carriers []string

	for i := range machines {
		machine := &machines[i]
		carries := machine.Spec.Bootstrap.DataSecretName != nil || machine.Status.NodeRef.IsDefined()

		if machine.Spec.ClusterName == cluster && carries {
			carriers = append(carriers, "Machine "+machine.Name)
		}
	}

	for i := range pools {
		pool := &pools[i]
		carries := pool.Spec.Template.Spec.Bootstrap.DataSecretName != nil || len(pool.Status.NodeRefs) > 0

		if pool.Spec.ClusterName == cluster && carries {
			carriers = append(carriers, "MachinePool "+pool.Name)
		}
	}

	if len(carriers) == 0 {
		return ""
	}

	return slices.Min(carriers)
}
