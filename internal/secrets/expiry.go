// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	stdx509 "crypto/x509"
	"slices"
	"time"

	"github.com/siderolabs/crypto/x509"
)

// Names of the certificates of a cluster, for people and metrics.
const (
	TalosAuthority      = "talos-ca"
	KubernetesAuthority = "kubernetes-ca"
	EtcdAuthority       = "etcd-ca"
	AggregatorAuthority = "aggregator-ca"
	TalosconfigClient   = "talosconfig"
)

// AuthorityExpiries returns until when the certificate authorities of a bundle are valid, by name. One that is missing or
// cannot be read is left out: Check says what is wrong with it.
func AuthorityExpiries(bundle *Bundle) map[string]time.Time {
	expiries := map[string]time.Time{}
	for name, certificate := range authorityCertificates(bundle) {
		expiries[name] = certificate.NotAfter
	}

	return expiries
}

// Pending returns the authorities of a bundle that are not valid yet at a time, sorted, and from when all of them are. Nobody whose clock is right
// takes what they sign until then. There are none in a bundle whose maker's clock was not ahead.
func Pending(bundle *Bundle, now time.Time) (names []string, valid time.Time) {
	for name, certificate := range authorityCertificates(bundle) {
		if begin := certificate.NotBefore; now.Before(begin) {
			names = append(names, name)
			valid = later(valid, begin)
		}
	}

	slices.Sort(names)

	return names, valid
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}

	return a
}

// authorityCertificates are those of the authorities of a bundle that can be read.
func authorityCertificates(bundle *Bundle) map[string]*stdx509.Certificate {
	found := map[string]*stdx509.Certificate{}
	if bundle.Certs == nil {
		return found
	}

	for name, pair := range map[string]*x509.PEMEncodedCertificateAndKey{
		TalosAuthority:      bundle.Certs.OS,
		KubernetesAuthority: bundle.Certs.K8s,
		EtcdAuthority:       bundle.Certs.Etcd,
		AggregatorAuthority: bundle.Certs.K8sAggregator,
	} {
		if pair == nil {
			continue
		}

		if certificate, err := parseCertificate(pair.Crt); err == nil {
			found[name] = certificate
		}
	}

	return found
}

// TalosconfigExpiry returns until when the client certificate of a cluster's talosconfig is valid. The error names no content.
func TalosconfigExpiry(talosconfig []byte, cluster string) (time.Time, error) {
	parsed, name, err := readTalosconfig(talosconfig, cluster)
	if err != nil {
		return time.Time{}, err
	}

	_, certificate, err := clientOf(parsed.Contexts[name])
	if err != nil {
		return time.Time{}, err
	}

	return certificate.NotAfter, nil
}
