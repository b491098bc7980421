// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
	"github.com/maesh-dev/ichor/test/infrastructure/machines"
	"github.com/maesh-dev/ichor/test/invariants"
	play "github.com/maesh-dev/ichor/test/scenario"
	"github.com/maesh-dev/ichor/test/stage"
)

// scenario is one of the suite: a namespace with a Cluster c and its control plane cp, over which the invariants are watched.
type scenario struct {
	*play.Scenario

	t         *testing.T
	ctx       context.Context //nolint:containedctx // A scenario is a test's, and so is its context.
	namespace string
	begin     time.Time
}

func newScenario(t *testing.T) *scenario {
	t.Helper()

	s := &scenario{Scenario: suite.New(t), t: t, ctx: t.Context(), begin: time.Now()}
	s.namespace = s.Namespace
	s.SetDefaultEventuallyTimeout(patience)
	s.SetDefaultEventuallyPollingInterval(250 * time.Millisecond)

	t.Cleanup(func() {
		if t.Failed() {
			s.explain()
		}
	})

	return s
}

func (s *scenario) key(name string) client.ObjectKey { return s.Key(name) }

// create creates the objects of a YAML text in the scenario's namespace.
func (s *scenario) create(text string) {
	s.t.Helper()
	s.CreateYAML(text)
}

// change reads the control plane, changes it and writes the difference.
func (s *scenario) change(change func(*controlplanev1.TalosControlPlane)) {
	s.t.Helper()

	tcp := s.controlPlane()
	before := tcp.DeepCopy()
	change(tcp)
	s.Expect(s.Client.Patch(s.ctx, tcp, client.MergeFrom(before))).To(Succeed())
}

func (s *scenario) controlPlane() *controlplanev1.TalosControlPlane {
	tcp := &controlplanev1.TalosControlPlane{}
	s.Expect(s.Client.Get(s.ctx, s.key("cp"), tcp)).To(Succeed())

	return tcp
}

// machineList are the control-plane Machines, the oldest first.
func (s *scenario) machineList() []clusterv1.Machine {
	list := &clusterv1.MachineList{}
	s.Expect(s.Client.List(s.ctx, list, client.InNamespace(s.namespace))).To(Succeed())

	items := slices.DeleteFunc(list.Items, func(m clusterv1.Machine) bool { return !util.IsControlPlaneMachine(&m) })
	slices.SortFunc(items, func(a, b clusterv1.Machine) int {
		if order := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); order != 0 {
			return order
		}

		return strings.Compare(a.Name, b.Name)
	})

	return items
}

func names(list []clusterv1.Machine) []string {
	out := make([]string, len(list))
	for i := range list {
		out[i] = list[i].Name
	}

	return out
}

// settled waits until the control plane has so many machines, all of them ready and as the spec wants them, and there is nothing to do; and
// checks what must always hold. It returns the Machines.
func (s *scenario) settled(replicas int) []clusterv1.Machine {
	s.t.Helper()

	s.Eventually(func(g Gomega) {
		tcp := &controlplanev1.TalosControlPlane{}
		g.Expect(s.Client.Get(s.ctx, s.key("cp"), tcp)).To(Succeed())

		plan := fmt.Sprintf("%s %s: %s%s", tcp.Status.Plan.Action, tcp.Status.Plan.Reason, tcp.Status.Plan.Message, describe(tcp))
		g.Expect(tcp.Status.ObservedGeneration).To(Equal(tcp.Generation), plan)
		g.Expect(tcp.Status.Plan.Action).To(Equal("None"), plan)

		for _, count := range []*int32{tcp.Status.Replicas, tcp.Status.ReadyReplicas, tcp.Status.AvailableReplicas, tcp.Status.UpToDateReplicas} {
			g.Expect(ptr.Deref(count, -1)).To(BeEquivalentTo(replicas), plan)
		}

		for _, condition := range []string{
			controlplanev1.AvailableCondition, controlplanev1.InitializedCondition, controlplanev1.CertificatesAvailableCondition,
			controlplanev1.EtcdClusterHealthyCondition, controlplanev1.ControlPlaneComponentsHealthyCondition,
			controlplanev1.MachinesReadyCondition, controlplanev1.MachinesUpToDateCondition,
		} {
			g.Expect(conditions.IsTrue(tcp, condition)).To(BeTrue(), "%s: %s", condition, plan)
		}

		for _, condition := range []string{
			controlplanev1.RollingOutCondition, controlplanev1.ScalingUpCondition, controlplanev1.ScalingDownCondition,
			controlplanev1.RemediatingCondition, controlplanev1.DeletingCondition, controlplanev1.PausedCondition,
		} {
			g.Expect(conditions.IsFalse(tcp, condition)).To(BeTrue(), "%s: %s", condition, plan)
		}

		g.Expect(tcp.Status.Versions).To(ConsistOf(clusterv1.StatusVersion{Version: tcp.Spec.Version, Replicas: int32(replicas)}), plan)
	}).Should(Succeed())

	list := s.machineList()
	s.Expect(list).To(HaveLen(replicas))
	s.check(list)
	s.t.Logf("%d machines, settled after %s", replicas, time.Since(s.begin).Round(100*time.Millisecond))

	return list
}

