// SPDX-License-Identifier: Apache-2.0

package secrets

import (
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
	if bundle.Certs == nil {
		return expiries
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
			expiries[name] = certificate.NotAfter
		}
	}

	return expiries
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
