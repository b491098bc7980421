// SPDX-License-Identifier: Apache-2.0

package scenario_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/test/builder"
	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
	"github.com/maesh-dev/ichor/test/scenario"
	"github.com/maesh-dev/ichor/test/stage"
	"github.com/maesh-dev/ichor/test/talossim"
)

// What Cluster API's contract for infrastructure providers asks for, as the core manager sees it.
func TestInfrastructureContract(t *testing.T) {
	s := suite.New(t)
	t.Parallel()

	s.Create(builder.Cluster(scenario.Cluster).Light())

	object := &infrav1.SimCluster{}
	s.Patch(object, scenario.Cluster, func() {
		object.Spec.FailureDomains = []clusterv1.FailureDomain{{Name: "rack-1", ControlPlane: new(true)}, {Name: "rack-2", ControlPlane: new(false)}}
	})

	cluster := &clusterv1.Cluster{}
	s.Eventually(func(g Gomega) {
		g.Expect(s.Client.Get(s.Ctx, s.Key(scenario.Cluster), cluster)).To(Succeed())
		g.Expect(ptr.Deref(cluster.Status.Initialization.InfrastructureProvisioned, false)).To(BeTrue(), scenario.Describe(cluster))
		g.Expect(cluster.Status.FailureDomains).To(HaveLen(2))
		g.Expect(conditions.IsTrue(cluster, clusterv1.ClusterInfrastructureReadyCondition)).To(BeTrue(), scenario.Describe(cluster))
	}).Should(Succeed())
	s.Expect(s.Client.Get(s.Ctx, s.Key(scenario.Cluster), object)).To(Succeed())
	s.Expect(cluster.Spec.ControlPlaneEndpoint).To(Equal(clusterv1.APIEndpoint{
		Host: object.Spec.ControlPlaneEndpoint.Host, Port: object.Spec.ControlPlaneEndpoint.Port,
	}))
	s.Expect(object.Spec.ControlPlaneEndpoint).To(Equal(infrav1.APIEndpoint{Host: object.Spec.ControlPlaneEndpoint.Host, Port: 6443}))

	before := object.DeepCopy()
	object.Spec.ControlPlaneEndpoint.Port = 7443
	s.Expect(s.Client.Patch(s.Ctx, object, client.MergeFrom(before))).To(MatchError(ContainSubstring("the endpoint of a cluster cannot be changed")))

	s.Create(builder.ControlPlaneMachine(scenario.Cluster, "cp1"))

	machine := &clusterv1.Machine{}
	s.Patch(machine, "cp1", func() { machine.Spec.FailureDomain = "rack-1" })

	running := s.Ready("cp1", infrav1.RunningReason)
	s.Expect(running.Finalizers).To(ConsistOf(infrav1.MachineFinalizer))
	s.Expect(running.Spec.ProviderID).To(HavePrefix("sim:///" + s.Namespace + "/cp1/"))
	s.Eventually(func(g Gomega) {
		g.Expect(s.Client.Get(s.Ctx, s.Key("cp1"), machine)).To(Succeed())
		g.Expect(machine.Spec.ProviderID).To(Equal(running.Spec.ProviderID))
		g.Expect(machine.Status.Addresses).To(Equal(clusterv1.MachineAddresses(running.Status.Addresses)))
		g.Expect(machine.Status.FailureDomain).To(Equal("rack-1"))
		g.Expect(conditions.IsTrue(machine, clusterv1.MachineInfrastructureReadyCondition)).To(BeTrue(), scenario.Describe(machine))
	}).Should(Succeed())
	s.Expect(running.Status.Addresses).To(ConsistOf(
		HaveField("Type", clusterv1.MachineInternalIP), clusterv1.MachineAddress{Type: clusterv1.MachineHostName, Address: "cp1"}))

	s.DeleteCluster()
}

// A paused machine is left alone, and says so.
func TestPausedMachine(t *testing.T) {
	s := suite.New(t)
	t.Parallel()

	s.Create(builder.Cluster(scenario.Cluster).Light(), builder.ControlPlaneMachine(scenario.Cluster, "cp1"))
	s.Ready("cp1", infrav1.RunningReason)

	object := &infrav1.SimMachine{}
	s.Patch(object, "cp1", func() {
		object.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
		object.Spec.Power = infrav1.PowerOff
	})
	s.Eventually(func(g Gomega) {
		g.Expect(conditions.IsTrue(s.SimMachine(g, "cp1"), clusterv1.PausedCondition)).To(BeTrue())
	}).Should(Succeed())

	node := s.Node("cp1")
	// A machine is looked at every other second, and at each change.
	s.Consistently(node.On, "5s").Should(BeTrue())

	s.Patch(object, "cp1", func() { delete(object.Annotations, clusterv1.PausedAnnotation) })
	s.Ready("cp1", infrav1.PoweredOffReason)
	s.Expect(node.On()).To(BeFalse())
}

