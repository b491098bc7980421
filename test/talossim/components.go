// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"context"
	stdx509 "crypto/x509"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/siderolabs/crypto/x509"
	"go.uber.org/zap"

	"github.com/maesh-dev/ichor/test/tools"
)

// quiet keeps etcd's client from logging to the test's output; what it has to say is in its errors.
var quiet = zap.NewNop()

// certificateValidity is that of the certificates that a node makes for its components.
const certificateValidity = 24 * time.Hour

func toolPath(ctx context.Context, name string) (string, error) {
	builder, err := tools.NewBuilder(io.Discard)
	if err != nil {
		return "", err
	}
	return builder.Path(ctx, name)
}

// flags writes a component's arguments in a fixed order. Extra ones take the place of ours, as in Talos.
func flags(ours, extra map[string][]string) []string {
	all := maps.Clone(ours)
	maps.Copy(all, extra)
	var args []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, value := range all[name] {
			args = append(args, "--"+name+"="+value)
		}
	}
	return args
}

// signPair signs a certificate.
func signPair(ca *x509.PEMEncodedCertificateAndKey, commonName string, names, addresses []string, usages []stdx509.ExtKeyUsage) (*x509.KeyPair, error) {
	authority, err := x509.NewCertificateAuthorityFromCertificateAndKey(ca)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return x509.NewKeyPair(authority,
		x509.CommonName(commonName), x509.DNSNames(names), x509.IPAddresses(parseIPs(addresses)),
		x509.NotBefore(now.Add(-time.Minute)), x509.NotAfter(now.Add(certificateValidity)),
		x509.KeyUsage(stdx509.KeyUsageDigitalSignature|stdx509.KeyUsageKeyEncipherment), x509.ExtKeyUsage(usages),
	)
}

// writePair signs a certificate and writes it with its key, as NAME.crt and NAME.key.
func writePair(ca *x509.PEMEncodedCertificateAndKey, dir, file, commonName string, names, addresses []string, usages []stdx509.ExtKeyUsage) error {
	pair, err := signPair(ca, commonName, names, addresses, usages)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, file+".crt"), pair.CrtPEM, 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, file+".key"), pair.KeyPEM, 0o600)
}

func parseIPs(addresses []string) []net.IP {
	var ips []net.IP
	for _, address := range addresses {
		if ip := net.ParseIP(address); ip != nil {
			ips = append(ips, ip)
		}
	}
	return ips
}
