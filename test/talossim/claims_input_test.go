// SPDX-License-Identifier: Apache-2.0

package talossim_test

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/maesh-dev/ichor/test/talossim"
)

const (
	sourceSequences = "Talos source: internal/app/machined/pkg/runtime, CanTakeOver; v1alpha1 controller, Run"
	sourceHelper    = "Talos source: internal/app/internal/machinehelper, CheckControlplane"
	sourceForfeit   = "Talos source: internal/pkg/etcd, ForfeitLeadership"
	sourceLearner   = "etcd source: server/etcdserver/api/v3rpc, isRPCSupportedForLearner; newStreamInterceptor"
	sourceInstaller = "Talos source: cmd/installer/pkg/install, PreflightChecks; machinery, compatibility"
)

// onlyOfControlPlanes are calls that a worker does not have.
func onlyOfControlPlanes(s *subject, c *client.Client) map[string]error {
	_, list := c.EtcdMemberList(s.ctx, &machine.EtcdMemberListRequest{})
	_, status := c.EtcdStatus(s.ctx)
	_, alarms := c.EtcdAlarmList(s.ctx)
	_, disarm := c.EtcdAlarmDisarm(s.ctx)
	_, forfeit := c.EtcdForfeitLeadership(s.ctx, &machine.EtcdForfeitLeadershipRequest{})
	_, access := c.Kubeconfig(s.ctx)
	_, credentials := c.GenerateClientConfiguration(s.ctx, &machine.GenerateClientConfigurationRequest{
		Roles: []string{string(role.Reader)}, CrtTtl: durationpb.New(time.Hour),
	})
	return map[string]error{
		"list": list, "status": status, "alarms": alarms, "disarm": disarm, "forfeit": forfeit, "kubeconfig": access, "credentials": credentials,
		"leave":  c.EtcdLeaveCluster(s.ctx, &machine.EtcdLeaveClusterRequest{}),
		"remove": c.EtcdRemoveMemberByID(s.ctx, &machine.EtcdRemoveMemberByIDRequest{MemberId: 1}),
	}
}

// changes are calls that only an administrator may make.
func changes(s *subject, c *client.Client) map[string]error {
	_, applied := apply(s, c, machine.ApplyConfigurationRequest_NO_REBOOT, s.config(machinetype.TypeControlPlane))
	_, forfeit := c.EtcdForfeitLeadership(s.ctx, &machine.EtcdForfeitLeadershipRequest{})
	_, legacy := c.UpgradeWithOptions(s.ctx, client.WithUpgradeImage(newer114))
	_, lifecycle := upgrade(s, c, newer114)
	return map[string]error{
		"apply": applied, "forfeit": forfeit, "legacy upgrade": legacy, "upgrade": lifecycle,
		"reset": c.Reset(s.ctx, true, true), "rollback": c.Rollback(s.ctx), "bootstrap": c.Bootstrap(s.ctx, &machine.BootstrapRequest{}),
		"leave":  c.EtcdLeaveCluster(s.ctx, &machine.EtcdLeaveClusterRequest{}),
		"remove": c.EtcdRemoveMemberByID(s.ctx, &machine.EtcdRemoveMemberByIDRequest{MemberId: 1}),
	}
}

