// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/test/builder"
	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
	play "github.com/maesh-dev/ichor/test/scenario"
)

// guest is the schematic of images with the guest agent of QEMU, whose service waits for ever on a machine without its device.
var (
	guest      = strings.Repeat("0e", 32)
	guestImage = "factory.talos.dev/metal-installer/" + guest + ":" + builder.TalosVersion
	schematics = map[string][]string{guest: {"siderolabs/qemu-guest-agent"}}
)

const guestService = "ext-qemu-guest-agent is waiting"

// A cluster that has no network plugin yet grows all the same: Talos finds none of its Nodes ready, and that is told and no fault.
//
// contract: a cluster without a network plugin gets all of its machines.
func TestWithoutNetworkPlugin(t *testing.T) {
	s := newScenario(t)
	t.Parallel()

	s.Create(clusterOn(infrav1.FidelityInMemory, infrav1.SimMachineSpec{Faults: infrav1.Faults{NodeNotReady: true}}, 1))
	s.upToDate(1)
	s.change(replicas(3))

	all := s.upToDate(3)
	s.Voters(all, 3)
	s.countBootstraps()

	for i := range all {
		s.talosSays(all[i].Name, metav1.ConditionTrue, "Install a network plugin", "is not ready")
	}

	for i := range all {
		s.faults(all[i].Name, infrav1.Faults{})
	}

	s.settled(3)
	s.deleteCluster()
}

// The service of an extension waits for what the machines do not have. Where Talos has booted that is told, and locks nothing. Machines of a
// new template never end their boot for it: the rollout stops at the first, with nobody else disturbed, and goes on with a template that is
// mended, which replaces the one that is not well before any other.
//
// contract: what ails Talos stops a rollout at its first machine, and no correction of it.
func TestServiceWaits(t *testing.T) {
	onlyLong(t)

	s := newScenario(t)
	t.Parallel()

	s.Create(clusterOn(infrav1.FidelityInMemory, infrav1.SimMachineSpec{Image: guestImage}, 3))

	old := names(s.settled(3))
	for _, name := range old {
		s.faults(name, infrav1.Faults{ServiceWaits: "qemu-guest-agent"})
	}

	s.template("waits", infrav1.SimMachineSpec{Image: guestImage, Faults: infrav1.Faults{ServiceWaits: "qemu-guest-agent"}})

	fresh := s.another(old)
	s.talosSays(fresh, metav1.ConditionFalse, "node is booting", guestService, "Give the machine what that needs")
	s.Plans(controlplanev1.PlanMachineUnhealthyReason, fresh, "TalosHealthy", guestService)

	for _, name := range old {
		s.talosSays(name, metav1.ConditionTrue, guestService)
	}

	s.held(append(slices.Clone(old), fresh))

	s.template("mended", infrav1.SimMachineSpec{Image: guestImage})
	s.Gone(&clusterv1.Machine{}, fresh)
	s.Expect(names(s.machineList())).To(ContainElements(old), "a machine went before the one that is not well")
	s.Expect(names(s.settled(3))).NotTo(ContainElements(old))
	s.deleteCluster()
}

// A kubelet that is not well, on each machine of a new template: the rollout waits with each until it is, and disturbs nobody meanwhile.
func TestKubeletIsNotWell(t *testing.T) {
	onlyLong(t)

	s := newScenario(t)
	t.Parallel()

	s.Create(clusterOf(infrav1.FidelityFull, 3))

	seen := names(s.settled(3))
	old := slices.Clone(seen)
	s.template("unwell", infrav1.SimMachineSpec{Faults: infrav1.Faults{NeverReady: ":" + builder.TalosVersion}})

	for range old {
		fresh := s.another(seen)
		s.talosSays(fresh, metav1.ConditionFalse, "service kubelet is not healthy")
		s.Plans(controlplanev1.PlanMachineUnhealthyReason, fresh, "TalosHealthy", "kubelet")
		s.held(names(s.machineList()))
		s.faults(fresh, infrav1.Faults{})

		seen = append(seen, fresh)
	}

	s.Expect(names(s.settled(3))).To(ConsistOf(seen[len(old):]))
	s.deleteCluster()
}

