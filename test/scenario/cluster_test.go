// SPDX-License-Identifier: Apache-2.0

package scenario_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	"github.com/maesh-dev/ichor/test/builder"
	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
	"github.com/maesh-dev/ichor/test/scenario"
	"github.com/maesh-dev/ichor/test/stage"
)

// patience bounds the wait for Nodes.
const patience = 4 * time.Minute

// TestFullCluster brings up three control-plane nodes and two workers with real etcd members and API servers, from the objects that a
// user writes.
func TestFullCluster(t *testing.T) {
	s := suite.New(t)
	t.Parallel()

	var machines []clusterv1.Machine

	begin := time.Now()

	s.Step("create the cluster", func() {
		s.Create(builder.Small(scenario.Cluster))
		s.WriteKubeconfig()

		machines = s.Machines(5)
		s.ExactConfigs(machines)
	})
	s.Step("bootstrap etcd", func() {
		s.Bootstrap(machines)
		s.Voters(machines, 3)
		t.Logf("etcd has three voting members after %s", time.Since(begin).Round(100*time.Millisecond))

		s.NodesAreReady(5)
		t.Logf("five Nodes are ready after %s", time.Since(begin).Round(100*time.Millisecond))

		s.Expect(stage.WaitForNodeRefs(s.Ctx, s.Client, s.Key(scenario.Cluster), patience)).To(Succeed())
		s.Eventually(func(g Gomega) {
			for _, machine := range s.Machines(5) {
				g.Expect(machine.Status.NodeRef.Name).To(Equal(machine.Name), scenario.Describe(&machine))
				g.Expect(machine.Status.GetTypedPhase()).To(Equal(clusterv1.MachinePhaseRunning), scenario.Describe(&machine))
				g.Expect(conditions.IsTrue(&machine, clusterv1.MachineAvailableCondition)).To(BeTrue(), "%s: %s", machine.Name, scenario.Describe(&machine))
			}
		}).Should(Succeed())
		t.Logf("five Machines are available after %s", time.Since(begin).Round(100*time.Millisecond))
	})
	// The one that answered first may go: the endpoint leads to the others.
	s.Step("cut the power of a control-plane node", func() {
		s.Node("cp1").PowerOff()
		s.Ready("cp1", infrav1.PoweredOffReason)

		kubernetes, err := stage.Kubernetes(s.Ctx, s.Client, s.Key(scenario.Cluster))
		s.Expect(err).NotTo(HaveOccurred())
		s.Eventually(func() error { return kubernetes.List(s.Ctx, &corev1.NodeList{}) }).Should(Succeed())
	})
	s.Steady()
	s.Step("delete the cluster", s.DeleteCluster)
}

// TestLightCluster brings up five nodes without Kubernetes. What is asked of them, and no more, is in the golden file.
func TestLightCluster(t *testing.T) {
	s := suite.New(t)
	t.Parallel()

	var machines []clusterv1.Machine

	begin := time.Now()

	s.Step("create the cluster", func() {
		s.Create(builder.World{Name: scenario.Cluster, ControlPlanes: 3, Workers: 2, Light: true})

		machines = s.Machines(5)
		s.ExactConfigs(machines)
		t.Logf("five Machines are provisioned after %s", time.Since(begin).Round(10*time.Millisecond))
	})
	s.Step("bootstrap etcd", func() {
		s.Bootstrap(machines)
		s.Voters(machines, 3)
		t.Logf("etcd has three voting members after %s", time.Since(begin).Round(10*time.Millisecond))
	})
	s.Steady()
	s.Step("delete the cluster", s.DeleteCluster)
	s.Golden("light")
}
