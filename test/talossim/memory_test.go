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
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/maesh-dev/ichor/test/talossim"
)

const (
	// memoryGrace is longer than two periods of a kubelet, so that a heartbeat may be late, and short for a test.
	memoryGrace = 25 * time.Second

	// memoryPatience bounds each wait for something that must happen, and memoryTimeout the whole.
	memoryPatience = 3 * time.Minute
	memoryTimeout  = 8 * time.Minute
)

// A light cluster with a Kubernetes in memory has Nodes that come, are lost with the power of their machines, and an API that is there for
// those whom the cluster's authority vouches for while etcd has a quorum.
func TestKubernetesInMemory(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), memoryTimeout)
	defer cancel()
	world := talossim.ForTest(t, talossim.Options{Kubernetes: true, NodeMonitorGrace: memoryGrace})
	s := &subject{WithT: NewWithT(t), ctx: ctx, world: world}
	endpoint, err := world.NewEndpoint("6443")
	s.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = endpoint.Close() })
	s.cluster = clusterOf(t, "v1.14").At(endpoint.URL())

	for i := range 3 {
		s.nodes = append(s.nodes, s.start(talossim.NodeOptions{Name: fmt.Sprintf("cp%d", i+1)}, s.config(machinetype.TypeControlPlane)))
	}
	s.start(talossim.NodeOptions{Name: "w1", ProviderID: "sim:///w1"}, s.config(machinetype.TypeWorker, "apiVersion: v1alpha1\nkind: KubeNodeConfig\nlabels: {example.com/disk: fast}\n"))
	s.node = s.nodes[0]
	s.Expect(s.as(role.Admin).Bootstrap(ctx, &machine.BootstrapRequest{})).To(Succeed())

	kubeconfig, err := s.as(role.Admin).Kubeconfig(ctx)
	s.Expect(err).NotTo(HaveOccurred())
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	s.Expect(err).NotTo(HaveOccurred())
	kubernetes, err := coreclient.NewForConfig(config)
	s.Expect(err).NotTo(HaveOccurred())

	status := func(g Gomega, name string) corev1.ConditionStatus {
		node, err := kubernetes.Nodes().Get(ctx, name, metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady {
				return condition.Status
			}
		}
		return ""
	}
	s.Eventually(func(g Gomega) {
		for _, n := range world.Nodes() {
			g.Expect(n.Failure()).NotTo(HaveOccurred())
			g.Expect(status(g, n.Name())).To(Equal(corev1.ConditionTrue), n.Name())
		}
	}, memoryPatience, "100ms").Should(Succeed())

	s.Eventually(func(g Gomega) {
		worker, err := kubernetes.Nodes().Get(ctx, "w1", metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(worker.Labels).To(HaveKeyWithValue("example.com/disk", "fast"))
		g.Expect(worker.Spec.ProviderID).To(Equal("sim:///w1"))
		g.Expect(worker.Status.NodeInfo.BootID).To(Equal(world.Nodes()[3].BootID()))
	}, memoryPatience, "100ms").Should(Succeed())
	s.Eventually(func(g Gomega) {
		list, err := kubernetes.Pods("kube-system").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=cp1"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(list.Items).To(ContainElement(HaveField("Name", "kube-apiserver-cp1")))
	}, memoryPatience, "100ms").Should(Succeed())

	// Whom nobody vouches for.
	stranger, err := coreclient.NewForConfig(&rest.Config{Host: config.Host, TLSClientConfig: rest.TLSClientConfig{CAData: config.CAData}})
	s.Expect(err).NotTo(HaveOccurred())
	s.Eventually(func() error {
		_, err := stranger.Nodes().List(ctx, metav1.ListOptions{})

		return err // The connection may be closed before the client has read why.
	}, memoryPatience, "100ms").Should(MatchError(ContainSubstring("certificate required")))

	// A machine without power is missed, and comes back.
	off := world.Nodes()[3]
	off.PowerOff()
	s.Eventually(status, memoryPatience, "200ms").WithArguments("w1").Should(Equal(corev1.ConditionUnknown))
	s.Expect(off.PowerOn(ctx)).To(Succeed())
	s.Eventually(status, memoryPatience, "100ms").WithArguments("w1").Should(Equal(corev1.ConditionTrue))

	// Two of three are off: etcd agrees on nothing.
	s.nodes[1].PowerOff()
	s.nodes[2].PowerOff()
	direct := rest.CopyConfig(config)
	direct.Host = "https://" + s.nodes[0].Address() + ":6443"
	first, err := coreclient.NewForConfig(direct)
	s.Expect(err).NotTo(HaveOccurred())
	_, err = first.Nodes().List(ctx, metav1.ListOptions{})
	s.Expect(err).To(MatchError(ContainSubstring("etcdserver")))
}
