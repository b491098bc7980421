// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/rand"
	"crypto/rsa"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/certs"

	"github.com/maesh-dev/ichor/test/builder"
)

// capdCluster is a Cluster on CAPD's in-memory machines, which become Nodes as soon as they have bootstrap data that nobody reads. They have
// no control-plane provider that could be used with Ichor: the one control-plane Machine is made by hand.
func capdCluster(w *world) []builder.Builder {
	// CAPD signs with the authorities' keys, and only knows RSA. Single authorities may be brought, and the bundle is made with them.
	w.Expect(w.Client().Create(w.t.Context(), authority(w, "c-ca"))).To(Succeed())
	w.Expect(w.Client().Create(w.t.Context(), authority(w, "c-etcd"))).To(Succeed())

	return []builder.Builder{
		builder.Cluster("c").On(builder.CAPD{}),
		builder.ControlPlaneMachine("c", "cp-0").On(builder.CAPD{}),
		builder.Workers("c", "workers", 0).On(builder.CAPD{}),
	}
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
