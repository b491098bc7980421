// SPDX-License-Identifier: Apache-2.0

package talos

import (
	"crypto/sha256"
	"crypto/tls"
	stdx509 "crypto/x509"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/role"
	"k8s.io/utils/clock"

	"github.com/maesh-dev/ichor/internal/secrets"
)

const (
	// readerLife is how long a certificate lives that can change nothing. Connections are kept for half of it.
	readerLife = time.Hour

	// adminLife is how long a certificate lives that can do everything. It is made for one operation.
	adminLife = 10 * time.Minute
)

// Credentials are what makes a client of a cluster's nodes.
type Credentials struct {
	// Bundle is the cluster's. Its Talos authority signs our certificates and is trusted.
	Bundle *secrets.Bundle

	// AcceptedCAs are more authorities to trust, as PEM, while the cluster goes over from one to another.
	AcceptedCAs []byte
}

// fingerprint tells credentials apart without keeping their secrets.
func (c Credentials) fingerprint() ([sha256.Size]byte, error) {
	if c.Bundle == nil || c.Bundle.Certs == nil || c.Bundle.Certs.OS == nil {
		return [sha256.Size]byte{}, errors.New("secrets bundle: certs.os is missing")
	}

	hash := sha256.New()

	for _, part := range [][]byte{c.Bundle.Certs.OS.Crt, c.Bundle.Certs.OS.Key, c.AcceptedCAs} {
		sum := sha256.Sum256(part)
		hash.Write(sum[:])
	}

	return [sha256.Size]byte(hash.Sum(nil)), nil
}

// authority makes the client certificates of a cluster.
type authority struct {
	cluster string
	bundle  *secrets.Bundle
	roots   *stdx509.CertPool
	clock   clock.PassiveClock

	mu     sync.Mutex
	reader issued
}

// issued is a certificate, and until when it is to be used.
type issued struct {
	certificate *tls.Certificate
	until       time.Time
}

func newAuthority(cluster string, credentials Credentials, clock clock.PassiveClock) (*authority, error) {
	roots := stdx509.NewCertPool()
	if !roots.AppendCertsFromPEM(credentials.Bundle.Certs.OS.Crt) {
		return nil, errors.New("secrets bundle: certs.os.crt is not a PEM certificate")
	}

	if len(credentials.AcceptedCAs) > 0 && !roots.AppendCertsFromPEM(credentials.AcceptedCAs) {
		return nil, errors.New("accepted CAs: there is no PEM certificate in them")
	}

	a := &authority{cluster: cluster, bundle: credentials.Bundle, roots: roots, clock: clock}

	// A bundle that cannot sign is told at once, and not by each node.
	_, err := a.certificate(role.Reader)

	return a, err
}

// certificate is one for a role. That of a reader is made anew at half of its life.
func (a *authority) certificate(of role.Role) (issued, error) {
	if of != role.Reader {
		return a.issue(of, adminLife)
	}

	a.mu.Lock()
	defer a.mu.Unlock()

	if a.reader.certificate != nil && a.clock.Now().Before(a.reader.until) {
		return a.reader, nil
	}

	made, err := a.issue(of, readerLife)
	if err == nil {
		a.reader = made
	}

	return made, err
}

func (a *authority) issue(of role.Role, life time.Duration) (issued, error) {
	now := a.clock.Now()

	pair, err := secrets.ClientCertificate(a.bundle, a.cluster, role.MakeSet(of), life, now)
	if err != nil {
		return issued{}, err
	}

	certificate, err := tls.X509KeyPair(pair.Crt, pair.Key)
	if err != nil {
		// The cause may quote what it could not read.
		return issued{}, fmt.Errorf("client certificate for cluster %s: cannot be read back", a.cluster)
	}

	return issued{certificate: &certificate, until: now.Add(life / 2)}, nil
}

// config is for connections with a certificate. The node must show one of the cluster's authority for the address that is dialled.
func (a *authority) config(own issued) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, RootCAs: a.roots, Certificates: []tls.Certificate{*own.certificate}, Time: a.clock.Now,
	}
}
