// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/gomega"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/kubeconfig"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/test/builder"
	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
	"github.com/maesh-dev/ichor/test/invariants"
	"github.com/maesh-dev/ichor/test/stage"
	"github.com/maesh-dev/ichor/test/tools"
)

// Bootstrap calls Bootstrap on the first control-plane node, as an administrator does with talosctl.
func (s *Scenario) Bootstrap(machines []clusterv1.Machine) {
	s.t.Helper()

	c, err := stage.Talos(s.Ctx, s.Client, s.Key(Cluster), Address(ControlPlanes(machines)[0]))
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(c.Bootstrap(s.Ctx, &machineapi.BootstrapRequest{})).To(Succeed())
	s.Expect(c.Close()).To(Succeed())
}

// WriteKubeconfig writes the Secret by which Cluster API's core manager reaches the cluster, for one without a control-plane
// provider, once its endpoint and its authority are known.
func (s *Scenario) WriteKubeconfig() {
	s.t.Helper()
	s.Eventually(func() error { return stage.CreateKubeconfig(s.Ctx, s.Client, s.Key(Cluster)) }).Should(Succeed())
}

// Voters waits until etcd has so many voting members, as each control-plane node has it.
func (s *Scenario) Voters(machines []clusterv1.Machine, count int) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		for _, machine := range ControlPlanes(machines) {
			c, err := stage.Talos(s.Ctx, s.Client, s.Key(Cluster), Address(machine))
			g.Expect(err).NotTo(HaveOccurred())

			response, err := c.EtcdMemberList(s.Ctx, &machineapi.EtcdMemberListRequest{})
			g.Expect(c.Close()).To(Succeed())
			g.Expect(err).NotTo(HaveOccurred())

			voters := 0

			for _, member := range response.GetMessages()[0].GetMembers() {
				if !member.GetIsLearner() {
					voters++
				}
			}

			g.Expect(voters).To(Equal(count), "as %s has it", machine.Name)
		}
	}).Should(Succeed())
}

// NodesAreReady waits until kubectl, with the cluster's kubeconfig, shows so many Nodes that are ready.
func (s *Scenario) NodesAreReady(count int) {
	s.t.Helper()

	content, err := kubeconfig.FromSecret(s.Ctx, s.Client, s.Key(Cluster))
	s.Expect(err).NotTo(HaveOccurred())

	file := filepath.Join(s.t.TempDir(), "kubeconfig")
	s.Expect(os.WriteFile(file, content, 0o600)).To(Succeed())

	kubectl, err := tools.Path(s.Ctx, tools.Kubectl)
	s.Expect(err).NotTo(HaveOccurred())

	s.Eventually(func(g Gomega) {
		output, err := exec.CommandContext(s.Ctx, kubectl, "--kubeconfig", file, "get", "nodes", "--no-headers").CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), string(output))

		lines := strings.Split(strings.TrimSpace(string(output)), "\n")
		g.Expect(lines).To(HaveLen(count))

		for _, line := range lines {
			g.Expect(strings.Fields(line)).To(HaveExactElements(Not(BeEmpty()), Equal("Ready"), Not(BeEmpty()), Not(BeEmpty()), Equal(builder.KubernetesVersion)), line)
		}
	}).Should(Succeed())
}

// DeleteCluster deletes the Cluster, and waits until nothing is left of it.
func (s *Scenario) DeleteCluster() {
	s.t.Helper()
	// Its machines go in any order.
	defer s.Watch.Pause(invariants.Quorum)()

	s.Delete(&clusterv1.Cluster{}, Cluster)

	for _, list := range []client.ObjectList{&clusterv1.MachineList{}, &infrav1.SimMachineList{}, &infrav1.SimClusterList{}} {
		s.Expect(s.Client.List(s.Ctx, list, client.InNamespace(s.Namespace))).To(Succeed())
		s.Expect(list).To(HaveField("Items", BeEmpty()))
	}

	s.Expect(s.Stage.Machines(s.Key(Cluster))).To(BeEmpty())
}
