// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"context"
	"crypto/tls"
	stdx509 "crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	cosiapi "github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/state"
	cosiserver "github.com/cosi-project/runtime/pkg/state/protobuf/server"
	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/api/storage"
	timeapi "github.com/siderolabs/talos/pkg/machinery/api/time"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// newServer has the services of the boot's version.
func (b *boot) newServer() *grpc.Server {
	server := grpc.NewServer(
		grpc.Creds(credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: b.handshake})),
		grpc.MaxRecvMsgSize(constants.GRPCMaxMessageSize),
		grpc.UnaryInterceptor(b.unary),
		grpc.StreamInterceptor(b.stream),
		grpc.WaitForHandlers(true),
	)
	machine.RegisterMachineServiceServer(server, &machineService{boot: b})
	if b.image.version.Contract().AtLeast(13) {
		machine.RegisterLifecycleServiceServer(server, &lifecycleService{boot: b})
		machine.RegisterImageServiceServer(server, &imageService{boot: b})
	}
	storage.RegisterStorageServiceServer(server, &storageService{boot: b})
	timeapi.RegisterTimeServiceServer(server, &timeService{boot: b})
	cosiapi.RegisterStateServer(server, cosiserver.NewState(state.Filter(b.state, b.accessRule)))
	return server
}

func (b *boot) serve() {
	listener := b.node.gate.start()
	b.tasks.Go(func() {
		// Serve returns when the boot ends, with nothing to say.
		_ = b.server.Serve(listener)
	})
}

// now is the node's own time.
func (b *boot) now() time.Time {
	return time.Now().Add(b.node.Faults().ClockSkew)
}

// serveMaintenance opens the API with a certificate of the node's own making.
func (b *boot) serveMaintenance() error {
	ca, err := x509.NewSelfSignedCertificateAuthority(x509.Organization("maintenance"))
	if err != nil {
		return err
	}
	if err := b.issue(ca); err != nil {
		return err
	}
	b.serve()
	return nil
}

// serveConfigured opens the API once there is a certificate of the cluster's authority. A control-plane node has the key
// and signs its own; a worker asks a control-plane node.
func (b *boot) serveConfigured() error {
	config := b.config()
	if issuing := config.Machine().Security().IssuingCA(); config.controlPlane() && issuing != nil {
		ca, err := x509.NewCertificateAuthorityFromCertificateAndKey(issuing)
		if err != nil {
			return fmt.Errorf("machine.ca: %w", err)
		}
		b.node.world.announce(ca)
		if err := b.issue(ca); err != nil {
			return err
		}
		b.serve()
		return nil
	}
	known := config.acceptedCAs()
	if len(known) == 0 {
		return errors.New("machine.ca: not set")
	}
	serve := func(ctx context.Context) error {
		ca, err := b.node.world.authority(ctx, known[0])
		if err != nil {
			return err
		}
		if err := b.issue(ca); err != nil {
			return err
		}
		b.serve()
		return nil
	}
	if b.node.world.knows(known[0]) {
		return serve(b.ctx)
	}
	b.tasks.Go(func() { _ = serve(b.ctx) })
	return nil
}

// acceptedCAs are those whose client certificates the node takes, its own cluster's first.
func (c *nodeConfig) acceptedCAs() [][]byte {
	var all [][]byte
	if ca := c.Machine().Security().IssuingCA(); ca != nil && len(ca.Crt) > 0 {
		all = append(all, ca.Crt)
	}
	for _, ca := range c.Machine().Security().AcceptedCAs() {
		if !slices.ContainsFunc(all, func(known []byte) bool { return string(known) == string(ca.Crt) }) {
			all = append(all, ca.Crt)
		}
	}
	return all
}

func (b *boot) issue(ca *x509.CertificateAuthority) error {
	pair, err := b.sign(ca)
	if err != nil {
		return fmt.Errorf("server certificate: %w", err)
	}
	b.certificate.Store(pair)
	return nil
}

func (b *boot) sign(ca *x509.CertificateAuthority) (*tls.Certificate, error) {
	now := b.now()
	names, ips := []string{b.node.Name()}, []net.IP{net.ParseIP(b.node.address)}
	if c := b.config(); c != nil {
		names = append(names, c.hostname(b.node))
		for _, san := range c.Machine().Security().CertSANs() {
			if ip := net.ParseIP(san); ip != nil {
				ips = append(ips, ip)
			} else {
				names = append(names, san)
			}
		}
	}
	pair, err := x509.NewKeyPair(ca,
		x509.CommonName(names[len(names)-1]), x509.DNSNames(names), x509.IPAddresses(ips),
		x509.NotBefore(now), x509.NotAfter(now.Add(x509.DefaultCertificateValidityDuration)),
		x509.KeyUsage(stdx509.KeyUsageDigitalSignature),
		x509.ExtKeyUsage([]stdx509.ExtKeyUsage{stdx509.ExtKeyUsageServerAuth}),
	)
	if err != nil {
		return nil, err
	}
	return pair.Certificate, nil
}

// handshake decides for each connection what the node shows and whom it lets in.
func (b *boot) handshake(*tls.ClientHelloInfo) (*tls.Config, error) {
	result := &tls.Config{
		MinVersion:   tls.VersionTLS13,
		NextProtos:   []string{"h2"},
		Certificates: []tls.Certificate{*b.certificate.Load()},
		Time:         b.now,
	}
	faults := b.node.Faults()
	switch {
	case faults.WrongCA:
		pair, err := b.sign(b.node.world.ca)
		if err != nil {
			return nil, err
		}
		result.Certificates = []tls.Certificate{*pair}
	case faults.ClockSkew != 0:
		if err := b.reissue(result); err != nil {
			return nil, err
		}
	}
	config := b.config()
	if config == nil {
		return result, nil
	}
	result.ClientAuth = tls.RequireAndVerifyClientCert
	result.ClientCAs = stdx509.NewCertPool()
	for _, ca := range config.acceptedCAs() {
		result.ClientCAs.AppendCertsFromPEM(ca)
	}
	result.VerifyConnection = func(connection tls.ConnectionState) error {
		if usage := connection.PeerCertificates[0].ExtKeyUsage; !slices.Equal(usage, []stdx509.ExtKeyUsage{stdx509.ExtKeyUsageClientAuth}) {
			return errors.New("certificate is not for client authentication alone")
		}
		return nil
	}
	return result, nil
}

// reissue signs the certificate by the node's clock of this moment.
func (b *boot) reissue(to *tls.Config) error {
	config := b.config()
	if config == nil {
		return nil
	}
	ca, err := b.node.world.authority(b.ctx, config.acceptedCAs()[0])
	if err != nil {
		return err
	}
	pair, err := b.sign(ca)
	if err != nil {
		return err
	}
	to.Certificates = []tls.Certificate{*pair}
	return nil
}
