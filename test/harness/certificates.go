// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/cluster-api/util/certs"
)

// authority signs every certificate of one management cluster.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// keyPair is a certificate and its key, both in PEM.
type keyPair struct {
	certificate []byte
	key         []byte
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "ichor-test-management"}, key)
	if err != nil {
		return nil, err
	}
	return &authority{certificate: certificate, key: key}, nil
}

// pem returns the authority's certificate.
func (a *authority) pem() []byte {
	return certs.EncodeCertPEM(a.certificate)
}

// base64 returns pem in the form of a byte field in JSON.
func (a *authority) base64() string {
	return base64.StdEncoding.EncodeToString(a.pem())
}

// serving signs a certificate for a server on the loopback address.
func (a *authority) serving(name string) (keyPair, error) {
	return a.sign(certs.Config{
		CommonName: name,
		AltNames: certs.AltNames{
			DNSNames: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
			IPs:      []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(serviceIP)},
		},
		Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// client signs a certificate that the API server takes for a user of some groups.
func (a *authority) client(user string, groups []string) (keyPair, error) {
	return a.sign(certs.Config{
		CommonName:   user,
		Organization: groups,
		Usages:       []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

func (a *authority) sign(config certs.Config) (keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, err
	}
	certificate, err := config.NewSignedCert(key, a.certificate, a.key)
	if err != nil {
		return keyPair{}, fmt.Errorf("certificate %s: %w", config.CommonName, err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return keyPair{}, fmt.Errorf("certificate %s: %w", config.CommonName, err)
	}
	return keyPair{certificate: certs.EncodeCertPEM(certificate), key: keyPEM}, nil
}

// write puts the pair into a directory, as NAME.crt and NAME.key, and returns both paths.
func (k keyPair) write(dir, name string) (certificateFile, keyFile string, err error) {
	certificateFile, keyFile = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	if err := os.WriteFile(certificateFile, k.certificate, 0o600); err != nil {
		return "", "", err
	}
	if err := os.WriteFile(keyFile, k.key, 0o600); err != nil {
		return "", "", err
	}
	return certificateFile, keyFile, nil
}
