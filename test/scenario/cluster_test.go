// SPDX-License-Identifier: Apache-2.0

package scenario_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/kubeconfig"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
	"github.com/maesh-dev/ichor/test/stage"
	"github.com/maesh-dev/ichor/test/tools"
)

// TestFullCluster brings up three control-plane nodes and two workers with real etcd members and API servers, from the objects that a
// user writes.
func TestFullCluster(t *testing.T) {
	s := newScenario(t)
	t.Parallel()

	begin := time.Now()

	s.cluster("Full")
	s.Eventually(func() error { return stage.CreateKubeconfig(s.ctx, s.Client, s.key("c")) }).Should(Succeed())

	machines := s.machines(5)
	s.exactConfigs(machines)
	s.bootstrap(machines)
	s.Eventually(func(g Gomega) { g.Expect(s.voters(g, machines)).To(Equal(3)) }).Should(Succeed())
	t.Logf("etcd has three voting members after %s", time.Since(begin).Round(100*time.Millisecond))

	s.nodesAreReady(5)
	t.Logf("five Nodes are ready after %s", time.Since(begin).Round(100*time.Millisecond))

	s.Eventually(func(g Gomega) {
		for _, machine := range s.machines(5) {
			g.Expect(machine.Status.NodeRef.Name).To(Equal(machine.Name), describe(&machine))
			g.Expect(machine.Status.GetTypedPhase()).To(Equal(clusterv1.MachinePhaseRunning), describe(&machine))
			g.Expect(conditions.IsTrue(&machine, clusterv1.MachineAvailableCondition)).To(BeTrue(), "%s: %s", machine.Name, describe(&machine))
		}
	}).Should(Succeed())
	t.Logf("five Machines are available after %s", time.Since(begin).Round(100*time.Millisecond))

	// The one that answered first may go: the endpoint leads to the others.
	first, err := s.Machine(s.ctx, s.key("cp1"))
	s.Expect(err).NotTo(HaveOccurred())
	first.Node.PowerOff()
	s.ready("cp1", infrav1.PoweredOffReason)

	kubernetes, err := stage.Kubernetes(s.ctx, s.Client, s.key("c"))
	s.Expect(err).NotTo(HaveOccurred())
	s.Eventually(func() error { return kubernetes.List(s.ctx, &corev1.NodeList{}) }).Should(Succeed())

	s.deleteCluster()
}

// TestLightCluster brings up five nodes without Kubernetes.
func TestLightCluster(t *testing.T) {
	s := newScenario(t)
	t.Parallel()

	begin := time.Now()

	s.cluster("Light")

	machines := s.machines(5)
	s.exactConfigs(machines)
	t.Logf("five Machines are provisioned after %s", time.Since(begin).Round(10*time.Millisecond))

	s.bootstrap(machines)
	s.Eventually(func(g Gomega) { g.Expect(s.voters(g, machines)).To(Equal(3)) }).Should(Succeed())
	t.Logf("etcd has three voting members after %s", time.Since(begin).Round(10*time.Millisecond))

	s.deleteCluster()
}

// cluster creates a Cluster with three control-plane Machines and two workers.
func (s *scenario) cluster(fidelity string) {
	s.t.Helper()
	s.create(clusterYAML(fidelity))

	for _, name := range []string{"cp1", "cp2", "cp3"} {
		s.create(controlPlaneYAML(name, "{}"))
	}

	s.create(workersYAML)
}

// exactConfigs checks that each node has taken the config of its data Secret, byte for byte.
func (s *scenario) exactConfigs(machines []clusterv1.Machine) {
	s.t.Helper()

	for _, machine := range machines {
		secret := &corev1.Secret{}
		s.Expect(s.Client.Get(s.ctx, s.key(*machine.Spec.Bootstrap.DataSecretName), secret)).To(Succeed())

		simulated, err := s.Machine(s.ctx, s.key(machine.Spec.InfrastructureRef.Name))
		s.Expect(err).NotTo(HaveOccurred())

		maintenance, refusal := simulated.Node.Maintenance()
		s.Expect(refusal).NotTo(HaveOccurred(), machine.Name)
		s.Expect(maintenance).To(BeFalse(), machine.Name)
		// A failure must not print the config.
		s.Expect(string(simulated.Node.Config()) == string(secret.Data["value"])).To(BeTrue(), "%s runs with another config than that of its Secret", machine.Name)
	}
}

// bootstrap calls Bootstrap on the first control-plane node, as an administrator does with talosctl.
func (s *scenario) bootstrap(machines []clusterv1.Machine) {
	s.t.Helper()

	c, err := stage.Talos(s.ctx, s.Client, s.key("c"), address(controlPlanes(machines)[0]))
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(c.Bootstrap(s.ctx, &machineapi.BootstrapRequest{})).To(Succeed())
	s.Expect(c.Close()).To(Succeed())
}

func controlPlanes(machines []clusterv1.Machine) []clusterv1.Machine {
	return slices.DeleteFunc(slices.Clone(machines), func(machine clusterv1.Machine) bool { return !util.IsControlPlaneMachine(&machine) })
}

// voters counts the voting members of etcd, as each control-plane node has it.
func (s *scenario) voters(g Gomega, machines []clusterv1.Machine) int {
	counts := map[int]bool{}
	last := 0

	for _, machine := range controlPlanes(machines) {
		c, err := stage.Talos(s.ctx, s.Client, s.key("c"), address(machine))
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

// nodesAreReady waits until kubectl, with the cluster's kubeconfig, shows so many Nodes that are ready.
func (s *scenario) nodesAreReady(count int) {
	s.t.Helper()

	content, err := kubeconfig.FromSecret(s.ctx, s.Client, s.key("c"))
	s.Expect(err).NotTo(HaveOccurred())

	file := filepath.Join(s.t.TempDir(), "kubeconfig")
	s.Expect(os.WriteFile(file, content, 0o600)).To(Succeed())

	kubectl, err := tools.Path(s.ctx, tools.Kubectl)
	s.Expect(err).NotTo(HaveOccurred())

	s.Eventually(func(g Gomega) {
		output, err := exec.CommandContext(s.ctx, kubectl, "--kubeconfig", file, "get", "nodes", "--no-headers").CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), string(output))

		lines := strings.Split(strings.TrimSpace(string(output)), "\n")
		g.Expect(lines).To(HaveLen(count))

		for _, line := range lines {
			g.Expect(strings.Fields(line)).To(HaveExactElements(Not(BeEmpty()), Equal("Ready"), Not(BeEmpty()), Not(BeEmpty()), Equal("v1.36.1")), line)
		}
	}).Should(Succeed())
}

// deleteCluster deletes the Cluster, and waits until nothing is left of it.
func (s *scenario) deleteCluster() {
	s.t.Helper()

	cluster := &clusterv1.Cluster{}
	cluster.Namespace, cluster.Name = s.namespace, "c"
	s.Expect(s.Client.Delete(s.ctx, cluster)).To(Succeed())

	s.Eventually(func(g Gomega) {
		err := s.Client.Get(s.ctx, client.ObjectKeyFromObject(cluster), cluster)
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v %s", err, describe(cluster))
	}).Should(Succeed())

	for _, list := range []client.ObjectList{&clusterv1.MachineList{}, &infrav1.SimMachineList{}, &infrav1.SimClusterList{}} {
		s.Expect(s.Client.List(s.ctx, list, client.InNamespace(s.namespace))).To(Succeed())
		s.Expect(list).To(HaveField("Items", BeEmpty()))
	}

	s.Expect(s.Machines(s.key("c"))).To(BeEmpty())
}
