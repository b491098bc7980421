// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
)

// controlPlaneKind owns the Machines that this is about.
const controlPlaneKind = "TalosControlPlane"

// followMachines sees each Machine as it was created: a watch tells every change, which reading now and then would not.
func (w *Watch) followMachines(ctx context.Context) {
	for ctx.Err() == nil {
		machines, err := w.options.Client.Watch(ctx, &clusterv1.MachineList{}, client.InNamespace(w.options.Namespace))
		if err == nil {
			stop := context.AfterFunc(ctx, machines.Stop)
			w.seeMachines(machines)

			if stop() {
				machines.Stop()
			}
		}

		// The API server ends a watch after a while, and one that could not begin is tried again.
		select {
		case <-ctx.Done():
		case <-time.After(samplePeriod):
		}
	}
}

func (w *Watch) seeMachines(events watch.Interface) {
	for event := range events.ResultChan() {
		machine, ok := event.Object.(*clusterv1.Machine)
		if !ok || event.Type != watch.Added {
			continue
		}

		w.seeBirth(machine)
	}
}

// seeBirth judges a Machine that is seen for the first time.
func (w *Watch) seeBirth(machine *clusterv1.Machine) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if w.born[string(machine.UID)] {
		return
	}

	w.born[string(machine.UID)] = true

	owner := metav1.GetControllerOf(machine)
	if owner == nil || owner.Kind != controlPlaneKind {
		return
	}

	if _, has := machine.Annotations[controlplanev1.PreTerminateHookAnnotation]; !has {
		w.fault(Hooks, "Machine %s of TalosControlPlane %s was created without the annotation %s", machine.Name, owner.Name, controlplanev1.PreTerminateHookAnnotation)
	}
}
