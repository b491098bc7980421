// SPDX-License-Identifier: Apache-2.0

package secrets_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	stdx509 "crypto/x509"
	"encoding/pem"
	"testing"
	"time"

	"github.com/siderolabs/crypto/x509"
	machinerysecrets "github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/internal/version"
)

// birth is when the clusters of these tests are made.
var birth = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func clock() secrets.Clock { return machinerysecrets.NewFixedClock(birth) }

func contract(t *testing.T, text string) version.Contract {
	t.Helper()

	parsed, err := version.ParseContract(text)
	if err != nil {
		t.Fatal(err)
	}

	return parsed
}

func newBundle(t *testing.T) *secrets.Bundle {
	t.Helper()

	bundle, err := secrets.New(clock(), version.Newest(), secrets.WithECDSAServiceAccountKey())
	if err != nil {
		t.Fatal(err)
	}

	return bundle
}

func cluster() *clusterv1.Cluster {
	return &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "uid"}}
}

// authority is a certificate authority as users bring it: made by another tool.
func authority(t *testing.T, options ...x509.Option) (certificate, key []byte) {
	t.Helper()

	made, err := x509.NewSelfSignedCertificateAuthority(append([]x509.Option{
		x509.Organization("example"), x509.NotBefore(birth), x509.NotAfter(birth.AddDate(10, 0, 0)), x509.ECDSA(true),
	}, options...)...)
	if err != nil {
		t.Fatal(err)
	}

	return made.CrtPEM, made.KeyPEM
}

func pkcs8Key(t *testing.T) []byte {
	t.Helper()

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	der, err := stdx509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}

	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func secretOf(name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: data}
}

func tlsSecret(name string, certificate, key []byte) *corev1.Secret {
	return secretOf(name, map[string][]byte{"tls.crt": certificate, "tls.key": key})
}

func errorText(err error) string {
	if err == nil {
		return ""
	}

	return err.Error()
}