var inputClaims = []claim{
	{
		says: "what is no configuration, or two, is refused and changes nothing", source: "machinery: configloader; " + sourceApply,
		check: func(_ *testing.T, s *subject) {
			good, before := s.config(machinetype.TypeControlPlane), s.node.Config()
			for name, bad := range map[string][]byte{
				"nothing": nil, "blanks": []byte(" \n"), "a comment": []byte("# nothing\n"), "empty documents": []byte("---\n---\n"), "a list": []byte("[]"),
				"an empty object": []byte("{}"), "no text": {0, 1, 2, 255}, "two": slices.Concat(good, []byte("\n---\n"), good),
				"cut off": good[:len(good)/2],
			} {
				for _, mode := range []machine.ApplyConfigurationRequest_Mode{
					machine.ApplyConfigurationRequest_AUTO, machine.ApplyConfigurationRequest_STAGED, machine.ApplyConfigurationRequest_TRY,
				} {
					_, err := apply(s, s.as(role.Admin), mode, bad)
					s.Expect(err).To(code(codes.InvalidArgument), "%s, %s", name, mode)
				}
			}
			s.Expect(s.node.Config()).To(Equal(before))
			large := append(bytes.Clone(good), bytes.Repeat([]byte("# a comment\n"), 1<<14)...)
			_, err := apply(s, s.as(role.Admin), machine.ApplyConfigurationRequest_AUTO, large)
			s.Expect(err).NotTo(HaveOccurred(), "it is large, and right")
			s.Expect(s.node.Config()).To(Equal(large))
		},
	},
	{
		says: "a mode that there is not is refused", source: sourceApply,
		check: func(_ *testing.T, s *subject) {
			_, err := apply(s, s.as(role.Admin), 99, s.config(machinetype.TypeControlPlane, hostnamePatch))
			s.Expect(err).To(code(codes.InvalidArgument))
			s.Expect(hostname(s)).To(Equal("cp1"))
		},
	},
	{
		says: "any call but another try ends a try, even one that is refused, and what is tried stays until the next boot", source: sourceApply,
		check: func(_ *testing.T, s *subject) {
			disk := s.node.Config()
			_, err := s.as(role.Admin).ApplyConfiguration(s.ctx, &machine.ApplyConfigurationRequest{
				Data: s.config(machinetype.TypeControlPlane, hostnamePatch),
				Mode: machine.ApplyConfigurationRequest_TRY, TryModeTimeout: durationpb.New(300 * time.Millisecond),
			})
			s.Expect(err).NotTo(HaveOccurred())
			_, err = apply(s, s.as(role.Admin), machine.ApplyConfigurationRequest_STAGED, []byte("nonsense"))
			s.Expect(err).To(code(codes.InvalidArgument))
			s.Consistently(func() string { return hostname(s) }, "600ms", "20ms").Should(Equal("renamed"))
			s.Expect(s.node.Config()).To(Equal(disk))
			reboot(s)
			s.Expect(hostname(s)).To(Equal("cp1"))
		},
	},
	{
		says: "one of several that apply at once gets through, and none waits", source: sourceApply,
		check: func(_ *testing.T, s *subject) {
			config := s.config(machinetype.TypeControlPlane, hostnamePatch)
			var callers sync.WaitGroup
			errs := make(chan error, 20)
			for i := range cap(errs) {
				c := s.as(role.Admin)
				callers.Go(func() {
					ctx, cancel := context.WithCancel(s.ctx)
					if i%4 == 3 {
						cancel() // a caller who goes away
					}
					defer cancel()
					_, err := c.ApplyConfiguration(ctx, &machine.ApplyConfigurationRequest{Data: config, Mode: machine.ApplyConfigurationRequest_NO_REBOOT})
					errs <- err
				})
			}
			callers.Wait()
			close(errs)
			applied := 0
			for err := range errs {
				s.Expect(err).To(Or(BeNil(), code(codes.FailedPrecondition), code(codes.Canceled)))
				if err == nil {
					applied++
				}
			}
			s.Expect(applied).To(BeNumerically(">", 0))
			s.Expect(s.node.Config()).To(Equal(config))
			s.Expect(hostname(s)).To(Equal("renamed"))
		},
	},
	{
		says: "nobody but an administrator changes a node or its etcd", source: sourceRoles,
		check: func(_ *testing.T, s *subject) {
			for _, as := range []role.Role{role.Reader, role.Operator, role.EtcdBackup, role.MetaWriter, role.Impersonator} {
				for name, err := range changes(s, s.as(as)) {
					s.Expect(err).To(code(codes.PermissionDenied), "%s by %s", name, as)
				}
			}
			s.Expect(s.node.Version()).To(Equal("v1.14.1"))
		},
	},
	{
		says: "a worker has no calls of a control-plane node", source: sourceHelper, options: subjectOptions{worker: true},
		check: func(_ *testing.T, s *subject) {
			for name, err := range onlyOfControlPlanes(s, s.as(role.Admin)) {
				s.Expect(err).To(code(codes.Unimplemented), name)
				s.Expect(err).To(MatchError(ContainSubstring("is only available on control plane nodes")), name)
			}
		},
	},
	{
		says: "credentials are for some time, and of some role", source: "Talos source: internal/app/machined/internal/server/v1alpha1, GenerateClientConfiguration",
		check: func(_ *testing.T, s *subject) {
			sign := func(ttl *durationpb.Duration, roles ...string) error {
				_, err := s.as(role.Admin).GenerateClientConfiguration(s.ctx, &machine.GenerateClientConfigurationRequest{Roles: roles, CrtTtl: ttl})
				return err
			}
			s.Expect(sign(nil, "os:reader")).To(code(codes.InvalidArgument))
			s.Expect(sign(durationpb.New(-time.Hour), "os:reader")).To(code(codes.InvalidArgument))
			s.Expect(sign(durationpb.New(time.Hour))).To(code(codes.Unknown))
			s.Expect(sign(durationpb.New(time.Hour), "os:reader", "os:of-a-later-talos")).To(Succeed())
		},
	},
	{
		says: "etcd is not bootstrapped empty for one who wants a snapshot back", source: "a real node restores it, which none of these can", options: subjectOptions{bare: true},
		check: func(_ *testing.T, s *subject) {
			s.Expect(s.as(role.Admin).Bootstrap(s.ctx, &machine.BootstrapRequest{RecoverEtcd: true})).To(code(codes.Unimplemented))
			s.Consistently(s.node.EtcdMemberID, "100ms", "10ms").Should(BeZero())
		},
	},
	{
		says: "a call to an etcd that does not run gets no connection", source: "Talos source: internal/pkg/etcd, NewLocalClient, which waits for five seconds",
		options: subjectOptions{bare: true},
		check: func(_ *testing.T, s *subject) {
			_, err := s.as(role.Reader).EtcdStatus(s.ctx)
			s.Expect(err).To(code(codes.DeadlineExceeded))
		},
	},
}

