// SPDX-License-Identifier: Apache-2.0

package certmanager

import (
	"crypto/tls"
	"crypto/x509"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A certificate is what was asked for, is verified by its own ca.crt for its names and no other, and is issued again when it does
// not fit any more.
func TestIssue(t *testing.T) {
	for name, algorithm := range map[string]string{"default": "", "RSA": "RSA", "ECDSA": "ECDSA"} {
		t.Run(name, func(t *testing.T) {
			wanted := spec{DNSNames: []string{"webhook.system.svc", "webhook.system.svc.cluster.local"}}
			wanted.PrivateKey.Algorithm = algorithm
			wanted.Subject.Organizations = []string{"ichor"}

			data, err := issue(wanted)
			if err != nil {
				t.Fatal(err)
			}

			pair, err := tls.X509KeyPair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey])
			if err != nil {
				t.Fatal(err)
			}

			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(data["ca.crt"])

			for host, want := range map[string]bool{"webhook.system.svc": true, "other.system.svc": false} {
				_, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host})
				if (err == nil) != want {
					t.Errorf("verify for %s: %v", host, err)
				}
			}

			secret := &corev1.Secret{Data: data}
			if !fits(secret, wanted) {
				t.Error("the certificate does not fit")
			}

			for change, other := range map[string]spec{
				"another name":         {DNSNames: []string{"other.system.svc"}, Subject: wanted.Subject},
				"another organization": {DNSNames: wanted.DNSNames},
				"a longer life":        {DNSNames: wanted.DNSNames, Subject: wanted.Subject, Duration: &metav1.Duration{Duration: 10 * 365 * 24 * time.Hour}},
			} {
				if fits(secret, other) {
					t.Errorf("%s: the certificate fits", change)
				}
			}

			for key := range data {
				without := &corev1.Secret{Data: maps.Clone(data)}
				delete(without.Data, key)

				if fits(without, wanted) {
					t.Errorf("without %s: the certificate fits", key)
				}
			}
		})
	}
}
