// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/test/builder"
	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
)

// simCluster is a Cluster on simulated machines of full fidelity: a real etcd member and API server on its one control-plane machine, which
// a TalosControlPlane makes.
func simCluster(*world) []builder.Builder {
	return []builder.Builder{
		builder.Cluster("c").ControlPlane(builder.ControlPlane("c", "cp", 1)),
		builder.Workers("c", "workers", 0),
	}
}

// simProvider is where provider sim is installed.
const simProvider = "ichor-infrastructure-sim-system"

// The machines of provider sim, which is always installed, come back with it when it has crashed, as after a power failure of the host: other
// boots of the same machines, with what etcd had stored.
func TestMachinesComeBackWithTheirProvider(t *testing.T) {
	w := newWorld(t)
	w.create(simCluster(w)...)
	w.initialized()
	w.scale(1)
	w.workersRun(1)

	boots := map[string]string{}
	for _, node := range w.nodes(2) {
		boots[node.Name] = node.Status.NodeInfo.BootID
	}

	stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "stored"}, Data: map[string]string{"a": "b"}}
	w.Expect(w.workload().Create(t.Context(), stored)).To(Succeed())

	pods := &corev1.PodList{}
	w.Expect(w.Client().List(t.Context(), pods, client.InNamespace(simProvider))).To(Succeed())
	w.Expect(pods.Items).To(HaveLen(1))
	w.Expect(w.KillPod(t.Context(), client.ObjectKeyFromObject(&pods.Items[0]))).To(Succeed())

	workload := w.workload()
	w.Eventually(func(g Gomega) {
		list := &corev1.NodeList{}
		g.Expect(workload.List(t.Context(), list)).To(Succeed())
		g.Expect(list.Items).To(HaveLen(2), "no machine has been made in place of another")

		for _, node := range list.Items {
			g.Expect(boots).To(HaveKey(node.Name))
			g.Expect(node.Status.NodeInfo.BootID).NotTo(Equal(boots[node.Name]), "%s has booted", node.Name)
		}
	}).Should(Succeed())
	w.Expect(workload.Get(t.Context(), client.ObjectKeyFromObject(stored), stored)).To(Succeed())
	w.Expect(stored.Data).To(HaveKeyWithValue("a", "b"))

	machines := &infrav1.SimMachineList{}
	w.Expect(w.admin.List(t.Context(), machines, client.InNamespace(w.namespace))).To(Succeed())
	w.Expect(machines.Items).To(HaveLen(2))

	// And the cluster goes on.
	w.scale(2)
	w.workersRun(2)
	w.nodes(3)
}
