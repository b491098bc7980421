// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
)

// A MachineDeployment of Ichor's configs scales up and down, and all of a deleted Cluster goes.
func TestMachineDeployment(t *testing.T) {
	w := newWorld(t)

	w.create(infra.cluster(w)...)
	w.initialized()

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

// initialized waits until the cluster's control plane is.
func (w *world) initialized() {
	w.t.Helper()
	w.Eventually(func(g Gomega) {
		cluster := &clusterv1.Cluster{}
		g.Expect(w.Client().Get(w.t.Context(), w.key("c"), cluster)).To(Succeed())
		g.Expect(conditions.IsTrue(cluster, clusterv1.ClusterControlPlaneInitializedCondition)).To(BeTrue(), "%v", cluster.Status.Conditions)
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

// workload is an administrator's access to the cluster.
func (w *world) workload() client.Client {
	w.t.Helper()

	secret := &corev1.Secret{}
	w.Expect(w.Client().Get(w.t.Context(), w.key("c-kubeconfig"), secret)).To(Succeed())

	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["value"])
	w.Expect(err).NotTo(HaveOccurred())

	workload, err := client.New(config, client.Options{})
	w.Expect(err).NotTo(HaveOccurred())

	return workload
}

// nodes waits until the cluster has so many Nodes, and returns them.
func (w *world) nodes(count int) []corev1.Node {
	w.t.Helper()

	workload, list := w.workload(), &corev1.NodeList{}
	w.Eventually(func(g Gomega) {
		g.Expect(workload.List(w.t.Context(), list)).To(Succeed())
		g.Expect(list.Items).To(HaveLen(count))
	}).Should(Succeed())

	return list.Items
}

// describes shows the cluster with clusterctl.
func (w *world) describes() {
	w.t.Helper()

	tree, err := w.Run(w.t.Context(), "describe", "cluster", "c", "--namespace", w.namespace, "--echo", "--grouping=false", "--color=false")
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(tree).To(And(
		ContainSubstring("MachineDeployment "+w.namespace+"/workers"),
		ContainSubstring("TalosConfig "+w.namespace+"/workers-"),
		ContainSubstring(infra.machine+" "+w.namespace+"/workers-")))
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