// check checks what must hold at any time: every Machine has the hook and what belongs to it, etcd has a member for each machine that is up,
// and was bootstrapped once.
func (s *scenario) check(list []clusterv1.Machine) {
	s.t.Helper()

	for i := range list {
		s.Expect(list[i].Annotations).To(HaveKey(controlplanev1.PreTerminateHookAnnotation), list[i].Name)
		s.Expect(metav1.GetControllerOf(&list[i]).Kind).To(Equal("TalosControlPlane"))
		s.Expect(list[i].Spec.Bootstrap.ConfigRef.Name).To(Equal(list[i].Name))
		s.Expect(list[i].Spec.InfrastructureRef.Name).To(Equal(list[i].Name))
	}

	s.Eventually(func(g Gomega) { g.Expect(s.voters(g, list)).To(Equal(len(list))) }).Should(Succeed())
	s.countBootstraps()
	s.Expect(s.Watch.Check(s.ctx)).To(Succeed())
}

// countBootstraps checks that one etcd cluster was made, by all machines that there have been.
func (s *scenario) countBootstraps() {
	s.t.Helper()
	s.Expect(s.bootstraps()).To(Equal(1), "how many etcd clusters were made")
}

// bootstraps is how many etcd clusters were made.
func (s *scenario) bootstraps() int { return s.World().Bootstraps() }

// voters counts the voting members of etcd, as each machine has it.
func (s *scenario) voters(g Gomega, list []clusterv1.Machine) int {
	counts := map[int]bool{}
	last := 0

	for i := range list {
		c, err := stage.Talos(s.ctx, s.Client, s.key("c"), address(&list[i]))
		g.Expect(err).NotTo(HaveOccurred())

		response, err := c.EtcdMemberList(s.ctx, &machineapi.EtcdMemberListRequest{})
		g.Expect(c.Close()).To(Succeed())
		g.Expect(err).NotTo(HaveOccurred())

		last = 0

		for _, member := range response.GetMessages()[0].GetMembers() {
			if !member.GetIsLearner() {
				last++
			}
		}

		counts[last] = true
	}

	g.Expect(counts).To(HaveLen(1), "the nodes disagree")

	return last
}

// leader is the Machine that leads etcd.
func (s *scenario) leader(list []clusterv1.Machine) string {
	s.t.Helper()

	name := ""

	s.Eventually(func(g Gomega) {
		name = ""

		for i := range list {
			c, err := stage.Talos(s.ctx, s.Client, s.key("c"), address(&list[i]))
			g.Expect(err).NotTo(HaveOccurred())

			response, err := c.EtcdStatus(s.ctx)
			g.Expect(c.Close()).To(Succeed())
			g.Expect(err).NotTo(HaveOccurred())

			if status := response.GetMessages()[0].GetMemberStatus(); status.GetLeader() == status.GetMemberId() {
				name = list[i].Name
			}
		}

		g.Expect(name).NotTo(BeEmpty(), "nobody leads etcd")
	}).Should(Succeed())

	return name
}

// simulated is the simulated machine of a Machine.
func (s *scenario) simulated(name string) *machines.Machine {
	s.t.Helper()

	machine, err := s.Machine(s.ctx, s.key(name))
	s.Expect(err).NotTo(HaveOccurred())

	return machine
}

// deleted waits until nothing is left of the cluster.
func (s *scenario) deleted() {
	s.t.Helper()

	cluster := &clusterv1.Cluster{}

	s.Eventually(func(g Gomega) {
		err := s.Client.Get(s.ctx, s.key("c"), cluster)
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v %s", err, describe(cluster))
	}).Should(Succeed())

	for _, list := range []client.ObjectList{
		&controlplanev1.TalosControlPlaneList{}, &clusterv1.MachineList{}, &infrav1.SimMachineList{}, &infrav1.SimClusterList{},
	} {
		s.Expect(s.Client.List(s.ctx, list, client.InNamespace(s.namespace))).To(Succeed())
		s.Expect(list).To(HaveField("Items", BeEmpty()))
	}

	s.Expect(s.Stage.Machines(s.key("c"))).To(BeEmpty())
}

// deleteCluster deletes the Cluster and waits until nothing is left of it.
func (s *scenario) deleteCluster() {
	s.t.Helper()

	s.Expect(s.Watch.Check(s.ctx)).To(Succeed())

	// Its machines go in any order.
	defer s.Watch.Pause(invariants.Quorum)()
	defer s.Watch.Pause(invariants.Disturbances)()

	cluster := &clusterv1.Cluster{}
	cluster.Namespace, cluster.Name = s.namespace, "c"
	s.Expect(s.Client.Delete(s.ctx, cluster)).To(Succeed())
	s.deleted()
	s.t.Logf("deleted after %s", time.Since(s.begin).Round(100*time.Millisecond))
}