// An infrastructure that somebody else manages is not touched.
func TestExternallyManagedCluster(t *testing.T) {
	s := suite.New(t)
	t.Parallel()

	objects := builder.These(builder.Cluster(scenario.Cluster).Objects())
	objects[0].SetAnnotations(map[string]string{clusterv1.ManagedByAnnotation: "somebody"})
	s.Create(objects)

	object := &infrav1.SimCluster{}
	s.Eventually(func(g Gomega) {
		g.Expect(s.Client.Get(s.Ctx, s.Key(scenario.Cluster), object)).To(Succeed())
		g.Expect(object.OwnerReferences).NotTo(BeEmpty(), "Cluster API has not taken it over")
	}).Should(Succeed())

	// Another cluster, created later, has been served: so this one has been looked at.
	other := suite.New(t)
	other.Create(builder.Cluster(scenario.Cluster).Light())
	other.Eventually(func(g Gomega) {
		served := &infrav1.SimCluster{}
		g.Expect(s.Client.Get(s.Ctx, other.Key(scenario.Cluster), served)).To(Succeed())
		g.Expect(conditions.IsTrue(served, infrav1.ReadyCondition)).To(BeTrue())
	}).Should(Succeed())
	s.Expect(s.Client.Get(s.Ctx, s.Key(scenario.Cluster), object)).To(Succeed())
	s.Expect(object.Finalizers).To(BeEmpty())
	s.Expect(object.Status.Conditions).To(BeEmpty())
	s.Expect(object.Spec.ControlPlaneEndpoint).To(BeZero())
}

// Faults and power are changed on machines that run.
func TestFaultsAtRunTime(t *testing.T) {
	s := suite.New(t)
	t.Parallel()

	s.Create(builder.Cluster(scenario.Cluster).Light(), builder.ControlPlaneMachine(scenario.Cluster, "cp1").Sim(infrav1.SimMachineSpec{Image: "ghcr.io/siderolabs/installer:v1.14.0"}))
	s.Ready("cp1", infrav1.RunningReason)

	node := s.Node("cp1")
	s.Expect(node.Version()).To(Equal("v1.14.0"))

	object := &infrav1.SimMachine{}
	s.Patch(object, "cp1", func() { object.Spec.Faults = infrav1.Faults{BootFails: ":v1.14.0", LeaveFails: "no"} })
	s.Eventually(func() talossim.Faults { return node.Faults() }).Should(Equal(talossim.Faults{BootFails: ":v1.14.0", LeaveFails: "no"}))

	c, err := stage.Talos(s.Ctx, s.Client, s.Key(scenario.Cluster), node.Address())
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(c.Reboot(s.Ctx)).To(Succeed())
	s.Ready("cp1", infrav1.BootFailedReason)
	s.Expect(c.Close()).To(Succeed())

	s.Patch(object, "cp1", func() { object.Spec.Faults, object.Spec.Power = infrav1.Faults{}, infrav1.PowerOff })
	s.Ready("cp1", infrav1.PoweredOffReason)
	s.Patch(object, "cp1", func() { object.Spec.Power = infrav1.PowerOn })
	s.Ready("cp1", infrav1.RunningReason)

	maintenance, _ := node.Maintenance()
	s.Expect(maintenance).To(BeFalse(), "the disk has kept the config")
}

// A machine of metal boots from a medium, gets its config through the Talos API, installs what that names, and reboots.
func TestMaintenanceFirst(t *testing.T) {
	s := suite.New(t)
	t.Parallel()

	s.Create(builder.Cluster(scenario.Cluster).Light(), builder.ControlPlaneMachine(scenario.Cluster, "cp1").Sim(infrav1.SimMachineSpec{FirstBoot: infrav1.FirstBootMaintenance, Disk: infrav1.DiskBlank}))
	s.Ready("cp1", infrav1.RunningReason)

	node := s.Node("cp1")
	s.Eventually(func() bool { on, _ := node.Maintenance(); return on || node.Boots() < 2 }).Should(BeFalse())
	s.ExactConfigs(s.Machines(1))
	s.Expect(node.CallCount("ApplyConfiguration")).To(Equal(1))
}

