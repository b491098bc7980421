// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"crypto"
	stdx509 "crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"regexp"

	"github.com/siderolabs/crypto/x509"

	"github.com/maesh-dev/ichor/internal/version"
)

// tokenPattern is the form of kubeadm's bootstrap tokens, which Kubernetes holds them to.
var tokenPattern = regexp.MustCompile(`^[a-z0-9]{6}\.[a-z0-9]{16}$`)

// Check checks that the bundle has everything that the config of a control-plane machine of the given contract is made from, that each
// certificate is one of an authority, and that keys belong to their certificates. The error names every field that is missing or wrong.
func Check(bundle *Bundle, contract version.Contract) error {
	if bundle == nil {
		return errors.New("secrets bundle: is missing")
	}

	if contract.IsZero() {
		return errors.New("secrets bundle: the config contract must be known")
	}

	errs := append(missing(bundle), certificates(bundle)...)
	for i, err := range errs {
		errs[i] = fmt.Errorf("secrets bundle: %w", err)
	}

	return errors.Join(errs...)
}

func missing(bundle *Bundle) []error {
	var errs []error

	require := func(name string, present bool) {
		if !present {
			errs = append(errs, fmt.Errorf("%s is missing", name))
		}
	}

	require("cluster.id", bundle.Cluster != nil && bundle.Cluster.ID != "")
	require("cluster.secret", bundle.Cluster != nil && bundle.Cluster.Secret != "")
	require("trustdinfo.token", bundle.TrustdInfo != nil && bundle.TrustdInfo.Token != "")
	require("secrets.bootstraptoken", bundle.Secrets != nil && bundle.Secrets.BootstrapToken != "")

	// A cluster may have both: one that went over to secretbox still reads what was written before.
	require("secrets.secretboxencryptionsecret (or secrets.aescbcencryptionsecret, in clusters older than Talos 1.3)",
		bundle.Secrets != nil && (bundle.Secrets.SecretboxEncryptionSecret != "" || bundle.Secrets.AESCBCEncryptionSecret != ""))

	if bundle.Secrets != nil && bundle.Secrets.BootstrapToken != "" && !tokenPattern.MatchString(bundle.Secrets.BootstrapToken) {
		errs = append(errs, errors.New("secrets.bootstraptoken must be 6 and 16 lower-case letters and digits with a dot between"))
	}

	return errs
}

func certificates(bundle *Bundle) []error {
	certs := bundle.Certs
	if certs == nil {
		return []error{errors.New("certs is missing")}
	}

	var errs []error

	for _, pair := range []struct {
		name string
		pair *x509.PEMEncodedCertificateAndKey
	}{
		{"certs.etcd", certs.Etcd}, {"certs.k8s", certs.K8s}, {"certs.k8saggregator", certs.K8sAggregator}, {"certs.os", certs.OS},
	} {
		if err := checkAuthority(pair.pair); err != nil {
			errs = append(errs, fmt.Errorf("%s%w", pair.name, err))
		}
	}

	if certs.K8sServiceAccount == nil || len(certs.K8sServiceAccount.Key) == 0 {
		errs = append(errs, errors.New("certs.k8sserviceaccount.key is missing"))
	} else if _, err := parseKey(certs.K8sServiceAccount.Key); err != nil {
		errs = append(errs, fmt.Errorf("certs.k8sserviceaccount.key %w", err))
	}

	return errs
}

// checkAuthority checks one certificate authority. Its errors begin with what follows the name of the pair.
func checkAuthority(pair *x509.PEMEncodedCertificateAndKey) error {
	switch {
	case pair == nil:
		return errors.New(" is missing")
	case len(pair.Crt) == 0:
		return errors.New(".crt is missing")
	case len(pair.Key) == 0:
		return errors.New(".key is missing")
	}

	certificate, err := parseCertificate(pair.Crt)
	if err != nil {
		return fmt.Errorf(".crt %w", err)
	}

	key, err := parseKey(pair.Key)
	if err != nil {
		return fmt.Errorf(".key %w", err)
	}

	if !samePublicKey(certificate.PublicKey, key.Public()) {
		return errors.New(".key does not belong to the certificate")
	}

	if !certificate.IsCA {
		return errors.New(".crt is not the certificate of an authority")
	}

	return nil
}

// parseCertificate reads the first certificate of PEM data, as Talos does.
func parseCertificate(data []byte) (*stdx509.Certificate, error) {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != x509.PEMTypeCertificate {
		return nil, errors.New("is not a PEM certificate")
	}

	certificate, err := stdx509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, errors.New("is not a PEM certificate that can be read")
	}

	return certificate, nil
}

// parseKey reads a private key in a form that Talos reads. The parser's own message is not passed on: it may tell of the content.
func parseKey(data []byte) (crypto.Signer, error) {
	encoded := x509.PEMEncodedCertificateAndKey{Key: data}

	key, err := encoded.GetKey()
	if err != nil {
		return nil, errors.New("is not a PEM private key of a kind that Talos reads (RSA, ECDSA, Ed25519)")
	}

	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("is not a private key that signs")
	}

	return signer, nil
}

func samePublicKey(a, b crypto.PublicKey) bool {
	key, ok := a.(interface {
		Equal(other crypto.PublicKey) bool
	})

	return ok && key.Equal(b)
}