// tearOutCluster has the Cluster gone without what Cluster API does before, which it does not do while the Cluster is paused, and returns
// what it was.
func (s *scenario) tearOutCluster() *clusterv1.Cluster {
	s.t.Helper()

	cluster := &clusterv1.Cluster{}
	s.Expect(s.Client.Get(s.ctx, s.key("c"), cluster)).To(Succeed())

	now := cluster.DeepCopy()
	now.Spec.Paused = new(true)
	s.Expect(s.Client.Patch(s.ctx, now, client.MergeFrom(cluster))).To(Succeed())
	s.Expect(s.Client.Delete(s.ctx, now)).To(Succeed())
	s.Eventually(func() bool {
		err := s.Client.Patch(s.ctx, now, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))

		return apierrors.IsNotFound(err)
	}).Should(BeTrue())

	return cluster
}

// deleteMachine deletes a Machine as a user does, and waits until it is gone.
func (s *scenario) deleteMachine(name string) {
	s.t.Helper()

	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
	s.Expect(s.Client.Delete(s.ctx, machine)).To(Succeed())
	s.Eventually(func() bool {
		return apierrors.IsNotFound(s.Client.Get(s.ctx, s.key(name), machine))
	}).Should(BeTrue(), "Machine %s is still there", name)
}

// explain prints the state of everything, after a failure.
func (s *scenario) explain() {
	ctx := context.WithoutCancel(s.ctx)

	tcp := &controlplanev1.TalosControlPlane{}
	if err := s.Client.Get(ctx, s.key("cp"), tcp); err == nil {
		s.t.Logf("plan: %+v%s", tcp.Status.Plan, describe(tcp))
	}

	list := &clusterv1.MachineList{}
	if err := s.Client.List(ctx, list, client.InNamespace(s.namespace)); err == nil {
		for i := range list.Items {
			s.t.Logf("Machine %s %v%s", list.Items[i].Name, list.Items[i].Annotations, describe(&list.Items[i]))
		}
	}
}

func describe(object conditions.Getter) string {
	text := ""
	for _, condition := range object.GetConditions() {
		text += fmt.Sprintf("\n%s=%s %s: %s", condition.Type, condition.Status, condition.Reason, condition.Message)
	}

	return text
}

// address is a machine's.
func address(machine *clusterv1.Machine) string {
	for _, each := range machine.Status.Addresses {
		if each.Type == clusterv1.MachineInternalIP {
			return each.Address
		}
	}

	return ""
}

func newTalosConfig() *bootstrapv1.TalosConfig { return &bootstrapv1.TalosConfig{} }

func newSimMachine() *infrav1.SimMachine { return &infrav1.SimMachine{} }

// clusterYAML is a Cluster whose control plane is a TalosControlPlane of so many machines, which are replaced when they are to be changed.
func clusterYAML(fidelity string, replicas int) string {
	return clusterWith("{fidelity: "+fidelity+"}", "{}", replicas)
}

// clusterWith is such a Cluster with the specs of a SimCluster and of SimMachines. Without the latter there is no template.
func clusterWith(cluster, machine string, replicas int) string {
	template := ""
	if machine != "" {
		template = "---" + templateYAML("cp", machine)
	}

	return fmt.Sprintf(`
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: c}
spec:
  clusterNetwork:
    pods: {cidrBlocks: [10.244.0.0/16]}
    services: {cidrBlocks: [10.96.0.0/12]}
    serviceDomain: cluster.local
  infrastructureRef: {apiGroup: infrastructure.ichor.maesh.dev, kind: SimCluster, name: c}
  controlPlaneRef: {apiGroup: controlplane.ichor.maesh.dev, kind: TalosControlPlane, name: cp}
---
apiVersion: infrastructure.ichor.maesh.dev/v1alpha1
kind: SimCluster
metadata: {name: c}
spec: %[1]s
---
apiVersion: bootstrap.ichor.maesh.dev/v1alpha1
kind: TalosClusterConfig
metadata: {name: c}
spec:
  clusterName: c
  talos: {version: v1.14.1}
---
apiVersion: controlplane.ichor.maesh.dev/v1alpha1
kind: TalosControlPlane
metadata: {name: cp}
spec:
  replicas: %[2]d
  version: v1.36.1
  machineTemplate:
    spec:
      infrastructureRef: {apiGroup: infrastructure.ichor.maesh.dev, kind: SimMachineTemplate, name: cp}
  talosConfigSpec:
    hostname: {source: MachineName}
  rollout:
    strategy: {type: RollingUpdate}
`, cluster, replicas) + template
}

func templateYAML(name, machine string) string {
	return fmt.Sprintf(`
apiVersion: infrastructure.ichor.maesh.dev/v1alpha1
kind: SimMachineTemplate
metadata: {name: %s}
spec: {template: {spec: %s}}
`, name, machine)
}

// healthCheckYAML has a machine replaced whose node has not been ready for a few seconds.
const healthCheckYAML = `
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineHealthCheck
metadata: {name: cp}
spec:
  clusterName: c
  selector: {matchLabels: {cluster.x-k8s.io/control-plane: ""}}
  checks:
    unhealthyNodeConditions:
    - {type: Ready, status: Unknown, timeoutSeconds: 1}
    - {type: Ready, status: "False", timeoutSeconds: 1}
`
