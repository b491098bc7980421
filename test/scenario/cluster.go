// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	. "github.com/onsi/gomega"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/kubeconfig"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
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
			g.Expect(s.VotersOf(g, machine)).To(Equal(count), "as %s has it", machine.Name)
		}
	}).Should(Succeed())
}

// VotersOf is how many voting members etcd has, as a control-plane node has it.
func (s *Scenario) VotersOf(g Gomega, machine clusterv1.Machine) int {
	c, err := stage.Talos(s.Ctx, s.Client, s.Key(Cluster), Address(machine))
	g.Expect(err).NotTo(HaveOccurred())

	response, err := c.EtcdMemberList(s.Ctx, &machineapi.EtcdMemberListRequest{})
	g.Expect(c.Close()).To(Succeed())
	g.Expect(err).NotTo(HaveOccurred(), machine.Name)

	voters := 0

	for _, member := range response.GetMessages()[0].GetMembers() {
		if !member.GetIsLearner() {
			voters++
		}
	}

	return voters
}

// NodesAreReady waits until kubectl, with the cluster's kubeconfig, shows so many Nodes, all of them ready but those that are named, which must
// not be.
func (s *Scenario) NodesAreReady(count int, but ...string) {
	s.t.Helper()

	content, err := kubeconfig.FromSecret(s.Ctx, s.Client, s.Key(Cluster))
	s.Expect(err).NotTo(HaveOccurred())

	file := filepath.Join(s.t.TempDir(), "kubeconfig")
	s.Expect(os.WriteFile(file, content, 0o600)).To(Succeed())

	kubectl, err := tools.Path(s.Ctx, tools.Kubectl)
	s.Expect(err).NotTo(HaveOccurred())

	s.Eventually(func(g Gomega) {
		var output, faults bytes.Buffer

		// No table: the Kubernetes of machines in memory makes none.
		command := exec.CommandContext(s.Ctx, kubectl, "--kubeconfig", file, "get", "nodes", "--output", "json")
		command.Stdout, command.Stderr = &output, &faults
		g.Expect(command.Run()).To(Succeed(), faults.String())

		nodes := &corev1.NodeList{}
		g.Expect(json.Unmarshal(output.Bytes(), nodes)).To(Succeed())
		g.Expect(nodes.Items).To(HaveLen(count))

		unready := slices.Clone(but)

		for _, node := range nodes.Items {
			want := true
			if at := slices.Index(unready, node.Name); at >= 0 {
				unready, want = slices.Delete(unready, at, at+1), false
			}

			g.Expect(ready(node)).To(Equal(want), "Node %s is ready: %v", node.Name, node.Status.Conditions)
			g.Expect(node.Spec.Unschedulable).To(BeFalse(), "Node %s is cordoned", node.Name)
			g.Expect(node.Status.NodeInfo.KubeletVersion).To(Equal(builder.KubernetesVersion), node.Name)
		}

		g.Expect(unready).To(BeEmpty(), "they have no Node")
	}).Should(Succeed())
}

func ready(node corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// DeleteCluster deletes the Cluster, and waits until nothing is left of it.
func (s *Scenario) DeleteCluster() {
	s.t.Helper()
	s.Expect(s.Watch.Check(s.Ctx)).To(Succeed())

	// Its machines go in any order.
	defer s.Watch.Pause(invariants.Quorum)()
	defer s.Watch.Pause(invariants.Disturbances)()

	s.Delete(&clusterv1.Cluster{}, Cluster)

	for _, list := range []client.ObjectList{
		&controlplanev1.TalosControlPlaneList{}, &clusterv1.MachineList{}, &infrav1.SimMachineList{}, &infrav1.SimClusterList{},
	} {
		s.Expect(s.Client.List(s.Ctx, list, client.InNamespace(s.Namespace))).To(Succeed())
		s.Expect(list).To(HaveField("Items", BeEmpty()))
	}

	s.Expect(s.Stage.Machines(s.Key(Cluster))).To(BeEmpty())
}
