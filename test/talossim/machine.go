// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	stdx509 "crypto/x509"
	"errors"
	"runtime"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	timeapi "github.com/siderolabs/talos/pkg/machinery/api/time"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// machineService answers the calls of MachineService. What is not here answers Unimplemented.
type machineService struct {
	machine.UnimplementedMachineServiceServer

	boot *boot
}

func (s *machineService) Version(context.Context, *emptypb.Empty) (*machine.VersionResponse, error) {
	return &machine.VersionResponse{Messages: []*machine.Version{{
		Version: &machine.VersionInfo{
			Tag: s.boot.image.version.String(), Sha: "simulated", GoVersion: runtime.Version(), Os: "linux", Arch: "amd64",
		},
		Platform: &machine.PlatformInfo{Name: s.boot.node.platform(), Mode: runtimeMode(s.boot.node.options.Metal).String()},
		Features: &machine.FeaturesInfo{Rbac: true},
	}}}, nil
}

func (n *Node) platform() string {
	if n.options.Metal {
		return "metal"
	}
	return "nocloud"
}

func (s *machineService) Hostname(context.Context, *emptypb.Empty) (*machine.HostnameResponse, error) {
	name := s.boot.node.Name()
	if c := s.boot.config(); c != nil {
		name = c.hostname(s.boot.node)
	}
	return &machine.HostnameResponse{Messages: []*machine.Hostname{{Hostname: name}}}, nil
}

// Read gives the one file that tells the boot ID on versions that have no resource for it.
func (s *machineService) Read(request *machine.ReadRequest, stream machine.MachineService_ReadServer) error {
	if request.GetPath() != "/proc/sys/kernel/random/boot_id" {
		return status.Errorf(codes.Unknown, "stat %s: no such file or directory", request.GetPath())
	}
	return stream.Send(&common.Data{Bytes: []byte(s.boot.id + "\n")})
}

func (b *boot) mustBeConfigured(what string) error {
	if b.config() == nil {
		return status.Errorf(codes.FailedPrecondition, "%s: not possible in maintenance mode", what)
	}
	return nil
}

// mustBeControlPlane is what a call answers that only control-plane nodes have. Source: Talos, internal/app/internal/machinehelper,
// CheckControlplane.
func (b *boot) mustBeControlPlane(api string) error {
	switch c := b.config(); {
	case c == nil:
		return status.Errorf(codes.Unimplemented, "machine type is not set, cannot use %s API", api)
	case !c.controlPlane():
		return status.Errorf(codes.Unimplemented, "%s is only available on control plane nodes", api)
	default:
		return nil
	}
}

// Kubeconfig is an administrator's, as a compressed archive of one file.
func (s *machineService) Kubeconfig(_ *emptypb.Empty, stream machine.MachineService_KubeconfigServer) error {
	if err := s.boot.mustBeControlPlane("kubeconfig"); err != nil {
		return err
	}
	c := s.boot.config()
	kubeconfig, err := adminKubeconfig(c)
	if err != nil {
		return err
	}
	var buffer bytes.Buffer
	compressed := gzip.NewWriter(&buffer)
	archive := tar.NewWriter(compressed)
	if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "kubeconfig", Size: int64(len(kubeconfig)), Mode: 0o600}); err != nil {
		return err
	}
	if _, err := archive.Write(kubeconfig); err != nil {
		return err
	}
	if err := archive.Close(); err != nil {
		return err
	}
	if err := compressed.Close(); err != nil {
		return err
	}
	return stream.Send(&common.Data{Bytes: buffer.Bytes()})
}

// GenerateClientConfiguration signs a certificate with the roles that are asked for.
func (s *machineService) GenerateClientConfiguration(_ context.Context, request *machine.GenerateClientConfigurationRequest) (*machine.GenerateClientConfigurationResponse, error) {
	if err := s.boot.mustBeControlPlane("generate client configuration"); err != nil {
		return nil, err
	}
	if request.GetCrtTtl().AsDuration() <= 0 {
		return nil, status.Error(codes.InvalidArgument, "crt_ttl should be positive")
	}
	c := s.boot.config()
	roles, _ := role.Parse(request.GetRoles()) // those of a later Talos stay
	if roles.Empty() {
		return nil, errors.New("at least one role is required")
	}
	ca := c.Machine().Security().IssuingCA()
	authority, err := x509.NewCertificateAuthorityFromCertificateAndKey(ca)
	if err != nil {
		return nil, err
	}
	now := s.boot.now()
	pair, err := x509.NewKeyPair(authority, x509.Organization(roles.Strings()...),
		x509.NotBefore(now), x509.NotAfter(now.Add(request.GetCrtTtl().AsDuration())),
		x509.KeyUsage(stdx509.KeyUsageDigitalSignature), x509.ExtKeyUsage([]stdx509.ExtKeyUsage{stdx509.ExtKeyUsageClientAuth}))
	if err != nil {
		return nil, err
	}
	talosconfig, err := clientconfig.NewConfig(c.K8sClusterConfig().ClusterName(), []string{s.boot.node.address}, ca.Crt,
		x509.NewCertificateAndKeyFromKeyPair(pair)).Bytes()
	if err != nil {
		return nil, err
	}
	return &machine.GenerateClientConfigurationResponse{Messages: []*machine.GenerateClientConfiguration{{
		Ca: ca.Crt, Crt: pair.CrtPEM, Key: pair.KeyPEM, Talosconfig: talosconfig,
	}}}, nil
}

// timeService answers the calls of TimeService.
type timeService struct {
	timeapi.UnimplementedTimeServiceServer

	boot *boot
}

func (s *timeService) Time(context.Context, *emptypb.Empty) (*timeapi.TimeResponse, error) {
	return s.answer("")
}

func (s *timeService) TimeCheck(_ context.Context, request *timeapi.TimeRequest) (*timeapi.TimeResponse, error) {
	return s.answer(request.GetServer())
}

func (s *timeService) answer(server string) (*timeapi.TimeResponse, error) {
	return &timeapi.TimeResponse{Messages: []*timeapi.Time{{
		Server: server, Localtime: timestamppb.New(s.boot.now()), Remotetime: timestamppb.Now(),
	}}}, nil
}
