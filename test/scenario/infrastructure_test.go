// SPDX-License-Identifier: Apache-2.0

package scenario_test

import (
	"testing"

	. "github.com/onsi/gomega"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
	"github.com/maesh-dev/ichor/test/stage"
	"github.com/maesh-dev/ichor/test/talossim"
)

// What Cluster API's contract for infrastructure providers asks for, as the core manager sees it.
func TestInfrastructureContract(t *testing.T) {
	s := newScenario(t)
	t.Parallel()

	s.create(clusterYAML("Light"))

	object := &infrav1.SimCluster{}
	s.patch(object, "c", func() {
		object.Spec.FailureDomains = []clusterv1.FailureDomain{{Name: "rack-1", ControlPlane: new(true)}, {Name: "rack-2", ControlPlane: new(false)}}
	})

	cluster := &clusterv1.Cluster{}
	s.Eventually(func(g Gomega) {
		g.Expect(s.Client.Get(s.ctx, s.key("c"), cluster)).To(Succeed())
		g.Expect(ptr.Deref(cluster.Status.Initialization.InfrastructureProvisioned, false)).To(BeTrue(), describe(cluster))
		g.Expect(cluster.Status.FailureDomains).To(HaveLen(2))
		g.Expect(conditions.IsTrue(cluster, clusterv1.ClusterInfrastructureReadyCondition)).To(BeTrue(), describe(cluster))
	}).Should(Succeed())
	s.Expect(s.Client.Get(s.ctx, s.key("c"), object)).To(Succeed())
	s.Expect(cluster.Spec.ControlPlaneEndpoint).To(Equal(clusterv1.APIEndpoint{
		Host: object.Spec.ControlPlaneEndpoint.Host, Port: object.Spec.ControlPlaneEndpoint.Port,
	}))
	s.Expect(object.Spec.ControlPlaneEndpoint).To(Equal(infrav1.APIEndpoint{Host: object.Spec.ControlPlaneEndpoint.Host, Port: 6443}))

	before := object.DeepCopy()
	object.Spec.ControlPlaneEndpoint.Port = 7443
	s.Expect(s.Client.Patch(s.ctx, object, client.MergeFrom(before))).To(MatchError(ContainSubstring("the endpoint of a cluster cannot be changed")))

	s.create(controlPlaneYAML("cp1", "{}"))

	machine := &clusterv1.Machine{}
	s.patch(machine, "cp1", func() { machine.Spec.FailureDomain = "rack-1" })

	running := s.ready("cp1", infrav1.RunningReason)
	s.Expect(running.Finalizers).To(ConsistOf(infrav1.MachineFinalizer))
	s.Expect(running.Spec.ProviderID).To(HavePrefix("sim:///" + s.namespace + "/cp1/"))
	s.Eventually(func(g Gomega) {
		g.Expect(s.Client.Get(s.ctx, s.key("cp1"), machine)).To(Succeed())
		g.Expect(machine.Spec.ProviderID).To(Equal(running.Spec.ProviderID))
		g.Expect(machine.Status.Addresses).To(Equal(clusterv1.MachineAddresses(running.Status.Addresses)))
		g.Expect(machine.Status.FailureDomain).To(Equal("rack-1"))
		g.Expect(conditions.IsTrue(machine, clusterv1.MachineInfrastructureReadyCondition)).To(BeTrue(), describe(machine))
	}).Should(Succeed())
	s.Expect(running.Status.Addresses).To(ConsistOf(
		HaveField("Type", clusterv1.MachineInternalIP), clusterv1.MachineAddress{Type: clusterv1.MachineHostName, Address: "cp1"}))

	s.deleteCluster()
}

// A paused machine is left alone, and says so.
func TestPausedMachine(t *testing.T) {
	s := newScenario(t)
	t.Parallel()

	s.create(clusterYAML("Light") + "---" + controlPlaneYAML("cp1", "{}"))
	s.ready("cp1", infrav1.RunningReason)

	object := &infrav1.SimMachine{}
	s.patch(object, "cp1", func() {
		object.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
		object.Spec.Power = infrav1.PowerOff
	})
	s.Eventually(func(g Gomega) {
		g.Expect(conditions.IsTrue(s.simMachine(g, "cp1"), clusterv1.PausedCondition)).To(BeTrue())
	}).Should(Succeed())

	machine, err := s.Machine(s.ctx, s.key("cp1"))
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(machine.Node.On()).To(BeTrue())

	s.patch(object, "cp1", func() { delete(object.Annotations, clusterv1.PausedAnnotation) })
	s.ready("cp1", infrav1.PoweredOffReason)
	s.Expect(machine.Node.On()).To(BeFalse())
}

