// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// machineConditions are those of a Machine that runs, as Cluster API's core manager writes them.
var machineConditions = map[string]string{
	clusterv1.AvailableCondition:            clusterv1.AvailableReason,
	clusterv1.MachineReadyCondition:         clusterv1.MachineReadyReason,
	clusterv1.MachineUpToDateCondition:      clusterv1.MachineUpToDateReason,
	clusterv1.BootstrapConfigReadyCondition: clusterv1.ReadyReason,
	clusterv1.InfrastructureReadyCondition:  clusterv1.ReadyReason,
	clusterv1.MachineNodeReadyCondition:     clusterv1.MachineNodeReadyReason,
	clusterv1.MachineNodeHealthyCondition:   clusterv1.MachineNodeHealthyReason,
	clusterv1.PausedCondition:               clusterv1.NotPausedReason,
	clusterv1.MachineDeletingCondition:      clusterv1.MachineNotDeletingReason,
}

// RunMachines gives a fleet's Machines a status of the size that a running Machine's has, but for its Node: a machine that has joined
// is not rendered.
func (w *World) RunMachines(ctx context.Context, f *Fleet, n int) error {
	return Each(ctx, n, Workers, func(ctx context.Context, i int) error {
		machine := &clusterv1.Machine{}
		if err := w.Admin.Get(ctx, client.ObjectKey{Namespace: f.Namespace, Name: MachineName(i)}, machine); err != nil {
			return err
		}

		machine.Status = clusterv1.MachineStatus{
			Phase: string(clusterv1.MachinePhaseRunning),
			Addresses: clusterv1.MachineAddresses{
				{Type: clusterv1.MachineInternalIP, Address: fmt.Sprintf("10.0.%d.%d", i/250%250, i%250)},
				{Type: clusterv1.MachineHostName, Address: machine.Name},
			},
		}

		for conditionType, reason := range machineConditions {
			machine.Status.Conditions = append(machine.Status.Conditions, metav1.Condition{
				Type: conditionType, Status: metav1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.Now(), ObservedGeneration: 1,
			})
		}

		return w.Admin.Status().Update(ctx, machine)
	})
}
