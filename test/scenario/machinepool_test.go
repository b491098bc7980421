// SPDX-License-Identifier: Apache-2.0

package scenario_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	"github.com/maesh-dev/ichor/test/builder"
	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
	"github.com/maesh-dev/ichor/test/scenario"
	"github.com/maesh-dev/ichor/test/talossim"
)

// poolOf waits until the SimMachinePool "pool" has so many machines that run with the MachinePool's config, and returns their provider
// IDs.
func poolOf(s *scenario.Scenario, replicas int) []string {
	object := &infrav1.SimMachinePool{}

	s.Eventually(func(g Gomega) {
		g.Expect(s.Client.Get(s.Ctx, s.Key("pool"), object)).To(Succeed())
		g.Expect(ptr.Deref(object.Status.Replicas, -1)).To(BeEquivalentTo(replicas), scenario.Describe(object))
		g.Expect(object.Status.Instances).To(HaveLen(replicas))
		g.Expect(object.Spec.ProviderIDList).To(HaveLen(replicas))
		g.Expect(ptr.Deref(object.Status.Ready, false)).To(BeTrue())
		g.Expect(ptr.Deref(object.Status.Initialization.Provisioned, false)).To(BeTrue())
		g.Expect(conditions.IsTrue(object, infrav1.ReadyCondition)).To(BeTrue(), scenario.Describe(object))

		// The IDs are in the spec and the addresses in the status, which are written one after the other.
		var running, told []string

		for i, id := range object.Spec.ProviderIDList {
			machine := s.Farm.Machine(id)
			g.Expect(machine).NotTo(BeNil(), id)

			running = append(running, machine.Node.Address())

			for _, address := range object.Status.Instances[i].Addresses {
				told = append(told, address.Address)
			}
		}

		g.Expect(told).To(ConsistOf(running))
	}).Should(Succeed())

	pool := &clusterv1.MachinePool{}
	s.Expect(s.Client.Get(s.Ctx, s.Key("pool"), pool)).To(Succeed())

	data := &corev1.Secret{}
	s.Expect(s.Client.Get(s.Ctx, s.Key(*pool.Spec.Template.Spec.Bootstrap.DataSecretName), data)).To(Succeed())

	addresses := map[string]bool{}

	for _, id := range object.Spec.ProviderIDList {
		machine := s.Farm.Machine(id)
		s.Expect(machine.Node.On()).To(BeTrue())
		s.Expect(string(machine.Node.Config()) == string(data.Data["value"])).To(BeTrue(), "%s runs with another config than that of the pool", id)
		addresses[machine.Node.Address()] = true
	}

	s.Expect(addresses).To(HaveLen(replicas), "each has its own")

	return object.Spec.ProviderIDList
}

// What Cluster API's contract for infrastructure providers asks of pools: as many machines as are wanted, all from one config. Those that
// stay are the same machines.
func TestMachinePool(t *testing.T) {
	s := suite.New(t)
	t.Parallel()

	scale := func(replicas int32) {
		pool := &clusterv1.MachinePool{}
		s.Patch(pool, "pool", func() { pool.Spec.Replicas = &replicas })
	}

	var two, three, one []string

	s.Step("create a pool of two", func() {
		s.Create(builder.Cluster(scenario.Cluster).Light(), builder.ControlPlaneMachine(scenario.Cluster, "cp1"), builder.Pool(scenario.Cluster, "pool", 2))
		two = poolOf(s, 2)
	})
	s.Step("scale to three", func() {
		scale(3)
		three = poolOf(s, 3)
		s.Expect(three).To(ContainElements(two))
	})

	nodes := map[string]*talossim.Node{}
	for _, id := range three {
		nodes[id] = s.Farm.Machine(id).Node
	}

	s.Step("scale to one", func() {
		scale(1)
		one = poolOf(s, 1)
		s.Expect(three).To(ContainElements(one))
		s.Eventually(func() int { return len(s.Farm.Below("sim:///" + s.Namespace + "/pool/")) }).Should(Equal(1))

		for id, node := range nodes {
			s.Expect(node.On()).To(Equal(id == one[0]), id)
		}
	})
	s.Step("lose a machine", func() {
		s.Expect(s.Farm.Destroy(one[0])).To(Succeed())
		s.Eventually(func(g Gomega) {
			object := &infrav1.SimMachinePool{}
			g.Expect(s.Client.Get(s.Ctx, s.Key("pool"), object)).To(Succeed())
			g.Expect(object.Spec.ProviderIDList).To(And(HaveLen(1), Not(Equal(one))), "another has taken its place")
		}).Should(Succeed())
		poolOf(s, 1)
	})
	s.Step("delete the cluster", s.DeleteCluster)
	s.Gone(&infrav1.SimMachinePool{}, "pool")
	s.Expect(s.Farm.Below("sim:///" + s.Namespace + "/pool/")).To(BeEmpty())
}