// The Node of one of three is not ready. No machine is made beside it; when the template changes it is the first to go, and the others follow.
func TestNodeIsNotReady(t *testing.T) {
	onlyLong(t)

	s := newScenario(t)
	t.Parallel()

	s.Create(clusterOf(infrav1.FidelityInMemory, 3))

	old := names(s.settled(3))
	s.faults(old[1], infrav1.Faults{NodeNotReady: true})
	s.talosSays(old[1], metav1.ConditionFalse, "is not ready")

	s.change(replicas(5))
	s.Plans(controlplanev1.PlanMachineUnhealthyReason, old[1], "TalosHealthy", "is not ready")
	s.held(old)

	s.change(replicas(3))
	s.change(func(tcp *controlplanev1.TalosControlPlane) {
		tcp.Spec.Rollout.Strategy.RollingUpdate.MaxSurge = ptr.To[int32](0)
	})
	s.template("other", infrav1.SimMachineSpec{})
	s.Gone(&clusterv1.Machine{}, old[1])
	s.Expect(names(s.machineList())).To(ContainElements(old[0], old[2]), "a machine went before the one that is not well")
	s.Expect(names(s.settled(3))).NotTo(ContainElements(old))
	s.deleteCluster()
}

// The only machine never ends its boot, and its user deletes it. Another is made before it leaves etcd: that its Talos is not well, and that the
// other's is not either, keeps nobody from it.
func TestUnwellMachineGoes(t *testing.T) {
	onlyLong(t)

	s := newScenario(t)
	t.Parallel()

	s.Create(clusterOn(infrav1.FidelityInMemory, infrav1.SimMachineSpec{Image: guestImage, Faults: infrav1.Faults{ServiceWaits: "qemu-guest-agent"}}, 1))
	s.Plans(controlplanev1.PlanMachineUnhealthyReason, "TalosHealthy", guestService)

	first := s.machineList()[0].Name
	s.Delete(&clusterv1.Machine{}, first)
	s.Expect(s.Watch.Left(first)).To(BeTrue())

	second := names(s.machineList())
	s.Expect(second).To(HaveLen(1))
	s.talosSays(second[0], metav1.ConditionFalse, "node is booting", guestService)

	s.faults(second[0], infrav1.Faults{})
	s.settled(1)
	s.deleteCluster()
}

// upToDate waits until there are so many machines and nothing is left to do, whatever else is said of them.
func (s *scenario) upToDate(n int) []clusterv1.Machine {
	s.t.Helper()

	s.Eventually(func(g Gomega) {
		tcp := s.controlPlane()
		g.Expect(tcp.Status.ObservedGeneration).To(Equal(tcp.Generation))
		g.Expect(tcp.Status.Plan.Action).To(Equal("None"), "%+v%s", tcp.Status.Plan, play.Describe(tcp))
		g.Expect(tcp.Status.Replicas).To(HaveValue(BeEquivalentTo(n)))
	}).Should(Succeed())

	return s.machineList()
}

// talosSays waits until TalosHealthy of a Machine says so.
func (s *scenario) talosSays(name string, status metav1.ConditionStatus, words ...string) {
	s.t.Helper()
	s.Says(&clusterv1.Machine{}, name, controlplanev1.MachineTalosHealthyCondition, status, words...)
}

// faults sets those of a simulated machine, as a user does.
func (s *scenario) faults(name string, faults infrav1.Faults) {
	s.t.Helper()

	object := &infrav1.SimMachine{}
	s.Patch(object, name, func() { object.Spec.Faults = faults })
}

// template has the machines made from another template from now on.
func (s *scenario) template(name string, machines infrav1.SimMachineSpec) {
	s.t.Helper()
	s.Create(builder.These{builder.Sim{MachineSpec: machines}.Template(name)})
	s.change(func(tcp *controlplanev1.TalosControlPlane) {
		tcp.Spec.MachineTemplate.Spec.InfrastructureRef.Name = name
	})
}

// another waits for a Machine that is none of some.
func (s *scenario) another(some []string) string {
	s.t.Helper()

	var out string

	s.Eventually(func() string {
		for _, name := range names(s.machineList()) {
			if !slices.Contains(some, name) {
				out = name
			}
		}

		return out
	}).ShouldNot(BeEmpty(), "no machine is made beside %v", some)

	return out
}

// held checks that nobody does anything any more, and that these Machines are there, of which none goes.
func (s *scenario) held(all []string) {
	s.t.Helper()
	s.Steady()

	list := s.machineList()
	s.Expect(names(list)).To(ConsistOf(all))

	for i := range list {
		s.Expect(list[i].DeletionTimestamp).To(BeNil(), list[i].Name)
	}

	s.Expect(s.Watch.Check(s.ctx)).To(Succeed())
}
