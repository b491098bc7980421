// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestStripMetadata(t *testing.T) {
	g := NewWithT(t)

	stripped, err := NewSlimmer().Metadata("example.com/kept", "example.com/none")(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "registry", Namespace: "ns", UID: "u", ResourceVersion: "7",
		Labels: map[string]string{"cluster.x-k8s.io/cluster-name": "c", "clusterctl.cluster.x-k8s.io/move": "", "other": "x"},
		Annotations: map[string]string{
			"kubectl.kubernetes.io/last-applied-configuration": `{"data":{"password":"c2VjcmV0"}}`, "example.com/kept": "1",
		},
	}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(stripped).To(Equal(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "registry", Namespace: "ns", UID: "u", ResourceVersion: "7",
		Labels:      map[string]string{"cluster.x-k8s.io/cluster-name": "c", "clusterctl.cluster.x-k8s.io/move": ""},
		Annotations: map[string]string{"example.com/kept": "1"},
	}}))
}
