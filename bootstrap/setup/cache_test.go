// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Values stay in the cache for a cluster's own secrets only; of all others, the keys, and whether there is a value.
func TestStripSecret(t *testing.T) {
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

			stripped, err := stripSecret(&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{
					Name: test.name, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}},
					Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: `{"data":{"value":"c2VjcmV0"}}`},
				},
				Data: map[string][]byte{"value": []byte("secret"), "empty": {}, "null": nil},
			})
			g.Expect(err).NotTo(HaveOccurred())

			stripped, err = stripSecret(stripped)
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

func TestStripMetadata(t *testing.T) {
	g := NewWithT(t)

	stripped, err := stripMetadata(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "registry", Namespace: "ns", UID: "u", ResourceVersion: "7",
		Labels:      map[string]string{"cluster.x-k8s.io/cluster-name": "c", "clusterctl.cluster.x-k8s.io/move": "", "other": "x"},
		Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": `{"data":{"password":"c2VjcmV0"}}`},
	}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(stripped).To(Equal(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "registry", Namespace: "ns", UID: "u", ResourceVersion: "7",
		Labels: map[string]string{"cluster.x-k8s.io/cluster-name": "c", "clusterctl.cluster.x-k8s.io/move": ""},
	}}))
}
