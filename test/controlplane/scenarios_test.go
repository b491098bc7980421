// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/test/builder"
	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
	play "github.com/maesh-dev/ichor/test/scenario"
)

// From nothing to one machine, to three, back to one, and to nothing. On the way everything that a move loses is lost.
//
// contract: what a move loses of status comes back, and the kubeconfig is mended.
func TestScale(t *testing.T) {
	onlyLong(t)

	s := newScenario(t)
	t.Parallel()

	s.Create(clusterOf(infrav1.FidelityFull, 1))
	first := s.settled(1)
	s.quiet()

	s.loseStatus()
	s.settled(1)
	s.renewKubeconfig()

	s.change(replicas(3))
	s.Expect(names(s.settled(3))).To(ContainElement(first[0].Name))

	s.change(replicas(1))
	s.settled(1)

	s.deleteCluster()
}

// A user deletes the Machine that leads etcd, whose drain takes a while; then a machine dies, and a MachineHealthCheck has it replaced.
//
// contract: a user's deletion waits at the hook until the member has left; an unhealthy machine is remediated.
func TestRepair(t *testing.T) {
	onlyLong(t)

	s := newScenario(t)
	t.Parallel()

	s.Create(clusterOf(infrav1.FidelityFull, 3))

	all := s.settled(3)
	leader := s.leader(all)
	s.deleteGuarded(leader, all)

	after := s.settled(3)
	s.Expect(names(after)).NotTo(ContainElement(leader))

	s.Create(builder.HealthCheck(play.Cluster, "cp"))

	dead := after[len(after)-1].Name
	s.Node(dead).PowerOff()
	s.Eventually(func(g Gomega) { g.Expect(names(s.machineList())).NotTo(ContainElement(dead)) }).Should(Succeed())
	s.settled(3)

	tcp := s.controlPlane()
	s.Expect(tcp.Status.LastRemediation.Machine).To(Equal(dead))
	s.Expect(tcp.Annotations).NotTo(HaveKey(controlplanev1.RemediationInProgressAnnotation))

	s.deleteCluster()
}

// A new version, and then another infrastructure template, replace the machines one by one.
func TestRollout(t *testing.T) {
	onlyLong(t)

	s := newScenario(t)
	t.Parallel()

	s.Create(clusterOf(infrav1.FidelityFull, 3))
	before := names(s.settled(3))

	s.change(func(tcp *controlplanev1.TalosControlPlane) { tcp.Spec.Version = "v1.36.2" })
	after := s.settled(3)

	for i := range after {
		s.Expect(before).NotTo(ContainElement(after[i].Name))
		s.Expect(after[i].Spec.Version).To(Equal("v1.36.2"))
	}

	s.Create(builder.These{builder.Sim{}.Template("other")})
	s.change(func(tcp *controlplanev1.TalosControlPlane) {
		tcp.Spec.MachineTemplate.Spec.InfrastructureRef.Name = "other"
		tcp.Spec.Rollout.Strategy.RollingUpdate.MaxSurge = ptr.To[int32](0)
	})

	before = names(after)
	for _, name := range names(s.settled(3)) {
		s.Expect(before).NotTo(ContainElement(name))
	}

	s.deleteCluster()
}

// Five machines, and back to one.
func TestFive(t *testing.T) {
	onlyLong(t)

	s := newScenario(t)
	t.Parallel()

	s.Create(clusterOf(infrav1.FidelityFull, 1))
	s.settled(1)

	for _, n := range []int32{3, 5, 3, 1} {
		s.change(replicas(n))
		s.settled(int(n))
	}

	s.deleteCluster()
}

// Labels and annotations of the template, timeouts, taints and readiness gates reach machines without a rollout, and leave them again. A
// cluster without Kubernetes will do: its machine waits for its API server for ever.
//
// contract: metadata, timeouts, taints and readiness gates reach machines in place, and leave them again.
func TestPropagation(t *testing.T) {
	onlyLong(t)

	s := newScenario(t)
	t.Parallel()

	s.Create(clusterOf(infrav1.FidelityLight, 1))
	s.bootstrappedOnce()

	s.change(func(tcp *controlplanev1.TalosControlPlane) {
		template := &tcp.Spec.MachineTemplate
		template.ObjectMeta.Labels = map[string]string{"tier": "gold", "node.cluster.x-k8s.io/zone": "a"}
		template.ObjectMeta.Annotations = map[string]string{"example.com/note": "x"}
		template.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To[int32](60)
		template.Spec.Taints = []clusterv1.MachineTaint{{
			Key: "example.com/busy", Effect: corev1.TaintEffectNoSchedule, Propagation: clusterv1.MachineTaintPropagationAlways,
		}}
		template.Spec.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "example.com/checked"}}
	})

	s.Eventually(func(g Gomega) {
		for _, object := range s.threeOf(g) {
			g.Expect(object.GetLabels()).To(HaveKeyWithValue("tier", "gold"), object.GetName())
			g.Expect(object.GetAnnotations()).To(HaveKeyWithValue("example.com/note", "x"))
		}

		machine := s.machineList()[0]
		g.Expect(machine.Spec.Deletion.NodeDrainTimeoutSeconds).To(HaveValue(BeEquivalentTo(60)))
		g.Expect(machine.Spec.Taints).To(HaveLen(1))
		g.Expect(machine.Spec.ReadinessGates).To(ContainElement(clusterv1.MachineReadinessGate{ConditionType: "example.com/checked"}))
	}).Should(Succeed())

	s.change(func(tcp *controlplanev1.TalosControlPlane) {
		tcp.Spec.MachineTemplate.ObjectMeta = clusterv1.ObjectMeta{}
		tcp.Spec.MachineTemplate.Spec = controlplanev1.TalosControlPlaneMachineTemplateSpec{
			InfrastructureRef: tcp.Spec.MachineTemplate.Spec.InfrastructureRef,
		}
	})

	s.Eventually(func(g Gomega) {
		for _, object := range s.threeOf(g) {
			g.Expect(object.GetLabels()).NotTo(HaveKey("tier"), object.GetName())
			g.Expect(object.GetAnnotations()).NotTo(HaveKey("example.com/note"))
			g.Expect(object.GetLabels()).To(HaveKey(clusterv1.MachineControlPlaneLabel))
		}

		machine := s.machineList()[0]
		g.Expect(machine.Spec.Deletion.NodeDrainTimeoutSeconds).To(BeNil())
		g.Expect(machine.Spec.Taints).To(BeEmpty())
		g.Expect(machine.Annotations).To(HaveKey(controlplanev1.PreTerminateHookAnnotation))
	}).Should(Succeed())

	s.Expect(s.machineList()).To(HaveLen(1), "nothing was rolled out")
	s.deleteCluster()
}