// A node that refuses its config is seen in the Machine; what it says of the config is not.
func TestRefusedConfig(t *testing.T) {
	s := suite.New(t)
	t.Parallel()

	given := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "given"}, StringData: map[string]string{"value": "kind: NotTalos"}}
	s.Create(builder.These{given}, builder.Cluster(scenario.Cluster).Light(), builder.Machine(scenario.Cluster, "given").Data("given"))

	object := s.Ready("given", infrav1.ConfigRefusedReason)
	s.Expect(conditions.Get(object, infrav1.ReadyCondition).Message).To(Equal("the node stays in maintenance mode: it refuses the machine config in Secret given"))
}

// A template is what machines were made from. The topology controller asks what a change would come to, and may.
func TestTemplatesDoNotChange(t *testing.T) {
	s := suite.New(t)
	t.Parallel()

	s.Create(builder.These{builder.Sim{}.Template("workers")})

	object := &infrav1.SimMachineTemplate{}
	change := func(annotations map[string]string, options ...client.PatchOption) error {
		if err := s.Client.Get(s.Ctx, s.Key("workers"), object); err != nil {
			return err
		}

		before := object.DeepCopy()
		object.Annotations = annotations
		object.Spec.Template.Spec.Platform = infrav1.PlatformMetal

		return s.Client.Patch(s.Ctx, object, client.MergeFrom(before), options...)
	}

	asking := map[string]string{clusterv1.TopologyDryRunAnnotation: ""}

	// The API server needs a moment until it heeds a policy.
	s.Eventually(func() error { return change(nil, client.DryRunAll) }).Should(MatchError(ContainSubstring("a template cannot be changed")))
	s.Expect(apierrors.IsInvalid(change(nil))).To(BeTrue())
	s.Expect(apierrors.IsInvalid(change(asking))).To(BeTrue(), "the annotation alone is no dry run")
	s.Expect(change(asking, client.DryRunAll)).To(Succeed())
}

// A provider that is restarted finds its machines as they were: they do not notice.
func TestProviderRestarts(t *testing.T) {
	s := suite.New(t)

	s.Create(builder.Cluster(scenario.Cluster).Light(), builder.ControlPlaneMachine(scenario.Cluster, "cp1"))
	before := s.Ready("cp1", infrav1.RunningReason)
	s.Step("bootstrap", func() {
		s.Bootstrap(s.Machines(1))
		s.Voters(s.Machines(1), 1)
	})

	node := s.Node("cp1")
	boot := node.BootID()

	s.Step("restart the provider", func() {
		s.Expect(s.RestartInfrastructure(s.Ctx)).To(Succeed())

		// It works on: what is changed now comes about.
		object := &infrav1.SimMachine{}
		s.Patch(object, "cp1", func() { object.Spec.Faults.LeaveFails = "no" })
		s.Eventually(func() string { return node.Faults().LeaveFails }).Should(Equal("no"))

		after := s.Ready("cp1", infrav1.RunningReason)
		s.Expect(after.Spec.ProviderID).To(Equal(before.Spec.ProviderID))
		s.Expect(after.Status.Addresses).To(Equal(before.Status.Addresses))
		s.Expect(s.Node("cp1")).To(BeIdenticalTo(node))
		s.Expect(node.BootID()).To(Equal(boot))
		s.Voters(s.Machines(1), 1)
	})
	s.Expect(s.Watch.Most()).To(BeZero(), "no node was disturbed")
	s.DeleteCluster()
}

// A machine that is gone is not made anew: whoever counts on its etcd member or its volumes must be told.
func TestLostMachine(t *testing.T) {
	s := suite.New(t)
	t.Parallel()

	s.Create(builder.Cluster(scenario.Cluster).Light(), builder.ControlPlaneMachine(scenario.Cluster, "cp1"))

	before := s.Ready("cp1", infrav1.RunningReason)
	old := s.Node("cp1")

	cluster := &infrav1.SimCluster{}
	s.Expect(s.Client.Get(s.Ctx, s.Key(scenario.Cluster), cluster)).To(Succeed())

	// As when the platform has lost all that it had of the cluster.
	s.Expect(s.Farm.CloseCluster(s.Key(scenario.Cluster))).To(Succeed())

	lost := s.Ready("cp1", infrav1.MachineLostReason)
	s.Expect(lost.Spec.ProviderID).To(Equal(before.Spec.ProviderID))
	s.Expect(old.On()).To(BeFalse())

	// The Machine goes, and one of the same name comes: another machine, which has never run.
	s.Delete(&clusterv1.Machine{}, "cp1")
	s.Gone(&infrav1.SimMachine{}, "cp1")
	s.Create(builder.ControlPlaneMachine(scenario.Cluster, "cp1"))

	after := s.Ready("cp1", infrav1.RunningReason)
	s.Expect(after.Spec.ProviderID).NotTo(Equal(before.Spec.ProviderID))

	// The endpoint is where it was, once the SimCluster is looked at again.
	s.Patch(cluster, scenario.Cluster, func() { cluster.Labels = map[string]string{"look": "again"} })
	s.Eventually(func(g Gomega) {
		again := &infrav1.SimCluster{}
		g.Expect(s.Client.Get(s.Ctx, s.Key(scenario.Cluster), again)).To(Succeed())
		g.Expect(again.Spec.ControlPlaneEndpoint).To(Equal(cluster.Spec.ControlPlaneEndpoint))
		g.Expect(conditions.IsTrue(again, infrav1.ReadyCondition)).To(BeTrue(), scenario.Describe(again))
	}).Should(Succeed())

	s.Bootstrap(s.Machines(1))
	s.DeleteCluster()
}