var etcdInputClaims = []claim{
	{
		says: "a member that is not there is not removed, and one that removes itself is gone for good", source: sourceEtcd, options: three,
		check: func(_ *testing.T, s *subject) {
			s.Expect(remove(s, s.node, 0)).To(code(codes.NotFound))
			s.Expect(remove(s, s.node, 12345)).To(code(codes.NotFound))
			last := s.nodes[2]
			s.Expect(remove(s, last, last.EtcdMemberID())).To(Succeed())
			s.Expect(members(s, s.node)).To(HaveLen(2))
			s.Expect(last.Crash(s.ctx)).To(Succeed())
			_, err := s.client(last, role.Reader).EtcdStatus(s.ctx)
			s.Expect(err).To(HaveOccurred(), "its data are of a member that was removed")
			s.Expect(s.client(last, role.Admin).Bootstrap(s.ctx, &machine.BootstrapRequest{})).To(code(codes.AlreadyExists))
			s.Expect(members(s, s.node)).To(HaveLen(2))
		},
	},
	{
		says: "leadership goes to the first other member of the list, or stays with an error", source: sourceForfeit, options: three,
		check: func(_ *testing.T, s *subject) {
			first := s.nodes[slices.IndexFunc(s.nodes, func(n *talossim.Node) bool {
				return n != s.node && n.EtcdMemberID() == members(s, s.node)[1].GetId()
			})]
			first.PowerOff()
			_, err := s.as(role.Admin).EtcdForfeitLeadership(s.ctx, &machine.EtcdForfeitLeadershipRequest{})
			s.Expect(err).To(HaveOccurred(), "it does not run")
			s.Expect(leader(s, s.node)).To(Equal(s.node.EtcdMemberID()))
		},
	},
	{
		says: "without a leader nobody leaves or gives up leadership", source: sourceEtcd, options: three,
		check: func(_ *testing.T, s *subject) {
			s.nodes[1].PowerOff()
			s.nodes[2].PowerOff()
			noLeader := MatchError(ContainSubstring("no leader"))
			s.Expect(leave(s, s.node)).To(noLeader)
			s.Expect(remove(s, s.node, s.node.EtcdMemberID())).To(noLeader)
			_, err := s.as(role.Admin).EtcdForfeitLeadership(s.ctx, &machine.EtcdForfeitLeadershipRequest{})
			s.Expect(err).To(noLeader)
			_, err = s.as(role.Reader).EtcdMemberList(s.ctx, &machine.EtcdMemberListRequest{})
			s.Expect(err).To(noLeader)
		},
	},
	{
		says: "a learner tells its status and gives a snapshot, and nothing else", source: sourceLearner,
		check: func(_ *testing.T, s *subject) {
			learner, err := s.world.NewNode(talossim.NodeOptions{Name: "cp2"})
			s.Expect(err).NotTo(HaveOccurred())
			learner.SetUserData(s.node.Config())
			learner.SetFaults(talossim.Faults{EtcdNeverCatchesUp: true})
			s.Expect(learner.PowerOn(s.ctx)).To(Succeed())
			c := s.client(learner, role.Admin)
			s.Eventually(func() error { _, err := c.EtcdStatus(s.ctx); return err }, wait, "5ms").Should(Succeed())
			s.Expect(snapshot(s, c)).NotTo(BeEmpty())
			_, list := c.EtcdAlarmList(s.ctx)
			_, disarm := c.EtcdAlarmDisarm(s.ctx)
			_, defragment := c.EtcdDefragment(s.ctx)
			for _, err := range []error{list, disarm, defragment} {
				s.Expect(err).To(MatchError(ContainSubstring("rpc not supported for learner")))
			}
		},
	},
	{
		says: "no legacy upgrade begins while a member is corrupt", source: "etcd source: server/etcdserver/apply, applierV3Corrupt", options: subjectOptions{image: image112, controlPlanes: 3},
		check: func(_ *testing.T, s *subject) {
			s.Expect(s.nodes[1].RaiseEtcdAlarm(machine.EtcdMemberAlarm_CORRUPT)).To(Succeed())
			_, err := s.as(role.Admin).UpgradeWithOptions(s.ctx, client.WithUpgradeImage(image113))
			s.Expect(err).To(MatchError(ContainSubstring("corrupt")))
		},
	},
	{
		says: "a graceful reset without a quorum leaves the node as it is, also with an alarm raised", source: sourceReset, options: three,
		check: func(_ *testing.T, s *subject) {
			s.Expect(s.node.RaiseEtcdAlarm(machine.EtcdMemberAlarm_NOSPACE)).To(Succeed())
			s.nodes[1].PowerOff()
			s.nodes[2].PowerOff()
			ch := events(s)
			s.Expect(s.as(role.Admin).Reset(s.ctx, true, true)).To(Succeed())
			receiveUntil(s, ch, sequenceOf, "reset STOP")
			s.Expect(s.node.Config()).NotTo(BeNil())
			s.Eventually(func() string { return statusOf(s) }, wait, "5ms").Should(HavePrefix("running"))
			s.Expect(s.nodes[1].PowerOn(s.ctx)).To(Succeed())
			s.Eventually(func() bool { return s.voter(s.nodes[1]) }, wait, "5ms").Should(BeTrue())
			s.Expect(s.as(role.Admin).Reset(s.ctx, true, true)).To(Succeed(), "another may follow")
		},
	},
}