// An infrastructure that somebody else manages is not touched.
func TestExternallyManagedCluster(t *testing.T) {
	s := newScenario(t)
	t.Parallel()

	s.create(`
apiVersion: infrastructure.ichor.maesh.dev/v1alpha1
kind: SimCluster
metadata: {name: c, annotations: {cluster.x-k8s.io/managed-by: somebody}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: c}
spec:
  infrastructureRef: {apiGroup: infrastructure.ichor.maesh.dev, kind: SimCluster, name: c}
`)

	object := &infrav1.SimCluster{}
	s.Eventually(func(g Gomega) {
		g.Expect(s.Client.Get(s.ctx, s.key("c"), object)).To(Succeed())
		g.Expect(object.OwnerReferences).NotTo(BeEmpty(), "Cluster API has not taken it over")
	}).Should(Succeed())

	// Another cluster, created later, has been served: so this one has been looked at.
	other := newScenario(t)
	other.create(clusterYAML("Light"))
	other.Eventually(func(g Gomega) {
		served := &infrav1.SimCluster{}
		g.Expect(s.Client.Get(s.ctx, other.key("c"), served)).To(Succeed())
		g.Expect(conditions.IsTrue(served, infrav1.ReadyCondition)).To(BeTrue())
	}).Should(Succeed())
	s.Expect(s.Client.Get(s.ctx, s.key("c"), object)).To(Succeed())
	s.Expect(object.Finalizers).To(BeEmpty())
	s.Expect(object.Status.Conditions).To(BeEmpty())
	s.Expect(object.Spec.ControlPlaneEndpoint).To(BeZero())
}

// Faults and power are changed on machines that run.
func TestFaultsAtRunTime(t *testing.T) {
	s := newScenario(t)
	t.Parallel()

	s.create(clusterYAML("Light") + "---" + controlPlaneYAML("cp1", "{image: 'ghcr.io/siderolabs/installer:v1.14.0'}"))
	s.ready("cp1", infrav1.RunningReason)

	machine, err := s.Machine(s.ctx, s.key("cp1"))
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(machine.Node.Version()).To(Equal("v1.14.0"))

	object := &infrav1.SimMachine{}
	s.patch(object, "cp1", func() { object.Spec.Faults = infrav1.Faults{BootFails: ":v1.14.0", LeaveFails: "no"} })
	s.Eventually(func() talossim.Faults { return machine.Node.Faults() }).Should(Equal(talossim.Faults{BootFails: ":v1.14.0", LeaveFails: "no"}))

	c, err := stage.Talos(s.ctx, s.Client, s.key("c"), machine.Node.Address())
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(c.Reboot(s.ctx)).To(Succeed())
	s.ready("cp1", infrav1.BootFailedReason)
	s.Expect(c.Close()).To(Succeed())

	s.patch(object, "cp1", func() { object.Spec.Faults, object.Spec.Power = infrav1.Faults{}, infrav1.PowerOff })
	s.ready("cp1", infrav1.PoweredOffReason)
	s.patch(object, "cp1", func() { object.Spec.Power = infrav1.PowerOn })
	s.ready("cp1", infrav1.RunningReason)

	maintenance, _ := machine.Node.Maintenance()
	s.Expect(maintenance).To(BeFalse(), "the disk has kept the config")
}

// A machine of metal boots from a medium, gets its config through the Talos API, installs what that names, and reboots.
func TestMaintenanceFirst(t *testing.T) {
	s := newScenario(t)
	t.Parallel()

	s.create(clusterYAML("Light") + "---" + controlPlaneYAML("cp1", "{firstBoot: Maintenance, disk: Blank}"))
	s.ready("cp1", infrav1.RunningReason)

	machine, err := s.Machine(s.ctx, s.key("cp1"))
	s.Expect(err).NotTo(HaveOccurred())
	s.Eventually(func() bool { on, _ := machine.Node.Maintenance(); return on || machine.Node.Boots() < 2 }).Should(BeFalse())
	s.exactConfigs(s.machines(1))
	s.Expect(machine.Node.CallCount("ApplyConfiguration")).To(Equal(1))
}