// What is deleted goes, whatever has gone before it.
func TestDeletionFromAnyState(t *testing.T) {
	s := suite.New(t)
	t.Parallel()

	// Nobody has taken it over.
	s.Create(builder.These{builder.Sim{}.Cluster("alone")})
	s.Delete(&infrav1.SimCluster{}, "alone")

	// The Cluster is gone without it, as when somebody has taken its finalizer away.
	s.Create(builder.Cluster(scenario.Cluster).Light(), builder.ControlPlaneMachine(scenario.Cluster, "cp1"))
	s.Ready("cp1", infrav1.RunningReason)

	object := &infrav1.SimCluster{}
	s.Expect(s.Client.Get(s.Ctx, s.Key(scenario.Cluster), object)).To(Succeed())

	node, endpoint := s.Node("cp1"), object.Spec.ControlPlaneEndpoint

	// The hook keeps the Machine, and with it what core deletes after the last Machine: the SimCluster.
	machine := &clusterv1.Machine{}
	s.Patch(machine, "cp1", func() {
		metav1.SetMetaDataAnnotation(&machine.ObjectMeta, clusterv1.PreTerminateDeleteHookAnnotationPrefix+"/test", "kept")
	})

	cluster := &clusterv1.Cluster{}
	s.Expect(s.Client.Get(s.Ctx, s.Key(scenario.Cluster), cluster)).To(Succeed())
	s.Expect(s.Client.Delete(s.Ctx, cluster, client.PropagationPolicy("Orphan"))).To(Succeed())
	s.Eventually(func(g Gomega) {
		current := &clusterv1.Cluster{}
		err := s.Client.Get(s.Ctx, s.Key(scenario.Cluster), current)
		g.Expect(client.IgnoreNotFound(err)).To(Succeed())

		if err == nil {
			before := current.DeepCopy()
			current.Finalizers = nil
			g.Expect(client.IgnoreNotFound(s.Client.Patch(s.Ctx, current, client.MergeFrom(before)))).To(Succeed())
		}

		g.Expect(err).To(HaveOccurred())
	}).Should(Succeed())

	s.Expect(s.Client.Get(s.Ctx, s.Key(scenario.Cluster), object)).To(Succeed(), "it is still there")

	// The machine may stand in the way of its cluster, and goes first.
	s.Eventually(func(g Gomega) {
		err := s.Client.Get(s.Ctx, s.Key("cp1"), machine)
		g.Expect(client.IgnoreNotFound(err)).To(Succeed())

		if err == nil {
			before := machine.DeepCopy()
			machine.Finalizers = nil
			g.Expect(client.IgnoreNotFound(s.Client.Patch(s.Ctx, machine, client.MergeFrom(before)))).To(Succeed())
			g.Expect(client.IgnoreNotFound(s.Client.Delete(s.Ctx, machine))).To(Succeed())
		}

		g.Expect(err).To(HaveOccurred())
	}).Should(Succeed())

	simulated := &infrav1.SimMachine{}
	simulated.Namespace, simulated.Name = s.Namespace, "cp1"
	s.Expect(client.IgnoreNotFound(s.Client.Delete(s.Ctx, simulated))).To(Succeed())
	s.Gone(simulated, "cp1")
	s.Expect(node.On()).To(BeFalse())

	s.Expect(client.IgnoreNotFound(s.Client.Delete(s.Ctx, object))).To(Succeed())
	s.Gone(&infrav1.SimCluster{}, scenario.Cluster)

	// The load balancer has gone with it: another may have its address.
	s.Create(builder.Cluster("next").On(builder.Sim{Fidelity: infrav1.FidelityLight, Endpoint: endpoint}))
	s.Eventually(func(g Gomega) {
		next := &infrav1.SimCluster{}
		g.Expect(s.Client.Get(s.Ctx, s.Key("next"), next)).To(Succeed())
		g.Expect(conditions.IsTrue(next, infrav1.ReadyCondition)).To(BeTrue(), scenario.Describe(next))
	}).Should(Succeed())
}
