// SPDX-License-Identifier: Apache-2.0

package talossim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	configres "github.com/siderolabs/talos/pkg/machinery/resources/config"
	runtimeres "github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/maesh-dev/ichor/test/talossim"
)

// Sources of claims.
const (
	sourceRoles     = "Talos source: internal/app/machined/pkg/system/services/machined.go, rules"
	sourceApply     = "Talos source: internal/app/machined/internal/server/v1alpha1, ApplyConfiguration (facts 4.4)"
	sourceUpgrade   = "Talos source: internal/app/machined/internal/server, lifecycle (facts 4.3)"
	sourceEtcd      = "Talos source: internal/app/machined/internal/server/v1alpha1, Etcd* (facts 4.6)"
	sourceBootstrap = "Talos source: internal/app/machined/internal/server/v1alpha1, Bootstrap; v1alpha1 sequencer, Bootstrap"
	sourceStrict    = "etcd source: server/etcdserver, mayAddMember, mayPromoteMember, mayRemoveMember (3.6.16)"
	sourceJoin      = "Talos source: internal/app/machined/pkg/system/services/etcd.go, addMember"
	sourceFiles     = "Talos source: internal/app/machined/internal/server, List; pkg/archiver, Walker"
	sourceReset     = "Talos source: v1alpha1 sequencer, Reset (facts 4.6)"
	sourceClient    = "tried with machinery's client (facts 4.5, 5)"
	sourceResources = "Talos source: pkg/machinery/resources, Sensitivity of each kind (facts 4.2)"
	sourceImmediate = "Talos documentation: Editing machine configuration"
)

const schematic = "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba"

// code matches an error by its gRPC code, which is all that a caller may go by.
func code(want codes.Code) types.GomegaMatcher {
	return WithTransform(func(err error) string { return status.Code(err).String() }, Equal(want.String()))
}

