// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	stdx509 "crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/siderolabs/crypto/x509"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	machinerysecrets "github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/role"
)

// clockSkew is how far a node's clock may be behind: client certificates are valid from that long before they are made, but not from before their
// authority is.
const clockSkew = 5 * time.Minute

// Talosconfig makes a client configuration for the Talos API with a new administrator's certificate, which is valid for ttl from now. Its
// one context has the cluster's name. Without endpoints, talosctl has to be given them.
func Talosconfig(bundle *Bundle, cluster string, endpoints []string, ttl time.Duration, now time.Time) ([]byte, error) {
	authority, client, err := administrator(bundle, cluster, ttl, now)
	if err != nil {
		return nil, err
	}

	return encodeTalosconfig(clientconfig.NewConfig(cluster, endpoints, authority.Crt, client), cluster)
}

// RenewTalosconfig makes a client configuration with a new administrator's certificate and keeps of the previous one what users may have
// put there: other contexts, and endpoints, nodes and everything else of the cluster's own. Of a previous one that cannot be read, nothing
// is kept.
func RenewTalosconfig(previous []byte, bundle *Bundle, cluster string, ttl time.Duration, now time.Time) ([]byte, error) {
	authority, client, err := administrator(bundle, cluster, ttl, now)
	if err != nil {
		return nil, err
	}

	made := clientconfig.NewConfig(cluster, nil, authority.Crt, client)

	kept, name, err := readTalosconfig(previous, cluster)
	if err != nil {
		return encodeTalosconfig(made, cluster)
	}

	own, fresh := kept.Contexts[name], made.Contexts[cluster]
	own.CA, own.Crt, own.Key = fresh.CA, fresh.Crt, fresh.Key

	return encodeTalosconfig(kept, cluster)
}

func encodeTalosconfig(config *clientconfig.Config, cluster string) ([]byte, error) {
	data, err := config.Bytes()
	if err != nil {
		return nil, fmt.Errorf("talosconfig of cluster %s: cannot be encoded", cluster)
	}

	return data, nil
}

// ClientCertificate makes a certificate for the Talos API with the given roles. It is valid for ttl from now, and not longer than the
// authority that signs it.
func ClientCertificate(bundle *Bundle, cluster string, roles role.Set, ttl time.Duration, now time.Time) (*x509.PEMEncodedCertificateAndKey, error) {
	_, client, err := issueClient(bundle, roles, ttl, now)
	if err != nil {
		return nil, fmt.Errorf("client certificate for cluster %s: %w", cluster, err)
	}

	return client, nil
}

// administrator makes the client certificate of a talosconfig.
func administrator(bundle *Bundle, cluster string, ttl time.Duration, now time.Time) (authority, client *x509.PEMEncodedCertificateAndKey, err error) {
	authority, client, err = issueClient(bundle, role.MakeSet(role.Admin), ttl, now)
	if err != nil {
		return nil, nil, fmt.Errorf("talosconfig of cluster %s: %w", cluster, err)
	}

	return authority, client, nil
}

func issueClient(bundle *Bundle, roles role.Set, ttl time.Duration, now time.Time) (authority, client *x509.PEMEncodedCertificateAndKey, err error) {
	if ttl <= 0 {
		return nil, nil, fmt.Errorf("the time to live %s must be above zero", ttl)
	}

	authority, err = talosAuthority(bundle)
	if err != nil {
		return nil, nil, err
	}

	certificate, err := parseCertificate(authority.Crt)
	if err != nil {
		return nil, nil, fmt.Errorf("certs.os.crt %w", err)
	}

	// Nor does it begin before its authority, which may have been made by a clock that was ahead.
	start := later(now.Add(-clockSkew), certificate.NotBefore)

	// A certificate that outlives its authority looks valid and is not.
	end := later(now, start).Add(ttl)
	if certificate.NotAfter.Before(end) {
		end = certificate.NotAfter
	}

	if !now.Before(end) {
		return nil, nil, errors.New("the Talos certificate authority has expired: rotate it")
	}

	client, err = machinerysecrets.NewAdminCertificateAndKey(start, authority, roles, end.Sub(start))
	if err != nil {
		return nil, nil, errors.New("the client certificate cannot be made")
	}

	return authority, client, nil
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

// errUnusable says what is wrong with a talosconfig, and nothing of its content.
var errUnusable = errors.New("it cannot be read as a talosconfig with a client certificate")

// readTalosconfig reads a talosconfig and says which of its contexts is the cluster's: that of its name, or else the current one.
func readTalosconfig(talosconfig []byte, cluster string) (parsed *clientconfig.Config, name string, err error) {
	// The parser has panicked on malformed input before.
	defer func() {
		if recover() != nil {
			parsed, err = nil, errUnusable
		}
	}()

	parsed, err = clientconfig.FromBytes(talosconfig)
	if err != nil || parsed == nil {
		return nil, "", errUnusable
	}

	for _, name := range []string{cluster, parsed.Context} {
		if parsed.Contexts[name] != nil {
			return parsed, name, nil
		}
	}

	return nil, "", errUnusable
}

// clientOf reads the authority and the client certificate of a talosconfig's context.
func clientOf(current *clientconfig.Context) ([]byte, *stdx509.Certificate, error) {
	decoded := map[string][]byte{}

	for name, text := range map[string]string{"ca": current.CA, "crt": current.Crt, "key": current.Key} {
		data, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, nil, errUnusable
		}

		decoded[name] = data
	}

	certificate, certificateErr := parseCertificate(decoded["crt"])
	key, keyErr := parseKey(decoded["key"])

	if certificateErr != nil || keyErr != nil || !samePublicKey(certificate.PublicKey, key.Public()) {
		return nil, nil, errUnusable
	}

	return decoded["ca"], certificate, nil
}