var sequenceClaims = []claim{
	{
		says: "a reset does not end a reboot, and is answered all the same", source: sourceSequences, options: three,
		check: func(_ *testing.T, s *subject) {
			before, c := s.node.BootID(), s.as(role.Admin)
			s.Expect(c.Reboot(s.ctx)).To(Succeed())
			s.Expect(c.Reset(s.ctx, true, true)).To(Or(Succeed(), code(codes.Unavailable)))
			rebooted(s, before)
			s.Expect(s.node.Config()).NotTo(BeNil())
			s.Eventually(func() int { return len(members(s, s.nodes[1])) }, wait, "5ms").Should(Equal(3))
			s.Expect(s.node.Boots()).To(Equal(2))
		},
	},
	{
		says: "a reboot ends a reset that has not wiped anything", source: sourceSequences, options: three,
		check: func(_ *testing.T, s *subject) {
			s.nodes[2].PowerOff() // it waits until its member may leave
			before, c, id := s.node.BootID(), s.as(role.Admin), s.node.EtcdMemberID()
			ch := events(s)
			s.Expect(c.Reset(s.ctx, true, true)).To(Succeed())
			receiveUntil(s, ch, sequenceOf, "reset START")
			s.Expect(c.Reset(s.ctx, false, true)).To(Succeed())
			receiveUntil(s, ch, sequenceOf, "reset NOOP")
			s.Expect(c.Reboot(s.ctx)).To(Succeed())
			rebooted(s, before)
			s.Expect(s.node.Config()).NotTo(BeNil())
			s.Expect(s.node.EtcdMemberID()).To(Equal(id))
		},
	},
}

var installerClaims = []claim{
	{
		says: "an installer refuses what may not follow the Talos that runs, and a Kubernetes that it does not run", source: sourceInstaller,
		check: func(_ *testing.T, s *subject) {
			for _, image := range []string{image112, "ghcr.io/siderolabs/installer:v1.12.7"} {
				s.Expect(pull(s, s.as(role.Admin), image)).To(Succeed())
				exit, err := upgrade(s, s.as(role.Admin), image)
				s.Expect(err).NotTo(HaveOccurred())
				s.Expect(exit).To(Equal(int32(1)))
			}
			reboot(s)
			s.Expect(s.node.Version()).To(Equal("v1.14.1"))
			pullAndUpgrade(s, image113)
		},
	},
	{
		says: "an installer refuses a Kubernetes that its Talos does not run", source: sourceInstaller, options: subjectOptions{image: image112},
		check: func(_ *testing.T, s *subject) {
			config := s.config(machinetype.TypeControlPlane, `{machine: {kubelet: {image: "ghcr.io/siderolabs/kubelet:v1.30.4"}}}`)
			_, err := apply(s, s.as(role.Admin), machine.ApplyConfigurationRequest_NO_REBOOT, config)
			s.Expect(err).NotTo(HaveOccurred())
			before := s.node.BootID()
			_, err = s.as(role.Admin).UpgradeWithOptions(s.ctx, client.WithUpgradeImage(image113))
			s.Expect(err).NotTo(HaveOccurred())
			rebooted(s, before)
			s.Expect(s.node.Version()).To(Equal("v1.12.0"))
		},
	},
}
