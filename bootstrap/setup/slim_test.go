// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/launch"
)

// Values stay in the cache for a cluster's own secrets only; of all others, the keys, and whether there is a value.
func TestSlimSecret(t *testing.T) {
	tests := map[string]struct{ name, want string }{
		"bundle":        {"c-talos", "secret"},
		"authority":     {"c-ca", "secret"},
		"talosconfig":   {"c-talosconfig", "secret"},
		"machine":       {"c-md-0-x7f2k", "-"},
		"kubeconfig":    {"c-kubeconfig", "-"},
		"only a suffix": {"-talos", "-"},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			strip := dataSecrets().Transform

			stripped, err := strip(&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{
					Name: test.name, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}},
					Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: `{"data":{"value":"c2VjcmV0"}}`},
				},
				Data: map[string][]byte{"value": []byte("secret"), "empty": {}, "null": nil},
			})
			g.Expect(err).NotTo(HaveOccurred())

			stripped, err = strip(stripped)
			g.Expect(err).NotTo(HaveOccurred(), "the second time")

			secret, ok := stripped.(*corev1.Secret)
			g.Expect(ok).To(BeTrue())
			g.Expect(secret.ManagedFields).To(BeEmpty())
			g.Expect(secret.Annotations).To(BeEmpty())
			g.Expect(secret.Data).To(HaveKey("value"))
			g.Expect(string(secret.Data["value"])).To(Equal(test.want))
			g.Expect(secret.Data).To(And(HaveKeyWithValue("empty", BeEmpty()), HaveKeyWithValue("null", BeEmpty())))
		})
	}
}

// Of a Machine's status nothing stays but whether it has joined, and everything that a config is made of does.
func TestSlimMachine(t *testing.T) {
	g := NewWithT(t)

	node := clusterv1.MachineNodeReference{Name: "node"}
	spec := clusterv1.MachineSpec{ClusterName: "c", Version: "v1.36.1", ProviderID: "p"}

	stripped, err := slimmer{launch.NewSlimmer()}.machine(&clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Name: "m", Labels: map[string]string{"pool": "storage"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}},
			Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "{}", bootstrapv1.RunningInputsAnnotation: "[]"},
		},
		Spec: spec,
		Status: clusterv1.MachineStatus{
			NodeRef: node, Phase: "Running", Conditions: []metav1.Condition{{Type: clusterv1.MachineReadyCondition}},
			Addresses: clusterv1.MachineAddresses{{Type: clusterv1.MachineInternalIP, Address: "10.0.0.1"}},
		},
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(stripped).To(Equal(&clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Name: "m", Labels: map[string]string{"pool": "storage"}, Annotations: map[string]string{bootstrapv1.RunningInputsAnnotation: "[]"},
		},
		Spec: spec, Status: clusterv1.MachineStatus{NodeRef: node},
	}))
}

// A TalosConfig loses nothing that anybody reads: its status is compared with what is to be written.
func TestSlimTalosConfig(t *testing.T) {
	g := NewWithT(t)

	config := &bootstrapv1.TalosConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "m", Annotations: map[string]string{"a": "b"}},
		Spec:       bootstrapv1.TalosConfigSpec{Hostname: bootstrapv1.HostnameSpec{Source: bootstrapv1.HostnameSourceMachineName}},
	}
	config.Status.Conditions = append(make([]metav1.Condition, 0, 64), metav1.Condition{Type: "Ready"}, metav1.Condition{Type: "Paused"})
	config.Status.DataSecretName = "m"

	want := config.DeepCopy()
	config.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "x"}}

	stripped, err := slimmer{launch.NewSlimmer()}.talosConfig(config)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(stripped).To(Equal(want))
	g.Expect(cap(config.Status.Conditions)).To(BeNumerically("<", 8))
}
