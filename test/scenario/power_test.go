// SPDX-License-Identifier: Apache-2.0

package scenario_test

import (
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/maesh-dev/ichor/test/builder"
	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
	"github.com/maesh-dev/ichor/test/scenario"
)

// Three light control-plane machines that the scenario makes itself: one loses power, the others keep their quorum, and it comes back.
func TestPower(t *testing.T) {
	s := suite.New(t)
	t.Parallel()

	var machines []clusterv1.Machine

	s.Step("create the cluster", func() {
		s.Create(
			builder.Cluster(scenario.Cluster).Light(),
			builder.ControlPlaneMachine(scenario.Cluster, "cp1"),
			builder.ControlPlaneMachine(scenario.Cluster, "cp2"),
			builder.ControlPlaneMachine(scenario.Cluster, "cp3"),
		)
		machines = s.Machines(3)
		s.Bootstrap(machines)
		s.Voters(machines, 3)
	})

	object := &infrav1.SimMachine{}

	s.Step("cp2 loses power", func() {
		s.Patch(object, "cp2", func() { object.Spec.Power = infrav1.PowerOff })
		s.Ready("cp2", infrav1.PoweredOffReason)
	})
	s.Step("and gets it back", func() {
		s.Patch(object, "cp2", func() { object.Spec.Power = infrav1.PowerOn })
		s.Voters(machines, 3)
	})
	s.DeleteCluster()
}
