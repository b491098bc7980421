// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/rollout"
	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
)

// applier counts what is applied, and has nothing change by it.
type applier struct {
	client.Client

	applied int
}

func (a *applier) Scheme() *runtime.Scheme { return storeScheme() }

func (a *applier) Apply(_ context.Context, object runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
	a.applied++

	if applied, ok := object.(client.Object); ok {
		applied.SetResourceVersion("1")
	}

	return nil
}

// What was applied in a large fleet is not applied again as long as nothing changes: one pass over all its control planes must not push out of
// memory what the next one needs.
func TestPropagateOnce(t *testing.T) {
	const planes, machines = 500, 3

	writes := &applier{}
	r := &Reconciler{Client: writes, memory: newMemory(), deferrer: &deferring{}}

	fleet := make([]*observation, planes)
	for i := range fleet {
		fleet[i] = settledPlane(r, i, machines)
	}

	pass := func() int {
		t.Helper()

		before := writes.applied

		for _, seen := range fleet {
			if err := r.propagate(t.Context(), seen); err != nil {
				t.Fatal(err)
			}
		}

		return writes.applied - before
	}

	if got, want := pass(), planes*machines*3; got != want {
		t.Fatalf("%d objects are applied at first, want %d", got, want)
	}

	if got := pass(); got != 0 {
		t.Errorf("%d objects are applied again, and nothing has changed", got)
	}

	// A change reaches those that it is meant for, and no others.
	fleet[7].controlPlane.Spec.MachineTemplate.ObjectMeta.Labels = map[string]string{"tier": "gold"}

	if got, want := pass(), machines*3; got != want {
		t.Errorf("%d objects are applied after a change, want %d", got, want)
	}

	last := fleet[0].plane
	if last.keep(map[types.UID]bool{fleet[0].machines[1].object.UID: true}); len(last.applied) != 1 {
		t.Errorf("%d machines are remembered, and one is there", len(last.applied))
	}
}

// settledPlane is a control plane whose objects have the labels that they should have.
func settledPlane(r *Reconciler, n, machines int) *observation {
	tcp := planeWith(nil)
	tcp.Name, tcp.UID = fmt.Sprintf("cp%d", n), types.UID(fmt.Sprintf("plane-%d", n))

	seen := &observation{controlPlane: tcp, clusterName: "prod", plane: r.memory.of(client.ObjectKeyFromObject(tcp), tcp.UID)}
	meta := func(kind, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: tcp.Namespace, Name: name, UID: types.UID(kind + name), Labels: labelsFor(tcp, "prod"), Annotations: map[string]string{}}
	}

	for i := range machines {
		name := fmt.Sprintf("%s-%d", tcp.Name, i)
		stored := machineFor(tcp, "prod", &clusterv1.Machine{ObjectMeta: meta("machine", name)})

		infrastructure := &metav1.PartialObjectMetadata{ObjectMeta: meta("infrastructure", name)}
		infrastructure.SetGroupVersionKind(infrav1.GroupVersion.WithKind("SimMachine"))

		seen.machines = append(seen.machines, &machine{
			object: stored.DeepCopy(), stored: stored, infrastructure: infrastructure,
			config: &bootstrapv1.TalosConfig{ObjectMeta: meta("config", name)},
		})
		seen.snapshot.Machines = append(seen.snapshot.Machines, rollout.Machine{Name: name, Ours: true})
	}

	return seen
}
