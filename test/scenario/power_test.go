// SPDX-License-Identifier: Apache-2.0

package scenario_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
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

// Three machines that a TalosControlPlane makes: it notices that one has lost power, and replaces nothing, since nobody has asked for it.
func TestControlPlaneNoticesPower(t *testing.T) {
	s := suite.New(t)
	t.Parallel()

	controlPlane := &controlplanev1.TalosControlPlane{}
	machinesReady := func(status metav1.ConditionStatus, message string) {
		s.Eventually(func(g Gomega) {
			g.Expect(s.Client.Get(s.Ctx, s.Key("cp"), controlPlane)).To(Succeed())

			condition := conditions.Get(controlPlane, controlplanev1.MachinesReadyCondition)
			g.Expect(condition).NotTo(BeNil())
			g.Expect(condition.Status).To(Equal(status), scenario.Describe(controlPlane))
			g.Expect(condition.Message).To(ContainSubstring(message))
		}).Should(Succeed())
	}

	var machines []clusterv1.Machine

	s.Step("create the cluster", func() {
		s.Create(builder.Cluster(scenario.Cluster).ControlPlane(builder.ControlPlane(scenario.Cluster, "cp", 3)))
		machines = s.Machines(3)
		s.Voters(machines, 3)
		machinesReady(metav1.ConditionTrue, "")
	})

	lost := machines[1]
	object := &infrav1.SimMachine{}

	s.Step("one loses power", func() {
		s.Patch(object, lost.Spec.InfrastructureRef.Name, func() { object.Spec.Power = infrav1.PowerOff })
		machinesReady(metav1.ConditionFalse, lost.Name)
	})
	s.Step("and gets it back", func() {
		s.Patch(object, lost.Spec.InfrastructureRef.Name, func() { object.Spec.Power = infrav1.PowerOn })
		machinesReady(metav1.ConditionTrue, "")
	})

	for i, machine := range s.Machines(3) {
		s.Expect(machine.UID).To(Equal(machines[i].UID))
	}

	s.DeleteCluster()
}
