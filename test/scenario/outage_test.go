// SPDX-License-Identifier: Apache-2.0

package scenario_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/test/builder"
	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
	"github.com/maesh-dev/ichor/test/scenario"
)

func TestOutage(t *testing.T) {
	scenario.OnlyLong(t) // a control plane calls a node lost when it has not heard of it for five minutes

	s := suite.New(t)
	t.Parallel()

	var lost string

	s.Step("create the cluster", func() {
		s.Create(
			builder.Cluster(scenario.Cluster).ControlPlane(builder.ControlPlane(scenario.Cluster, "cp", 3)),
			builder.Workers(scenario.Cluster, "workers", 1),
		)
		lost = s.Settled(3)[1].Name // all well, and nothing left to do
		s.NodesAreReady(4)
	})
	s.Step("cut the power of a control-plane machine", func() {
		s.Power(lost, infrav1.PowerOff)
		s.NodesAreReady(4, lost) // all but this: the API server answers, so etcd has its quorum

		cp := &controlplanev1.TalosControlPlane{}
		s.Says(cp, "cp", controlplanev1.MachinesReadyCondition, metav1.ConditionFalse, lost)
		s.Says(cp, "cp", controlplanev1.EtcdClusterHealthyCondition, metav1.ConditionUnknown, lost)
		s.Says(cp, "cp", controlplanev1.ControlPlaneComponentsHealthyCondition, metav1.ConditionUnknown, lost)
		s.Says(cp, "cp", controlplanev1.AvailableCondition, metav1.ConditionTrue)
	})
	s.Step("power on again", func() {
		s.Power(lost, infrav1.PowerOn)
		s.Settled(3)
		s.NodesAreReady(4)
	})
	s.Steady()
	s.DeleteCluster()
}