// A node that refuses its config is seen in the Machine; what it says of the config is not.
func TestRefusedConfig(t *testing.T) {
	s := newScenario(t)
	t.Parallel()

	s.create(clusterYAML("Light") + "---" + givenYAML)

	object := s.ready("given", infrav1.ConfigRefusedReason)
	s.Expect(conditions.Get(object, infrav1.ReadyCondition).Message).To(Equal("the node stays in maintenance mode: it refuses the machine config in Secret given"))
}

// A template is what machines were made from. The topology controller asks what a change would come to, and may.
func TestTemplatesDoNotChange(t *testing.T) {
	s := newScenario(t)
	t.Parallel()

	s.create(templateYAML)

	object := &infrav1.SimMachineTemplate{}
	change := func(annotations map[string]string, options ...client.PatchOption) error {
		if err := s.Client.Get(s.ctx, s.key("workers"), object); err != nil {
			return err
		}

		before := object.DeepCopy()
		object.Annotations = annotations
		object.Spec.Template.Spec.Platform = infrav1.PlatformMetal

		return s.Client.Patch(s.ctx, object, client.MergeFrom(before), options...)
	}

	asking := map[string]string{clusterv1.TopologyDryRunAnnotation: ""}

	// The API server needs a moment until it heeds a policy.
	s.Eventually(func() error { return change(nil, client.DryRunAll) }).Should(MatchError(ContainSubstring("a template cannot be changed")))
	s.Expect(apierrors.IsInvalid(change(nil))).To(BeTrue())
	s.Expect(apierrors.IsInvalid(change(asking))).To(BeTrue(), "the annotation alone is no dry run")
	s.Expect(change(asking, client.DryRunAll)).To(Succeed())
}

// A provider that is restarted has lost its machines, and says so; it does not make others in their place. This test runs
// alone, since no machine of the stage survives it.
func TestProviderRestarts(t *testing.T) {
	s := newScenario(t)

	s.create(clusterYAML("Light") + "---" + controlPlaneYAML("cp1", "{}"))

	before := s.ready("cp1", infrav1.RunningReason)
	old, err := s.Machine(s.ctx, s.key("cp1"))
	s.Expect(err).NotTo(HaveOccurred())

	cluster := &infrav1.SimCluster{}
	s.Expect(s.Client.Get(s.ctx, s.key("c"), cluster)).To(Succeed())

	s.Expect(s.RestartInfrastructure(s.ctx)).To(Succeed())

	lost := s.ready("cp1", infrav1.MachineLostReason)
	s.Expect(lost.Spec.ProviderID).To(Equal(before.Spec.ProviderID))
	s.Expect(old.Node.On()).To(BeFalse())

	// The Machine goes, and one of the same name comes: another machine, which has never run.
	machine := &clusterv1.Machine{}
	machine.Namespace, machine.Name = s.namespace, "cp1"
	s.Expect(s.Client.Delete(s.ctx, machine)).To(Succeed())
	s.Eventually(func(g Gomega) {
		for _, object := range []client.Object{&clusterv1.Machine{}, &infrav1.SimMachine{}} {
			g.Expect(apierrors.IsNotFound(s.Client.Get(s.ctx, s.key("cp1"), object))).To(BeTrue())
		}
	}).Should(Succeed())
	s.create(controlPlaneYAML("cp1", "{}"))

	after := s.ready("cp1", infrav1.RunningReason)
	s.Expect(after.Spec.ProviderID).NotTo(Equal(before.Spec.ProviderID))

	// The endpoint is where it was.
	s.Eventually(func(g Gomega) {
		again := &infrav1.SimCluster{}
		g.Expect(s.Client.Get(s.ctx, s.key("c"), again)).To(Succeed())
		g.Expect(again.Spec.ControlPlaneEndpoint).To(Equal(cluster.Spec.ControlPlaneEndpoint))
		g.Expect(conditions.IsTrue(again, infrav1.ReadyCondition)).To(BeTrue(), describe(again))
	}).Should(Succeed())

	c, err := stage.Talos(s.ctx, s.Client, s.key("c"), after.Status.Addresses[0].Address)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(c.Bootstrap(s.ctx, &machineapi.BootstrapRequest{})).To(Succeed())
	s.Expect(c.Close()).To(Succeed())
	s.deleteCluster()
}
