// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reconciled waits until Cluster API's topology controller has dealt with a Cluster as it is.
func Reconciled(ctx context.Context, c client.Client, cluster client.ObjectKey, within time.Duration) error {
	var last string

	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, within, true, func(ctx context.Context) (bool, error) {
		found := &clusterv1.Cluster{}
		if err := c.Get(ctx, cluster, found); err != nil {
			return false, err
		}

		condition := conditions.Get(found, clusterv1.ClusterTopologyReconciledCondition)
		if condition == nil {
			return false, nil
		}

		last = fmt.Sprintf("%s of generation %d, while the Cluster has %d: %s", condition.Status, condition.ObservedGeneration, found.Generation, condition.Message)

		return condition.ObservedGeneration == found.Generation && condition.Status == metav1.ConditionTrue, nil
	})
	if err != nil {
		return fmt.Errorf("the topology of Cluster %s is not reconciled (%s): %w", cluster, last, err)
	}

	return nil
}

// LookAgain has the topology controller look several times at a topology that has not changed, and waits each time until it has. Whoever calls it
// compares what there is before and after.
func LookAgain(ctx context.Context, c client.Client, cluster client.ObjectKey, times int, within time.Duration) error {
	// The conditions that the rounds ask for do not exist. In the end none is asked for.
	for round := range times + 1 {
		var gates []clusterv1.ClusterAvailabilityGate
		if round < times {
			gates = []clusterv1.ClusterAvailabilityGate{{ConditionType: fmt.Sprintf("Round%d", round)}}
		}

		found := &clusterv1.Cluster{}
		if err := c.Get(ctx, cluster, found); err != nil {
			return err
		}

		before := found.DeepCopy()
		found.Spec.AvailabilityGates = gates

		if err := c.Patch(ctx, found, client.MergeFrom(before)); err != nil {
			return err
		}

		if err := Reconciled(ctx, c, cluster, within); err != nil {
			return err
		}
	}

	return nil
}
