// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	stdx509 "crypto/x509"
	"fmt"
	"runtime"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	timeapi "github.com/siderolabs/talos/pkg/machinery/api/time"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	runtimeres "github.com/siderolabs/talos/pkg/machinery/resources/runtime"
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

func (s *machineService) ServiceList(context.Context, *emptypb.Empty) (*machine.ServiceListResponse, error) {
	list := &machine.ServiceList{}
	for _, service := range s.boot.services() {
		list.Services = append(list.Services, &machine.ServiceInfo{
			Id: service.id, State: service.state, Events: &machine.ServiceEvents{},
			Health: &machine.ServiceHealth{Unknown: !service.running, Healthy: service.healthy},
		})
	}
	return &machine.ServiceListResponse{Messages: []*machine.ServiceList{list}}, nil
}

// Read gives the one file that tells the boot ID on versions that have no resource for it.
func (s *machineService) Read(request *machine.ReadRequest, stream machine.MachineService_ReadServer) error {
	if request.GetPath() != "/proc/sys/kernel/random/boot_id" {
		return status.Errorf(codes.Unknown, "stat %s: no such file or directory", request.GetPath())
	}
	return stream.Send(&common.Data{Bytes: []byte(s.boot.id + "\n")})
}

func (s *machineService) Reboot(_ context.Context, request *machine.RebootRequest) (*machine.RebootResponse, error) {
	s.boot.leave(runtimeres.MachineStageRebooting, s.boot.node.start)
	return &machine.RebootResponse{Messages: []*machine.Reboot{{ActorId: "reboot-" + request.GetMode().String()}}}, nil
}

// leave ends the boot after the call is answered.
func (b *boot) leave(stage runtimeres.MachineStage, next func(context.Context) error) {
	b.node.leaveFor(b, func(b *boot) { b.setStage(stage) }, next)
}

func (s *machineService) Shutdown(context.Context, *machine.ShutdownRequest) (*machine.ShutdownResponse, error) {
	s.boot.leave(runtimeres.MachineStageShuttingDown, s.boot.node.turnOff)
	return &machine.ShutdownResponse{Messages: []*machine.Shutdown{{}}}, nil
}

// turnOff is the end of a shutdown.
func (n *Node) turnOff(context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.on = false
	return nil
}

func (s *machineService) Rollback(context.Context, *machine.RollbackRequest) (*machine.RollbackResponse, error) {
	n := s.boot.node
	if err := s.boot.mustBeConfigured("rollback"); err != nil {
		return nil, err
	}
	n.mu.Lock()
	err := n.disk.revert()
	n.mu.Unlock()
	if err != nil {
		return nil, status.Error(codes.Unknown, err.Error())
	}
	s.boot.leave(runtimeres.MachineStageRebooting, n.start)
	return &machine.RollbackResponse{Messages: []*machine.Rollback{{}}}, nil
}

// Upgrade is the legacy call: it validates, and then does everything by itself.
func (s *machineService) Upgrade(ctx context.Context, request *machine.UpgradeRequest) (*machine.UpgradeResponse, error) {
	b, n := s.boot, s.boot.node
	if err := b.mustBeConfigured("upgrade"); err != nil {
		return nil, err
	}
	image, err := parseImage(request.GetImage())
	if err != nil || !n.world.hasImage(request.GetImage()) || n.Faults().PullFails != "" {
		return nil, status.Errorf(codes.Unknown, "error validating installer image %q: cannot be pulled: %v %s", request.GetImage(), err, n.Faults().PullFails)
	}
	if b.config().controlPlane() && !request.GetForce() {
		if err := b.validateEtcdForUpgrade(ctx); err != nil {
			return nil, status.Errorf(codes.Unknown, "error validating etcd for upgrade: %v", err)
		}
	}
	if !b.changing.TryLock() {
		return nil, status.Error(codes.FailedPrecondition, "another operation is in progress")
	}
	b.leave(runtimeres.MachineStageUpgrading, func(ctx context.Context) error {
		n.mu.Lock()
		if n.faults.InstallExitCode == 0 {
			n.disk.install(image)
		}
		n.mu.Unlock()
		return n.start(ctx)
	})
	return &machine.UpgradeResponse{Messages: []*machine.Upgrade{{Ack: "Upgrade request received"}}}, nil
}

