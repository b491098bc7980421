// SPDX-License-Identifier: Apache-2.0

package talossim_test

import (
	"crypto/tls"
	"net"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	. "github.com/onsi/gomega"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/role"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/maesh-dev/ichor/test/talossim"
)

// liveCluster is a cluster of full fidelity, whose configurations are changed while it runs.
type liveCluster struct {
	*subject

	kubernetes *coreclient.CoreV1Client
}

func (l *liveCluster) apply(n *talossim.Node, machineType machinetype.Type, patches ...string) {
	response, err := l.client(n, role.Admin).ApplyConfiguration(l.ctx, &machine.ApplyConfigurationRequest{
		Data: l.config(machineType, patches...), Mode: machine.ApplyConfigurationRequest_NO_REBOOT,
	})
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(response.GetMessages()[0].GetMode()).To(Equal(machine.ApplyConfigurationRequest_NO_REBOOT))
}

// provenVersion is the version that a component's pod has, if the pod is ready and the node says that it should have it.
func (l *liveCluster) provenVersion(n *talossim.Node) string {
	pod, err := l.kubernetes.Pods("kube-system").Get(l.ctx, "kube-apiserver-"+n.Name(), metav1.GetOptions{})
	if err != nil {
		return ""
	}
	config, err := safe.StateGetByID[*k8s.APIServerConfig](l.ctx, l.client(n, role.Admin).COSI, k8s.FinalAPIServerConfigID)
	if err != nil || pod.Annotations["talos.dev/config-version"] != config.Metadata().Version().String() {
		return ""
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			return config.Metadata().Version().String()
		}
	}
	return ""
}

// speaksOld tells whether an API server takes a caller that knows TLS 1.2 and nothing newer.
func (l *liveCluster) speaksOld(n *talossim.Node) bool {
	config := &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12} //nolint:gosec // It asks for nothing but the version.
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: 5 * time.Second}, Config: config}
	conn, err := dialer.DialContext(l.ctx, "tcp", net.JoinHostPort(n.Address(), "6443"))
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

// checkAPIServer changes an argument of one API server: the process that runs afterwards has it, and its pod proves it.
func (l *liveCluster) checkAPIServer() {
	n := l.nodes[0]
	l.Eventually(func() string { return l.provenVersion(n) }, fullWait, "200ms").ShouldNot(BeEmpty())
	l.Eventually(func() bool { return ready(l.subject) }, fullWait, "200ms").Should(BeTrue())
	before, boot := l.provenVersion(n), n.BootID()
	l.Expect(l.speaksOld(n)).To(BeTrue())
	l.apply(n, machinetype.TypeControlPlane, "apiVersion: v1alpha1\nkind: KubeAPIServerConfig\nextraArgs: {tls-min-version: VersionTLS13}\n")
	l.Eventually(func() string { return l.provenVersion(n) }, fullWait, "200ms").ShouldNot(Or(BeEmpty(), Equal(before)))
	l.Expect(l.speaksOld(n)).To(BeFalse())
	l.Expect(n.BootID()).To(Equal(boot))
}

// checkKubelet changes a worker's kubelet and labels: the Node shows both, and what was taken away is gone.
func (l *liveCluster) checkKubelet(n *talossim.Node) {
	const label = "apiVersion: v1alpha1\nkind: KubeNodeConfig\nlabels: {example.com/rack: r1}\n"
	const image = "apiVersion: v1alpha1\nkind: KubeletConfig\nimage: ghcr.io/siderolabs/kubelet:v1.35.1\n"
	l.apply(n, machinetype.TypeWorker, label, image)
	l.Eventually(func(g Gomega) {
		node, err := l.kubernetes.Nodes().Get(l.ctx, n.Name(), metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(node.Status.NodeInfo.KubeletVersion).To(Equal("v1.35.1"))
		g.Expect(node.Labels).To(And(HaveKeyWithValue("example.com/rack", "r1"), Not(HaveKey("example.com/disk"))))
	}, fullWait, "200ms").Should(Succeed())
}

// checkLegacyUpgrade has a worker cordon and drain itself, and undo that when it is back.
func (l *liveCluster) checkLegacyUpgrade(n *talossim.Node) {
	node, err := l.kubernetes.Nodes().Get(l.ctx, n.Name(), metav1.GetOptions{})
	l.Expect(err).NotTo(HaveOccurred())
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "managed", OwnerReferences: []metav1.OwnerReference{
			// Any controller will do that is there and makes no other pod.
			{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID, Controller: new(true)},
		}},
		Spec: corev1.PodSpec{NodeName: n.Name(), Containers: []corev1.Container{{Name: "c", Image: "example.com/c"}}},
	}
	l.Eventually(func() error {
		_, err := l.kubernetes.Pods("default").Create(l.ctx, pod, metav1.CreateOptions{})
		return err // until the namespace has its service account
	}, fullWait, "200ms").Should(Succeed())
	l.Eventually(func(g Gomega) {
		running, err := l.kubernetes.Pods("default").Get(l.ctx, "managed", metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(running.Status.Phase).To(Equal(corev1.PodRunning))
		g.Expect(running.Status.HostIP).To(Equal(n.Address()))
		g.Expect(running.Status.Conditions).To(ContainElement(And(HaveField("Type", corev1.PodReady), HaveField("Status", corev1.ConditionTrue))))
	}, fullWait, "200ms").Should(Succeed(), "a pod that is bound to a node runs there")
	nodes, err := l.kubernetes.Nodes().Watch(l.ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + n.Name()})
	l.Expect(err).NotTo(HaveOccurred())
	defer nodes.Stop()

	_, err = l.client(n, role.Admin).UpgradeWithOptions(l.ctx, client.WithUpgradeImage(newer114))
	l.Expect(err).NotTo(HaveOccurred())
	l.Eventually(nodes.ResultChan(), fullWait).Should(Receive(HaveField("Object.Spec.Unschedulable", BeTrue())))
	l.Eventually(func(g Gomega) {
		node, err := l.kubernetes.Nodes().Get(l.ctx, n.Name(), metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(node.Status.NodeInfo.OSImage).To(ContainSubstring("v1.14.2"))
		g.Expect(node.Spec.Unschedulable).To(BeFalse())
		_, err = l.kubernetes.Pods("default").Get(l.ctx, "managed", metav1.GetOptions{})
		g.Expect(err).To(HaveOccurred())
	}, fullWait, "200ms").Should(Succeed())
}

// checkEtcdArguments has etcd's arguments wait for the next boot.
func (l *liveCluster) checkEtcdArguments(n *talossim.Node) {
	metrics := net.JoinHostPort(n.Address(), "2399")
	answers := func() error {
		conn, err := net.DialTimeout("tcp", metrics, time.Second)
		if err != nil {
			return err
		}
		return conn.Close()
	}
	l.apply(n, machinetype.TypeControlPlane, "{cluster: {etcd: {extraArgs: {listen-metrics-urls: \"http://"+metrics+"\"}}}}")
	l.Expect(answers()).NotTo(Succeed())
	l.Expect(n.Crash(l.ctx)).To(Succeed())
	l.Eventually(answers, fullWait, "100ms").Should(Succeed())
}