var conformance = map[string][]claim{
	"TLS": {
		{
			says: "a caller without a certificate is refused by a node that has a configuration", source: sourceClient,
			check: func(_ *testing.T, s *subject) {
				_, err := s.maintenanceClient(s.node).Version(s.ctx)
				s.Expect(err).To(code(codes.Unavailable))
			},
		},
		{
			says: "a caller of another cluster is refused", source: sourceClient,
			check: func(t *testing.T, s *subject) {
				c, err := clusterOf(t, "v1.12").Client(s.ctx, s.node, role.Admin)
				s.Expect(err).NotTo(HaveOccurred())
				defer c.Close() //nolint:errcheck // nothing to do about it
				_, err = c.Version(s.ctx)
				s.Expect(err).To(code(codes.Unavailable))
			},
		},
		{
			says: "a worker has no API before a control-plane node of its cluster runs", source: "Talos documentation: trustd signs a worker's certificate",
			options: subjectOptions{maintenance: true},
			check: func(_ *testing.T, s *subject) {
				worker := s.start(talossim.NodeOptions{Name: "w1"}, s.config(machinetype.TypeWorker))
				_, err := s.client(worker, role.Admin).Version(s.ctx)
				s.Expect(err).To(code(codes.Unavailable))
				s.start(talossim.NodeOptions{Name: "cp1"}, s.config(machinetype.TypeControlPlane))
				s.Eventually(func() error {
					_, err := s.client(worker, role.Admin).Version(s.ctx)
					return err
				}, wait, "5ms").Should(Succeed())
			},
		},
	},
	"roles": {
		{
			says: "a reader reads and changes nothing", source: sourceRoles, harmless: true,
			check: func(_ *testing.T, s *subject) {
				c := s.as(role.Reader)
				_, err := c.Version(s.ctx)
				s.Expect(err).NotTo(HaveOccurred())
				_, err = c.ServiceList(s.ctx)
				s.Expect(err).NotTo(HaveOccurred())
				_, err = c.EtcdMemberList(s.ctx, &machine.EtcdMemberListRequest{})
				s.Expect(err).NotTo(HaveOccurred())
				s.Expect(c.Reboot(s.ctx)).To(code(codes.PermissionDenied))
				s.Expect(c.Bootstrap(s.ctx, &machine.BootstrapRequest{})).To(code(codes.PermissionDenied))
				s.Expect(c.EtcdLeaveCluster(s.ctx, &machine.EtcdLeaveClusterRequest{})).To(code(codes.PermissionDenied))
				_, err = c.Kubeconfig(s.ctx)
				s.Expect(err).To(code(codes.PermissionDenied))
			},
		},
		{
			says: "an operator reboots and does not upgrade", source: sourceRoles,
			check: func(_ *testing.T, s *subject) {
				c := s.as(role.Operator)
				_, err := upgrade(s, c, newer114)
				s.Expect(err).To(code(codes.PermissionDenied))
				s.Expect(pull(s, c, newer114)).To(Succeed())
				s.Expect(c.Reboot(s.ctx)).To(Succeed())
			},
		},
		{
			says: "an etcd backup takes snapshots alone", source: sourceRoles, harmless: true,
			check: func(_ *testing.T, s *subject) {
				c := s.as(role.EtcdBackup)
				s.Expect(snapshot(s, c)).NotTo(BeEmpty())
				_, err := c.Version(s.ctx)
				s.Expect(err).To(code(codes.PermissionDenied))
			},
		},
	},
	"State": {
		{
			says: "a sensitive resource is for administrators", source: sourceResources, harmless: true,
			check: func(_ *testing.T, s *subject) {
				_, err := safe.StateGetByID[*configres.MachineConfig](s.ctx, s.as(role.Reader).COSI, configres.ActiveID)
				s.Expect(err).To(code(codes.PermissionDenied))
				config, err := safe.StateGetByID[*configres.MachineConfig](s.ctx, s.as(role.Admin).COSI, configres.ActiveID)
				s.Expect(err).NotTo(HaveOccurred())
				s.Expect(config.Config().Machine().Type()).To(Equal(machinetype.TypeControlPlane))
			},
		},
		{
			says: "machine status, version and boot ID are for readers", source: sourceResources, harmless: true,
			check: func(_ *testing.T, s *subject) {
				c := s.as(role.Reader).COSI
				machineStatus, err := safe.StateGetByID[*runtimeres.MachineStatus](s.ctx, c, runtimeres.MachineStatusID)
				s.Expect(err).NotTo(HaveOccurred())
				s.Expect(machineStatus.TypedSpec().Stage).To(Equal(runtimeres.MachineStageRunning))
				s.Expect(machineStatus.TypedSpec().Status.UnmetConditions).To(BeEmpty())
				bootID, err := safe.StateGetByID[*runtimeres.BootID](s.ctx, c, runtimeres.BootIDID)
				s.Expect(err).NotTo(HaveOccurred())
				s.Expect(bootID.TypedSpec().BootID).NotTo(BeEmpty())
			},
		},
		{
			says: "there is no boot ID before 1.14, and the file has it", source: "Talos 1.14 release notes; facts 4.3",
			options: subjectOptions{image: image113},
			check: func(_ *testing.T, s *subject) {
				c := s.as(role.Admin)
				_, err := safe.StateGetByID[*runtimeres.BootID](s.ctx, c.COSI, runtimeres.BootIDID)
				s.Expect(state.IsNotFoundError(err)).To(BeTrue(), "%v", err)
				s.Expect(read(s, c, "/proc/sys/kernel/random/boot_id")).To(Equal(s.node.BootID() + "\n"))
			},
		},
		{
			says: "a schematic shows with its extensions", source: "Talos source: runtime.ExtensionStatus, runtime.ImageFactorySchematic",
			options: subjectOptions{image: "factory.talos.dev/metal-installer/" + schematic + ":v1.14.1"},
			check: func(_ *testing.T, s *subject) {
				list, err := safe.StateListAll[*runtimeres.ExtensionStatus](s.ctx, s.as(role.Reader).COSI)
				s.Expect(err).NotTo(HaveOccurred())
				names := map[string]string{}
				for extension := range list.All() {
					names[extension.TypedSpec().Metadata.Name] = extension.TypedSpec().Metadata.Version
				}
				s.Expect(names).To(And(HaveKeyWithValue("schematic", schematic), HaveKey("iscsi-tools")))
			},
		},
		{
			says: "a watch sees the end of the boot and ends with it", source: sourceClient,
			check: func(_ *testing.T, s *subject) {
				events := make(chan state.Event)
				s.Expect(s.as(role.Reader).COSI.Watch(s.ctx, runtimeres.NewMachineStatus().Metadata(), events)).To(Succeed())
				s.Eventually(events, wait).Should(Receive(HaveField("Type", state.Created)))
				s.Expect(s.as(role.Operator).Reboot(s.ctx)).To(Succeed())
				s.Eventually(events, wait).Should(Receive(WithTransform(stageOf, Equal(runtimeres.MachineStageRebooting))))
			},
		},
	},
	"Bootstrap": {
		{
			says: "starts etcd and makes the node ready", source: sourceEtcd, options: subjectOptions{bare: true},
			check: func(_ *testing.T, s *subject) {
				s.Expect(ready(s)).To(BeFalse())
				s.Expect(s.as(role.Admin).Bootstrap(s.ctx, &machine.BootstrapRequest{})).To(Succeed())
				s.Eventually(func() bool { return ready(s) }, wait, "5ms").Should(BeTrue())
			},
		},
		{
			says: "is answered before there is data, and once more without effect until then", source: sourceBootstrap,
			options: subjectOptions{bare: true},
			check: func(_ *testing.T, s *subject) {
				s.Expect(s.as(role.Admin).Bootstrap(s.ctx, &machine.BootstrapRequest{})).To(Succeed())
				s.Expect(s.node.EtcdMemberID()).To(BeZero())
				s.Expect(s.as(role.Admin).Bootstrap(s.ctx, &machine.BootstrapRequest{})).To(Or(Succeed(), code(codes.AlreadyExists)))
				s.Eventually(func() bool { return s.voter(s.node) }, wait, "5ms").Should(BeTrue())
				s.Expect(members(s, s.node)).To(HaveLen(1))
			},
		},
		{
			says: "is forgotten by a node that goes down before etcd has started", source: sourceBootstrap, options: subjectOptions{bare: true},
			check: func(_ *testing.T, s *subject) {
				s.Expect(s.as(role.Admin).Bootstrap(s.ctx, &machine.BootstrapRequest{})).To(Succeed())
				s.Expect(s.node.Crash(s.ctx)).To(Succeed())
				s.Consistently(s.node.EtcdMemberID, "200ms", "20ms").Should(BeZero())
				s.Expect(s.as(role.Admin).Bootstrap(s.ctx, &machine.BootstrapRequest{})).To(Succeed())
				s.Eventually(func() bool { return s.voter(s.node) }, wait, "5ms").Should(BeTrue())
			},
		},
		{
			says: "is refused when there is data", source: sourceEtcd,
			check: func(_ *testing.T, s *subject) {
				s.Expect(s.as(role.Admin).Bootstrap(s.ctx, &machine.BootstrapRequest{})).To(code(codes.AlreadyExists))
			},
		},
		{
			says: "does not exist on a worker", source: sourceHelper, options: subjectOptions{worker: true},
			check: func(_ *testing.T, s *subject) {
				s.Expect(s.as(role.Admin).Bootstrap(s.ctx, &machine.BootstrapRequest{})).To(code(codes.Unimplemented))
			},
		},
		{
			says: "is refused on a worker before 1.14", source: sourceEtcd, options: subjectOptions{worker: true, image: image113},
			check: func(_ *testing.T, s *subject) {
				s.Expect(s.as(role.Admin).Bootstrap(s.ctx, &machine.BootstrapRequest{})).To(code(codes.FailedPrecondition))
			},
		},
		{
			says: "is refused until the time is known", source: sourceEtcd,
			options: subjectOptions{bare: true, faults: talossim.Faults{TimeUnsynced: true}},
			check: func(_ *testing.T, s *subject) {
				s.Expect(s.as(role.Admin).Bootstrap(s.ctx, &machine.BootstrapRequest{})).To(code(codes.FailedPrecondition))
			},
		},
		{
			says: "a second one, on a node that has not joined, makes a second cluster", source: "Talos documentation: bootstrap only once",
			options: subjectOptions{controlPlanes: 2, bare: true},
			check: func(_ *testing.T, s *subject) {
				s.nodes[1].SetFaults(talossim.Faults{EtcdNeverStarts: true})
				for _, n := range s.nodes {
					s.Expect(s.client(n, role.Admin).Bootstrap(s.ctx, &machine.BootstrapRequest{})).To(Succeed())
					s.Eventually(n.EtcdMemberID, wait, "5ms").ShouldNot(BeZero())
				}
				second := func() []uint64 {
					var ids []uint64
					for _, member := range members(s, s.nodes[1]) {
						ids = append(ids, member.GetId())
					}
					return ids
				}
				s.Eventually(second, wait, "5ms").Should(HaveLen(1), "a cluster of its own")
				s.Expect(second()).NotTo(ContainElement(s.nodes[0].EtcdMemberID()))
			},
		},
	},
	"ApplyConfiguration": applyClaims,
	"Upgrade":            upgradeClaims,
	"etcd":               etcdClaims,
	"proxy":              proxyClaims,
	"resources":          resourceClaims,
	"services":           serviceClaims,
	"List":               fileClaims,
	"Reset":              resetClaims,
	"input":              inputClaims,
	"etcd input":         etcdInputClaims,
	"sequences":          sequenceClaims,
	"installer":          installerClaims,
	"Reboot": {
		{
			says: "gives a new boot ID and keeps version and configuration", source: sourceUpgrade,
			check: func(_ *testing.T, s *subject) {
				before, config := s.node.BootID(), s.node.Config()
				s.Expect(s.as(role.Admin).Reboot(s.ctx, client.WithPowerCycle)).To(Succeed())
				rebooted(s, before)
				s.Expect(s.node.Version()).To(Equal("v1.14.1"))
				s.Expect(s.node.Config()).To(Equal(config))
				s.Eventually(func() bool { return s.voter(s.node) }, wait, "5ms").Should(BeTrue())
			},
		},
	},
	"Shutdown": {
		{
			says: "ends the node until it is powered on", source: "Talos documentation: talosctl shutdown",
			check: func(_ *testing.T, s *subject) {
				s.Expect(s.as(role.Operator).Shutdown(s.ctx)).To(Succeed())
				s.Eventually(s.node.BootID, wait, "5ms").Should(BeEmpty())
				s.Expect(s.node.PowerOn(s.ctx)).To(Succeed())
				s.Eventually(func() bool { return s.voter(s.node) }, wait, "5ms").Should(BeTrue())
			},
		},
	},
	"Kubeconfig": {
		{
			says: "is an administrator's, from a control-plane node", source: "Talos documentation: talosctl kubeconfig", harmless: true,
			check: func(_ *testing.T, s *subject) {
				kubeconfig, err := s.as(role.Admin).Kubeconfig(s.ctx)
				s.Expect(err).NotTo(HaveOccurred())
				s.Expect(string(kubeconfig)).To(ContainSubstring("client-certificate-data"))
			},
		},
		{
			says: "is refused on a worker", source: "Talos documentation: talosctl kubeconfig", options: subjectOptions{worker: true},
			check: func(_ *testing.T, s *subject) {
				_, err := s.as(role.Admin).Kubeconfig(s.ctx)
				s.Expect(err).To(HaveOccurred())
			},
		},
	},
	"Time": {
		{
			says: "is the node's own", source: "Talos source: TimeService",
			options: subjectOptions{faults: talossim.Faults{ClockSkew: -time.Minute}},
			check: func(_ *testing.T, s *subject) {
				s.node.SetFaults(talossim.Faults{})
				c := s.as(role.Reader)
				_, err := c.Version(s.ctx) // connected before the clock is wrong
				s.Expect(err).NotTo(HaveOccurred())
				s.node.SetFaults(talossim.Faults{ClockSkew: -24 * time.Hour})
				response, err := c.Time(s.ctx)
				s.Expect(err).NotTo(HaveOccurred())
				s.Expect(response.GetMessages()[0].GetLocaltime().AsTime()).To(BeTemporally("<", time.Now().Add(-23*time.Hour)))
			},
		},
	},
}