// validateEtcdForUpgrade is what the legacy upgrade asks of a control-plane node's cluster.
func (b *boot) validateEtcdForUpgrade(ctx context.Context) error {
	etcd := b.node.member()
	if etcd == nil || !etcd.running() {
		return errNotRunning
	}
	members, err := etcd.list(ctx, false)
	if err != nil {
		return err
	}
	if len(members) == 2 {
		return fmt.Errorf("etcd member count(2) is insufficient to maintain quorum if upgrade commences")
	}
	for _, member := range members {
		if len(member.GetClientUrls()) == 0 {
			return fmt.Errorf("etcd member %x is not started", member.GetId())
		}
	}
	return nil
}

// Reset wipes what it is told to and turns the machine off, or boots it again.
func (s *machineService) Reset(ctx context.Context, request *machine.ResetRequest) (*machine.ResetResponse, error) {
	b, n := s.boot, s.boot.node
	if err := b.mustBeConfigured("reset"); err != nil {
		return nil, err
	}
	labels := map[string]bool{}
	for _, partition := range request.GetSystemPartitionsToWipe() {
		switch partition.GetLabel() {
		case "EFI", "BIOS", "BOOT", "META", "STATE", "EPHEMERAL":
			labels[partition.GetLabel()] = partition.GetWipe()
		default:
			return nil, status.Errorf(codes.Unknown, "failed to find system volume for partition %q", partition.GetLabel())
		}
	}
	if etcd := n.member(); request.GetGraceful() && etcd != nil && etcd.running() {
		if err := b.leaveEtcd(ctx); err != nil {
			// The sequence fails in its own time; the caller has its answer by then, and the node goes on as it was.
			return &machine.ResetResponse{Messages: []*machine.Reset{{ActorId: "reset"}}}, nil //nolint:nilerr // as above
		}
	}
	next := n.start
	if !request.GetReboot() {
		next = n.turnOff
	}
	b.leave(runtimeres.MachineStageResetting, func(ctx context.Context) error {
		n.wipe(request.GetMode(), labels)
		return next(ctx)
	})
	return &machine.ResetResponse{Messages: []*machine.Reset{{ActorId: "reset"}}}, nil
}

func (n *Node) wipe(mode machine.ResetRequest_WipeMode, labels map[string]bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if mode == machine.ResetRequest_USER_DISKS {
		return
	}
	all := len(labels) == 0
	n.disk.wipe(all, labels)
	if n.etcd != nil && (all || labels["EPHEMERAL"]) {
		_ = n.etcd.wipe() // if files are left, the next start fails on them
	}
}

func (b *boot) mustBeConfigured(what string) error {
	if b.config() == nil {
		return status.Errorf(codes.FailedPrecondition, "%s: not possible in maintenance mode", what)
	}
	return nil
}

// Kubeconfig is an administrator's, as a compressed archive of one file.
func (s *machineService) Kubeconfig(_ *emptypb.Empty, stream machine.MachineService_KubeconfigServer) error {
	c := s.boot.config()
	if c == nil || !c.controlPlane() {
		return status.Error(codes.FailedPrecondition, "kubeconfig is only available on control plane nodes")
	}
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
	c := s.boot.config()
	if c == nil || !c.controlPlane() {
		return nil, status.Error(codes.FailedPrecondition, "client configuration (talosconfig) can't be generated on worker nodes")
	}
	roles, unknown := role.Parse(request.GetRoles())
	if len(unknown) > 0 || roles.Empty() {
		return nil, status.Errorf(codes.InvalidArgument, "roles %q: unknown, or none", unknown)
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
