// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/rand"
	"crypto/rsa"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/certs"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/test/builder"
)

// capd is a Cluster on CAPD's in-memory machines, which become Nodes as soon as they have bootstrap data that nobody reads. They have
// no control-plane provider that could be used with Ichor: the one control-plane Machine is made by hand.
func capd() []builder.Builder {
	return []builder.Builder{
		builder.Cluster("c").On(builder.CAPD{}),
		builder.ControlPlaneMachine("c", "cp-0").On(builder.CAPD{}),
		builder.Workers("c", "workers", 0).On(builder.CAPD{}),
	}
}

// A MachineDeployment of Ichor's configs on CAPD's in-memory machines scales up and down, and all of a deleted Cluster goes.
func TestMachineDeployment(t *testing.T) {
	w := newWorld(t)

	// CAPD signs with the authorities' keys, and only knows RSA. Single authorities may be brought, and the bundle is made with them.
	w.Expect(w.Client().Create(t.Context(), authority(w, "c-ca"))).To(Succeed())
	w.Expect(w.Client().Create(t.Context(), authority(w, "c-etcd"))).To(Succeed())
	w.create(capd()...)

	w.Eventually(func(g Gomega) {
		cluster := &clusterv1.Cluster{}
		g.Expect(w.Client().Get(t.Context(), w.key("c"), cluster)).To(Succeed())
		g.Expect(conditions.IsTrue(cluster, clusterv1.ClusterControlPlaneInitializedCondition)).To(BeTrue(), "%v", cluster.Status.Conditions)
	}).Should(Succeed())

	start := time.Now()

	w.scale(*machines)
	w.workersRun(*machines)
	t.Logf("%d machines run after %s", *machines, time.Since(start).Round(time.Second))

	w.nodes(*machines + 1)
	w.describes()

	few := *machines / 10

	w.scale(few)
	w.workersRun(few)
	w.nodes(few + 1)

	// What is gone leaves nothing behind, of a Secret least of all.
	w.Eventually(func(g Gomega) {
		configs := &bootstrapv1.TalosConfigList{}
		g.Expect(w.admin.List(t.Context(), configs, client.InNamespace(w.namespace))).To(Succeed())
		g.Expect(configs.Items).To(HaveLen(few + 1))
		g.Expect(w.dataSecrets(g)).To(HaveLen(few + 1))
	}).Should(Succeed())

	w.Expect(w.Client().Delete(t.Context(), &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "c"}})).To(Succeed())
	w.Eventually(func(g Gomega) {
		g.Expect(client.IgnoreNotFound(w.Client().Get(t.Context(), w.key("c"), &clusterv1.Cluster{}))).To(Succeed())
		g.Expect(w.Client().Get(t.Context(), w.key("c"), &clusterv1.Cluster{})).NotTo(Succeed())
		g.Expect(w.dataSecrets(g)).To(BeEmpty())

		bundle := &corev1.Secret{}
		g.Expect(w.Client().Get(t.Context(), w.key("c-talos"), bundle)).NotTo(Succeed(), "the bundle goes with the Cluster")
	}).Should(Succeed())
}

// workersRun waits until the MachineDeployment has so many Machines, each with a Node and bootstrap data of its own.
func (w *world) workersRun(replicas int) {
	w.t.Helper()
	w.Eventually(func(g Gomega) {
		list := &clusterv1.MachineList{}
		g.Expect(w.Client().List(w.t.Context(), list, client.InNamespace(w.namespace), client.MatchingLabels{clusterv1.MachineDeploymentNameLabel: "workers"})).To(Succeed())

		running, secrets := 0, map[string]bool{}

		for _, machine := range list.Items {
			if machine.Status.NodeRef.Name == "" || machine.Status.GetTypedPhase() != clusterv1.MachinePhaseRunning || machine.Spec.Bootstrap.DataSecretName == nil {
				continue
			}

			running++
			secrets[*machine.Spec.Bootstrap.DataSecretName] = true
		}

		g.Expect(list.Items).To(HaveLen(replicas))
		g.Expect(running).To(Equal(replicas))
		g.Expect(secrets).To(HaveLen(replicas))
	}).Should(Succeed())
}

// nodes looks with the kubeconfig that Cluster API makes of the cluster's authority.
func (w *world) nodes(count int) {
	w.t.Helper()

	secret := &corev1.Secret{}
	w.Expect(w.Client().Get(w.t.Context(), w.key("c-kubeconfig"), secret)).To(Succeed())

	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["value"])
	w.Expect(err).NotTo(HaveOccurred())

	workload, err := client.New(config, client.Options{})
	w.Expect(err).NotTo(HaveOccurred())

	w.Eventually(func(g Gomega) {
		list := &corev1.NodeList{}
		g.Expect(workload.List(w.t.Context(), list)).To(Succeed())
		g.Expect(list.Items).To(HaveLen(count))
	}).Should(Succeed())
}

// describes shows the cluster with clusterctl.
func (w *world) describes() {
	w.t.Helper()

	tree, err := w.Run(w.t.Context(), "describe", "cluster", "c", "--namespace", w.namespace, "--echo", "--grouping=false", "--color=false")
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(tree).To(And(
		ContainSubstring("MachineDeployment "+w.namespace+"/workers"),
		ContainSubstring("TalosConfig "+w.namespace+"/workers-"),
		ContainSubstring("DevMachine "+w.namespace+"/workers-")))
}

// dataSecrets are the names of the Secrets with machine configs.
func (w *world) dataSecrets(g Gomega) []string {
	list := &corev1.SecretList{}
	g.Expect(w.Client().List(w.t.Context(), list, client.InNamespace(w.namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: "c"})).To(Succeed())

	var names []string

	for _, secret := range list.Items {
		if owner := metav1.GetControllerOf(&secret); owner != nil && owner.Kind == "TalosConfig" {
			names = append(names, secret.Name)
		}
	}

	return names
}

// authority is a Secret with a new authority of an RSA key.
func authority(w *world, name string) *corev1.Secret {
	w.t.Helper()

	key, err := rsa.GenerateKey(rand.Reader, 2048)
	w.Expect(err).NotTo(HaveOccurred())

	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name}, key)
	w.Expect(err).NotTo(HaveOccurred())

	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	w.Expect(err).NotTo(HaveOccurred())

	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}},
		Type:       clusterv1.ClusterSecretType,
		Data:       map[string][]byte{corev1.TLSCertKey: certs.EncodeCertPEM(certificate), corev1.TLSPrivateKeyKey: encoded},
	}
}
