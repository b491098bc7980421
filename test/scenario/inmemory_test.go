// SPDX-License-Identifier: Apache-2.0

package scenario_test

import (
	"testing"

	. "github.com/onsi/gomega"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/test/builder"
	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
	"github.com/maesh-dev/ichor/test/scenario"
	"github.com/maesh-dev/ichor/test/stage"
)

// What a control plane says of an outage and of an alarm, on machines in memory, and that it scales down when they are over.
func TestInMemory(t *testing.T) {
	s := suite.New(t)
	t.Parallel()

	cp := &controlplanev1.TalosControlPlane{}

	var machines []string

	s.Step("create the cluster", func() {
		s.Create(builder.Cluster(scenario.Cluster).InMemory().ControlPlane(builder.ControlPlane(scenario.Cluster, "cp", 3)))

		for _, machine := range s.Settled(3) {
			machines = append(machines, machine.Name)
		}

		s.NodesAreReady(3)
	})
	s.Step("cut the power of a machine", func() {
		s.Power(machines[1], infrav1.PowerOff)
		s.NodesAreReady(3, machines[1])
		s.Says(cp, "cp", controlplanev1.MachinesReadyCondition, metav1.ConditionFalse, machines[1])
		s.Says(cp, "cp", controlplanev1.AvailableCondition, metav1.ConditionTrue)
	})
	s.Step("power on again", func() {
		s.Power(machines[1], infrav1.PowerOn)
		s.Settled(3)
		s.NodesAreReady(3)
	})
	s.Step("raise an alarm", func() {
		s.Expect(s.Node(machines[0]).RaiseEtcdAlarm(machineapi.EtcdMemberAlarm_NOSPACE)).To(Succeed())
		s.Says(cp, "cp", controlplanev1.EtcdClusterHealthyCondition, metav1.ConditionFalse, "NOSPACE")
		s.Plans(controlplanev1.PlanMachineUnhealthyReason, "NOSPACE")
	})
	s.Step("disarm it", func() {
		c, err := stage.Talos(s.Ctx, s.Client, s.Key(scenario.Cluster), s.Node(machines[0]).Address())
		s.Expect(err).NotTo(HaveOccurred())
		_, err = c.EtcdAlarmDisarm(s.Ctx)
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(c.Close()).To(Succeed())
		s.Settled(3)
	})
	s.Step("scale down", func() {
		s.Patch(cp, "cp", func() { cp.Spec.Replicas = new(int32(1)) })
		s.Voters(s.Settled(1), 1)
		s.NodesAreReady(1)
	})
	s.Steady()
	s.DeleteCluster()
}