// Whatever state anything is in, a cluster can be deleted.
//
// contract: a control plane goes from any state.
func TestDeletion(t *testing.T) {
	tests := map[string]struct {
		machines   infrav1.SimMachineSpec
		noTemplate bool
	}{
		"nodes that never answer":    {machines: infrav1.SimMachineSpec{Faults: infrav1.Faults{Unreachable: true}}},
		"machines that never boot":   {machines: neverBoots},
		"no infrastructure template": {noTemplate: true},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.noTemplate {
				onlyLong(t)
			}

			s := newScenario(t)
			t.Parallel()

			cluster, reason := clusterOn(infrav1.FidelityLight, test.machines, 1), controlplanev1.PlanWaitingForMachineReason
			if test.noTemplate {
				cluster.ControlPlane(builder.These(replaced(test.machines, 1).Objects()[1:]))

				reason = controlplanev1.PlanWaitingForTemplateReason
			}

			s.Create(cluster)

			s.Eventually(func(g Gomega) { g.Expect(s.controlPlane().Status.Plan.Reason).To(Equal(reason)) }).Should(Succeed())

			if test.noTemplate {
				s.Expect(s.controlPlane().Status.Plan.Message).To(ContainSubstring("SimMachineTemplate cp does not exist"))
				s.Expect(s.machineList()).To(BeEmpty())
			} else {
				s.Expect(s.machineList()).To(HaveLen(1))
			}

			s.deleteCluster()
		})
	}
}

// Nothing is done while the Cluster is paused, and everything when it is no more.
//
// contract: nothing is done while the Cluster is paused.
func TestPause(t *testing.T) {
	s := newScenario(t)
	t.Parallel()

	s.Create(clusterOf(infrav1.FidelityLight, 1))
	s.bootstrappedOnce()

	cluster := &clusterv1.Cluster{}
	pause := func(paused bool) { s.Patch(cluster, "c", func() { cluster.Spec.Paused = new(paused) }) }

	pause(true)
	s.Eventually(func(g Gomega) {
		tcp := s.controlPlane()
		g.Expect(tcp.Status.Plan.Reason).To(Equal(controlplanev1.PlanPausedReason))
		g.Expect(play.Describe(tcp)).To(ContainSubstring("Paused=True"))
	}).Should(Succeed())

	before := s.controlPlane().ResourceVersion
	s.change(func(tcp *controlplanev1.TalosControlPlane) {
		tcp.Spec.MachineTemplate.ObjectMeta.Labels = map[string]string{"tier": "gold"}
	})
	s.Eventually(func(g Gomega) {
		tcp := s.controlPlane()
		g.Expect(tcp.ResourceVersion).NotTo(Equal(before))
		g.Expect(tcp.Status.ObservedGeneration).To(Equal(tcp.Generation))
	}).Should(Succeed())
	s.Consistently(func() map[string]string { return s.machineList()[0].Labels }).WithTimeout(3 * time.Second).ShouldNot(HaveKey("tier"))

	pause(false)
	s.Eventually(func() map[string]string { return s.machineList()[0].Labels }).Should(HaveKey("tier"))
	s.deleteCluster()
}

// A node that says it has etcd data already was bootstrapped by an earlier call: the control plane goes on.
//
// contract: etcd is bootstrapped once, also when its answer is lost.
func TestBootstrapAnswerLost(t *testing.T) {
	s := newScenario(t)
	t.Parallel()

	s.Create(clusterOf(infrav1.FidelityLight, 1))
	s.Eventually(func(g Gomega) { g.Expect(s.machineList()).To(HaveLen(1)) }).Should(Succeed())

	name := s.machineList()[0].Name
	s.Eventually(func(g Gomega) {
		machine, err := s.Machine(s.ctx, s.key(name))
		g.Expect(err).NotTo(HaveOccurred())
		machine.Node.CrashAfter("Bootstrap")
	}).Should(Succeed())

	s.bootstrappedOnce()
	s.deleteCluster()
}
