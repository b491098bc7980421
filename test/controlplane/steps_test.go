// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"bytes"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/kubeconfig"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
	play "github.com/maesh-dev/ichor/test/scenario"
)

func replicas(n int32) func(*controlplanev1.TalosControlPlane) {
	return func(tcp *controlplanev1.TalosControlPlane) { tcp.Spec.Replicas = new(n) }
}

// loseStatus takes away what a move does: status, of the control plane and of its Machines' conditions.
func (s *scenario) loseStatus() {
	s.t.Helper()

	tcp := s.controlPlane()
	before := tcp.DeepCopy()
	tcp.Status = controlplanev1.TalosControlPlaneStatus{}
	s.Expect(s.Client.Status().Patch(s.ctx, tcp, client.MergeFrom(before))).To(Succeed())

	for _, machine := range s.machineList() {
		before := machine.DeepCopy()
		machine.Status.Conditions = nil
		s.Expect(s.Client.Status().Patch(s.ctx, &machine, client.MergeFrom(before))).To(Succeed())
	}
}

// quiet checks that nothing is written and that nodes are left alone when there is nothing to do.
func (s *scenario) quiet() {
	s.t.Helper()

	state := func() []string {
		tcp := s.controlPlane()
		all := []string{tcp.ResourceVersion}

		for _, machine := range s.machineList() {
			all = append(all, machine.Name, machine.ResourceVersion)
		}

		return all
	}
	calls := func() int {
		n := 0
		for _, machine := range s.Stage.Machines(s.key("c")) {
			n += len(machine.Node.Calls())
		}

		return n
	}

	// What was written last may still come back.
	var before []string

	s.Eventually(func() bool {
		last := before
		before = state()

		return len(last) > 0 && bytes.Equal([]byte(joined(last)), []byte(joined(before)))
	}).WithPolling(3 * time.Second).Should(BeTrue())

	asked := calls()

	s.Consistently(state).WithTimeout(8 * time.Second).WithPolling(time.Second).Should(Equal(before))
	// A look at a node is some twenty calls, and due once a minute.
	s.Expect(calls()-asked).To(BeNumerically("<=", 25*len(s.machineList())), "nodes are asked again and again")
}

func joined(texts []string) string {
	out := ""
	for _, text := range texts {
		out += text + "\n"
	}

	return out
}

// renewKubeconfig breaks the cluster's kubeconfig, and waits until it is mended; then it asks for another client certificate, and gets it once.
func (s *scenario) renewKubeconfig() {
	s.t.Helper()

	object := &corev1.Secret{}
	key := s.key(secret.Name("c", secret.Kubeconfig))
	s.Expect(s.Client.Get(s.ctx, key, object)).To(Succeed())
	s.Expect(object.Type).To(Equal(clusterv1.ClusterSecretType))

	config, err := clientcmd.Load(object.Data[secret.KubeconfigDataName])
	s.Expect(err).NotTo(HaveOccurred())

	server := config.Clusters["c"].Server
	config.Clusters["c"].Server = "https://elsewhere.example.com:6443"
	before := object.DeepCopy()
	object.Data[secret.KubeconfigDataName], err = clientcmd.Write(*config)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(s.Client.Patch(s.ctx, object, client.MergeFrom(before))).To(Succeed())

	s.Eventually(func(g Gomega) {
		content, err := kubeconfig.FromSecret(s.ctx, s.Client, s.key("c"))
		g.Expect(err).NotTo(HaveOccurred())

		config, err := clientcmd.Load(content)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(config.Clusters["c"].Server).To(Equal(server))
	}).Should(Succeed())

	s.Expect(s.Client.Get(s.ctx, key, object)).To(Succeed())
	mended := object.DeepCopy()
	metav1.SetMetaDataAnnotation(&object.ObjectMeta, controlplanev1.RotateAnnotation, "leaked")
	s.Expect(s.Client.Patch(s.ctx, object, client.MergeFrom(mended))).To(Succeed())

	s.Eventually(func(g Gomega) {
		g.Expect(s.Client.Get(s.ctx, key, object)).To(Succeed())
		g.Expect(object.Annotations).To(HaveKeyWithValue(controlplanev1.RotatedAnnotation, "leaked"))
	}).Should(Succeed())
	s.Expect(object.Data).To(HaveLen(1))
	s.Expect(object.Data).NotTo(Equal(mended.Data))
	s.Expect(object.OwnerReferences).To(Equal(mended.OwnerReferences))
	s.Says(&controlplanev1.TalosControlPlane{}, "cp", controlplanev1.CertificatesAvailableCondition, metav1.ConditionTrue)
}

// bootstrappedOnce waits until etcd runs on the first machine, which is as far as a cluster without Kubernetes comes.
func (s *scenario) bootstrappedOnce() {
	s.t.Helper()

	s.Eventually(func(g Gomega) {
		tcp := s.controlPlane()
		g.Expect(tcp.Status.Plan.Reason).To(Equal(controlplanev1.PlanWaitingForAPIServerReason), "%+v%s", tcp.Status.Plan, play.Describe(tcp))
		g.Expect(tcp.Annotations).To(HaveKey(controlplanev1.BootstrapAnnotation))
	}).Should(Succeed())

	s.countBootstraps()
}

// threeOf are the one Machine with its TalosConfig and its SimMachine.
func (s *scenario) threeOf(g Gomega) []client.Object {
	machine := s.machineList()[0]
	objects := []client.Object{&machine}

	for _, object := range []client.Object{&bootstrapv1.TalosConfig{}, &infrav1.SimMachine{}} {
		g.Expect(s.Client.Get(s.ctx, s.key(machine.Name), object)).To(Succeed())
		objects = append(objects, object)
	}

	return objects
}