func stageOf(event state.Event) runtimeres.MachineStage {
	machineStatus, ok := event.Resource.(*runtimeres.MachineStatus)
	if !ok {
		return runtimeres.MachineStageUnknown
	}
	return machineStatus.TypedSpec().Stage
}

func ready(s *subject) bool {
	machineStatus, err := safe.StateGetByID[*runtimeres.MachineStatus](s.ctx, s.as(role.Reader).COSI, runtimeres.MachineStatusID)
	return err == nil && machineStatus.TypedSpec().Stage == runtimeres.MachineStageRunning && machineStatus.TypedSpec().Status.Ready
}

// rebooted waits for another boot than the one that was, by the node's own word.
func rebooted(s *subject, before string) {
	s.Eventually(func() string {
		bootID, err := read(s, s.as(role.Admin), "/proc/sys/kernel/random/boot_id")
		if err != nil {
			return before
		}
		return strings.TrimSpace(bootID)
	}, wait, "5ms").ShouldNot(Equal(before))
}

func members(s *subject, n *talossim.Node) []*machine.EtcdMember {
	response, err := s.client(n, role.Reader).EtcdMemberList(s.ctx, &machine.EtcdMemberListRequest{})
	s.Expect(err).NotTo(HaveOccurred())
	return response.GetMessages()[0].GetMembers()
}

// system is where images of the system are kept.
func system() *common.ContainerdInstance {
	return &common.ContainerdInstance{Driver: common.ContainerDriver_CRI, Namespace: common.ContainerdNamespace_NS_SYSTEM}
}
