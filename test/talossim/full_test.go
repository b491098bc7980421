// SPDX-License-Identifier: Apache-2.0

package talossim_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/maesh-dev/ichor/test/talossim"
)

// fullWait bounds a wait for real components, which share two cores with other tests.
const fullWait = 3 * time.Minute

// TestFullCluster brings up three control-plane nodes and two workers with real etcd members and API servers, from their
// machine configurations alone.
func TestFullCluster(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*fullWait)
	defer cancel()
	world := talossim.ForTest(t, talossim.Options{Full: true, DrainTimeout: fullWait})
	s := &subject{WithT: NewWithT(t), ctx: ctx, world: world}
	endpoint, err := world.NewEndpoint("6443")
	s.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = endpoint.Close() })
	s.cluster = clusterOf(t, "v1.14").At(endpoint.URL())

	begin := time.Now()
	controlPlane := s.config(machinetype.TypeControlPlane)
	worker := s.config(machinetype.TypeWorker, "apiVersion: v1alpha1\nkind: KubeNodeConfig\nlabels: {example.com/disk: fast}\n")
	for i := range 3 {
		s.nodes = append(s.nodes, s.start(talossim.NodeOptions{Name: fmt.Sprintf("cp%d", i+1)}, controlPlane))
	}
	for i := range 2 {
		s.start(talossim.NodeOptions{Name: fmt.Sprintf("w%d", i+1)}, worker)
	}
	s.node = s.nodes[0]
	s.Expect(s.as(role.Admin).Bootstrap(ctx, &machine.BootstrapRequest{})).To(Succeed())

	kubeconfig, err := s.as(role.Admin).Kubeconfig(ctx)
	s.Expect(err).NotTo(HaveOccurred())
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	s.Expect(err).NotTo(HaveOccurred())
	kubernetes, err := coreclient.NewForConfig(config)
	s.Expect(err).NotTo(HaveOccurred())
	readyNodes := func() map[string]corev1.Node {
		nodes := map[string]corev1.Node{}
		list, err := kubernetes.Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return nodes
		}
		for _, node := range list.Items {
			for _, condition := range node.Status.Conditions {
				if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
					nodes[node.Name] = node
				}
			}
		}
		return nodes
	}
	s.Eventually(func(g Gomega) {
		for _, n := range world.Nodes() {
			g.Expect(n.Failure()).NotTo(HaveOccurred())
		}
		g.Expect(readyNodes()).To(HaveLen(5))
	}, fullWait, "200ms").Should(Succeed())
	t.Logf("five nodes ready after %s", time.Since(begin).Round(100*time.Millisecond))

	nodes := readyNodes()
	s.Expect(nodes["cp1"].Labels).To(HaveKey("node-role.kubernetes.io/control-plane"))
	s.Expect(nodes["cp1"].Spec.Taints).To(ContainElement(HaveField("Key", "node-role.kubernetes.io/control-plane")))
	s.Expect(nodes["w1"].Labels).To(HaveKeyWithValue("example.com/disk", "fast"))
	s.Expect(nodes["w1"].Status.NodeInfo.KubeletVersion).To(Equal("v1.35.0"))
	s.Expect(nodes["w1"].Status.NodeInfo.BootID).To(Equal(world.Nodes()[3].BootID()))
	live := &liveCluster{subject: s, kubernetes: kubernetes}
	live.checkAPIServer()
	live.checkKubelet(world.Nodes()[3])
	live.checkLegacyUpgrade(world.Nodes()[4])
	s.checkRealEtcd()
	live.checkEtcdArguments(s.nodes[0])
}

// checkRealEtcd goes through what the product does with etcd, on a cluster of three.
func (s *subject) checkRealEtcd() {
	voting := func() int {
		response, err := s.as(role.Reader).EtcdMemberList(s.ctx, &machine.EtcdMemberListRequest{})
		if err != nil {
			return 0
		}
		voters := 0
		for _, member := range response.GetMessages()[0].GetMembers() {
			if !member.GetIsLearner() {
				voters++
			}
		}
		return voters
	}
	s.Eventually(voting, fullWait, "100ms").Should(Equal(3))
	s.Expect(len(snapshot(s, s.as(role.EtcdBackup)))).To(BeNumerically(">", 10000))

	for _, n := range s.nodes {
		if leader(s, n) == n.EtcdMemberID() {
			response, err := s.client(n, role.Admin).EtcdForfeitLeadership(s.ctx, &machine.EtcdForfeitLeadershipRequest{})
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(response.GetMessages()[0].GetMember()).NotTo(BeEmpty())
			break
		}
	}
	gone := s.nodes[2].EtcdMemberID()
	s.Expect(leave(s, s.nodes[2])).To(Succeed())
	s.Expect(members(s, s.node)).To(HaveLen(2))
	s.Expect(s.nodes[2].Crash(s.ctx)).To(Succeed())
	s.Eventually(voting, fullWait, "100ms").Should(Equal(3))
	s.Expect(s.nodes[2].EtcdMemberID()).NotTo(Equal(gone))

	lost := s.nodes[1].EtcdMemberID()
	s.nodes[1].PowerOff()
	// Without its leader the cluster elects another first.
	s.Eventually(func() error { return remove(s, s.node, lost) }, fullWait, "100ms").Should(Or(Succeed(), code(codes.NotFound)))
	s.Expect(members(s, s.node)).To(HaveLen(2))
}
