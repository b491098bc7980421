// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// lookedAnnotation counts how often somebody has had Cluster API look at a Machine.
	lookedAnnotation = "test.ichor.maesh.dev/looked"

	lookPeriod = time.Second
)

// WaitForNodeRefs waits until all Machines of a cluster have their Nodes, which are there already or about to come.
//
// In a cluster without a control-plane provider it takes the part of one: Cluster API's core manager watches Nodes only once the
// control plane is initialized, and takes it for that when one of its Machines has its Node. A Machine that it has looked at when
// the API server answered and the Node had not come yet would wait for its next resync, ten minutes later. So it is shown the
// Machine again.
func WaitForNodeRefs(ctx context.Context, c client.Client, cluster client.ObjectKey, timeout time.Duration) error {
	missing := ""

	err := wait.PollUntilContextTimeout(ctx, lookPeriod, timeout, true, func(ctx context.Context) (bool, error) {
		list := &clusterv1.MachineList{}
		if err := c.List(ctx, list, client.InNamespace(cluster.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name}); err != nil {
			return false, err
		}

		missing = ""

		for i := range list.Items {
			machine := &list.Items[i]
			if machine.Status.NodeRef.IsDefined() {
				continue
			}

			missing += " " + machine.Name

			if util.IsControlPlaneMachine(machine) && machine.Spec.ProviderID != "" {
				if err := showAgain(ctx, c, machine); err != nil {
					return false, err
				}
			}
		}

		return missing == "" && len(list.Items) > 0, nil
	})
	if err != nil {
		return fmt.Errorf("machines of cluster %s without a Node:%s: %w", cluster, missing, err)
	}

	return nil
}

// showAgain changes something in a Machine that nobody reads.
func showAgain(ctx context.Context, c client.Client, machine *clusterv1.Machine) error {
	before := machine.DeepCopy()
	// Without one it is zero.
	count, _ := strconv.Atoi(machine.Annotations[lookedAnnotation])

	if machine.Annotations == nil {
		machine.Annotations = map[string]string{}
	}

	machine.Annotations[lookedAnnotation] = strconv.Itoa(count + 1)

	return client.IgnoreNotFound(c.Patch(ctx, machine, client.MergeFrom(before)))
}
