// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/maesh-dev/ichor/internal/launch"
)

// Values stay in the cache for a cluster's own Secrets and its kubeconfig only, and never for a machine's.
func TestCachedSecrets(t *testing.T) {
	tests := map[string]struct{ name, want string }{
		"bundle":        {"c-talos", "secret"},
		"authority":     {"c-ca", "secret"},
		"kubeconfig":    {"c-kubeconfig", "secret"},
		"machine":       {"c-cp-x7f2k", "-"},
		"only a suffix": {"-talos", "-"},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			stripped, err := launch.Secrets(isOfCluster).Transform(&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: test.name}, Data: map[string][]byte{"value": []byte("secret")},
			})
			g.Expect(err).NotTo(HaveOccurred())

			secret, ok := stripped.(*corev1.Secret)
			g.Expect(ok).To(BeTrue())
			g.Expect(string(secret.Data["value"])).To(Equal(test.want))
		})
	}
}

// Of a Node, what makes up most of it is left out, and what tells how it is stays.
func TestStripNode(t *testing.T) {
	g := NewWithT(t)

	spec := corev1.NodeSpec{ProviderID: "sim:///a", Unschedulable: true}
	status := corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}},
		NodeInfo:   corev1.NodeSystemInfo{KubeletVersion: "v1.36.1", BootID: "b"},
	}
	large := *status.DeepCopy()
	large.Images = []corev1.ContainerImage{{Names: []string{"i"}}}
	large.VolumesInUse = []corev1.UniqueVolumeName{"v"}
	large.VolumesAttached = []corev1.AttachedVolume{{Name: "v"}}

	stripped, err := stripNode(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}}, Spec: spec, Status: large,
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(stripped).To(Equal(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: spec, Status: status}))
}

// Only Clusters whose control plane is a TalosControlPlane are connected to.
func TestIsOurs(t *testing.T) {
	g := NewWithT(t)

	of := func(group, kind string) *clusterv1.Cluster {
		return &clusterv1.Cluster{Spec: clusterv1.ClusterSpec{ControlPlaneRef: clusterv1.ContractVersionedObjectReference{APIGroup: group, Kind: kind, Name: "n"}}}
	}

	g.Expect(isOurs(of("controlplane.ichor.maesh.dev", "TalosControlPlane"))).To(BeTrue())
	g.Expect(isOurs(of("controlplane.cluster.x-k8s.io", "TalosControlPlane"))).To(BeFalse(), "another provider's")
	g.Expect(isOurs(of("controlplane.cluster.x-k8s.io", "KubeadmControlPlane"))).To(BeFalse())
	g.Expect(isOurs(&clusterv1.Cluster{})).To(BeFalse(), "machines by hand")
}
