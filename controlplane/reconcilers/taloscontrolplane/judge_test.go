// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/rollout"
	"github.com/maesh-dev/ichor/internal/talos"
)

// A Node that is not ready is a fault as soon as that of another machine is ready, and not by its own word. What may be done beside a machine goes by
// whether its node is on its way down.
func TestJudgedBesideOthers(t *testing.T) {
	ready := func(*talos.Node) {}
	waits := func(n *talos.Node) {
		n.Ready, n.Unmet = false, []talos.Unmet{{Name: nodeReadyCheck, Reason: "node is not ready"}}
	}
	boots := func(n *talos.Node) { n.Ready, n.Stage = false, bootingStage }
	reboots := func(n *talos.Node) { n.Ready, n.Stage = false, "rebooting" }
	silent := func(n *talos.Node) { *n = talos.Node{Err: errors.New("no answer")} }

	tests := map[string]struct {
		nodes []func(*talos.Node)
		// want is of each machine whether its Talos is well, and whether its node is on its way down.
		want []string
	}{
		"all are ready":                     {[]func(*talos.Node){ready, ready}, []string{"True steady", "True steady"}},
		"none is ready":                     {[]func(*talos.Node){waits, waits, waits}, []string{"True steady", "True steady", "True steady"}},
		"one is not":                        {[]func(*talos.Node){ready, waits, ready}, []string{"True steady", "False steady", "True steady"}},
		"one is ready":                      {[]func(*talos.Node){waits, ready}, []string{"False steady", "True steady"}},
		"the only one is not":               {[]func(*talos.Node){waits}, []string{"True steady"}},
		"the one that may be is silent":     {[]func(*talos.Node){waits, silent}, []string{"True steady", "Unknown unsteady"}},
		"one boots, and none else is up":    {[]func(*talos.Node){boots, waits}, []string{"False steady", "True steady"}},
		"one is on its way down":            {[]func(*talos.Node){reboots, ready}, []string{"False unsteady", "True steady"}},
		"one does not say what it is doing": {[]func(*talos.Node){func(n *talos.Node) { n.Stage = "" }}, []string{"True unsteady"}},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := &Reconciler{GracePeriod: time.Minute}
			seen := &observation{plane: newMemory().of(types.NamespacedName{Name: "cp"}, "plane"), nodes: answers{}}

			for i, change := range test.nodes {
				object := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("cp-%d", i), UID: types.UID(fmt.Sprint(i))}}
				node := wellNode()
				change(&node)

				seen.machines = append(seen.machines, &machine{object: object, stored: object.DeepCopy()})
				seen.snapshot.Machines = append(seen.snapshot.Machines, rollout.Machine{Name: object.Name, Ours: true})
				seen.plane.views[object.UID] = view{node: node}
			}

			r.judge(seen)

			var got []string

			for i, m := range seen.machines {
				steady := "unsteady"
				if seen.snapshot.Machines[i].Steady {
					steady = "steady"
				}

				got = append(got, string(conditions.Get(m.object, controlplanev1.MachineTalosHealthyCondition).Status)+" "+steady)
			}

			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A machine that is off is told by the plan with the next look at it, although its conditions stay for the grace period.
func TestOffIsToldAtOnce(t *testing.T) {
	l, p := grown(t)

	name := l.machines()[0].Name
	l.nodes[name].PowerOff()
	l.clock.Step(healthPeriod)
	p.reconcile()

	if plan := l.controlPlane().Status.Plan; plan.Reason != controlplanev1.PlanMachineUnhealthyReason {
		t.Errorf("the plan says %s: %s", plan.Reason, plan.Message)
	}

	if machine := l.machines()[0]; !conditions.IsTrue(&machine, controlplanev1.MachineTalosHealthyCondition) {
		t.Error("the condition does not wait for the grace period")
	}

	l.clock.Step(p.GracePeriod + time.Second)
	p.reconcile()

	if machine := l.machines()[0]; conditions.Get(&machine, controlplanev1.MachineTalosHealthyCondition).Reason != controlplanev1.MachineConnectionDownReason {
		t.Error("the condition does not say that the machine is out of reach")
	}
}
