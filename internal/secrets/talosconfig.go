// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	stdx509 "crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/siderolabs/crypto/x509"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	machinerysecrets "github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/role"
)

// clockSkew is how far a node's clock may be behind: client certificates are valid from that long before they are made.
const clockSkew = 5 * time.Minute

// Talosconfig makes a client configuration for the Talos API with a new administrator's certificate, which is valid for ttl from now. Its
// one context has the cluster's name. Without endpoints, talosctl has to be given them.
func Talosconfig(bundle *Bundle, cluster string, endpoints []string, ttl time.Duration, now time.Time) ([]byte, error) {
	if ttl <= 0 {
		return nil, fmt.Errorf("talosconfig of cluster %s: the time to live %s must be above zero", cluster, ttl)
	}

	authority, err := talosAuthority(bundle)
	if err != nil {
		return nil, fmt.Errorf("talosconfig of cluster %s: %w", cluster, err)
	}

	certificate, err := parseCertificate(authority.Crt)
	if err != nil {
		return nil, fmt.Errorf("talosconfig of cluster %s: certs.os.crt %w", cluster, err)
	}

	// A certificate that outlives its authority looks valid and is not.
	end := now.Add(ttl)
	if certificate.NotAfter.Before(end) {
		end = certificate.NotAfter
	}

	if !now.Before(end) {
		return nil, fmt.Errorf("talosconfig of cluster %s: the Talos certificate authority has expired: rotate it", cluster)
	}

	start := now.Add(-clockSkew)

	client, err := machinerysecrets.NewAdminCertificateAndKey(start, authority, role.MakeSet(role.Admin), end.Sub(start))
	if err != nil {
		return nil, fmt.Errorf("talosconfig of cluster %s: the client certificate cannot be made", cluster)
	}

	data, err := clientconfig.NewConfig(cluster, endpoints, authority.Crt, client).Bytes()
	if err != nil {
		return nil, fmt.Errorf("talosconfig of cluster %s: cannot be encoded", cluster)
	}

	return data, nil
}

// NeedsRenewal reports whether a talosconfig must be made anew, and why: it cannot be used, it is for another authority than the bundle's,
// or half of its certificate's life is over. The reason names no content.
func NeedsRenewal(talosconfig []byte, bundle *Bundle, now time.Time) (reason string, needed bool) {
	authority, certificate, err := clientOf(talosconfig)
	if err != nil {
		return err.Error(), true
	}

	own, err := talosAuthority(bundle)
	if err != nil {
		// There is nothing to renew it with; what is wrong with the bundle is told where it is checked.
		return "", false
	}

	ours, err := parseCertificate(own.Crt)
	if err != nil {
		return "", false
	}

	theirs, err := parseCertificate(authority)

	switch {
	case err != nil || !ours.Equal(theirs) || certificate.CheckSignatureFrom(ours) != nil:
		return "the Talos certificate authority has changed", true
	case !slices.Contains(certificate.Subject.Organization, string(role.Admin)):
		return "its client certificate is not an administrator's", true
	case !now.Before(certificate.NotBefore.Add(certificate.NotAfter.Sub(certificate.NotBefore) / 2)): //nolint:mnd // half
		return "half of its client certificate's life is over", true
	}

	return "", false
}

func talosAuthority(bundle *Bundle) (*x509.PEMEncodedCertificateAndKey, error) {
	if bundle.Certs == nil {
		return nil, errors.New("certs.os is missing")
	}

	if err := checkAuthority(bundle.Certs.OS); err != nil {
		return nil, fmt.Errorf("certs.os%w", err)
	}

	return bundle.Certs.OS, nil
}

// clientOf reads the authority and the client certificate of a talosconfig's current context.
func clientOf(talosconfig []byte) ([]byte, *stdx509.Certificate, error) {
	unusable := errors.New("it cannot be read as a talosconfig with a client certificate")

	parsed, err := clientconfig.FromBytes(talosconfig)
	if err != nil || parsed == nil {
		return nil, nil, unusable
	}

	current := parsed.Contexts[parsed.Context]
	if current == nil {
		return nil, nil, unusable
	}

	decoded := map[string][]byte{}

	for name, text := range map[string]string{"ca": current.CA, "crt": current.Crt, "key": current.Key} {
		if decoded[name], err = base64.StdEncoding.DecodeString(text); err != nil {
			return nil, nil, unusable
		}
	}

	certificate, certificateErr := parseCertificate(decoded["crt"])
	key, keyErr := parseKey(decoded["key"])

	if certificateErr != nil || keyErr != nil || !samePublicKey(certificate.PublicKey, key.Public()) {
		return nil, nil, unusable
	}

	return decoded["ca"], certificate, nil
}
