// SPDX-License-Identifier: Apache-2.0

package talossim_test

import (
	"errors"
	"io"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc/codes"

	"github.com/maesh-dev/ichor/test/talossim"
)

func snapshot(s *subject, c *client.Client) string {
	reader, err := c.EtcdSnapshot(s.ctx, &machine.EtcdSnapshotRequest{})
	s.Expect(err).NotTo(HaveOccurred())
	content, err := io.ReadAll(reader)
	s.Expect(err).NotTo(HaveOccurred())
	return string(content)
}

func leader(s *subject, n *talossim.Node) uint64 {
	response, err := s.client(n, role.Reader).EtcdStatus(s.ctx)
	s.Expect(err).NotTo(HaveOccurred())
	return response.GetMessages()[0].GetMemberStatus().GetLeader()
}

func leave(s *subject, n *talossim.Node) error {
	return s.client(n, role.Admin).EtcdLeaveCluster(s.ctx, &machine.EtcdLeaveClusterRequest{})
}

func remove(s *subject, asked *talossim.Node, id uint64) error {
	return s.client(asked, role.Admin).EtcdRemoveMemberByID(s.ctx, &machine.EtcdRemoveMemberByIDRequest{MemberId: id})
}

// files are the names that a directory's listing has.
func files(s *subject, n *talossim.Node, root string) ([]string, error) {
	stream, err := s.client(n, role.Reader).MachineClient.List(s.ctx, &machine.ListRequest{Root: root})
	if err != nil {
		return nil, err
	}
	var names []string
	for {
		file, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return names, nil
		}
		if err != nil {
			return nil, err
		}
		names = append(names, file.GetRelativeName())
	}
}

var three = subjectOptions{controlPlanes: 3}

var etcdClaims = []claim{
	{
		says: "control-plane nodes join by themselves, one after the other, and come to vote", source: sourceEtcd, options: three,
		check: func(_ *testing.T, s *subject) {
			ids := map[uint64]bool{}
			for _, member := range members(s, s.node) {
				s.Expect(member.GetIsLearner()).To(BeFalse())
				s.Expect(member.GetHostname()).NotTo(BeEmpty())
				ids[member.GetId()] = true
			}
			s.Expect(ids).To(HaveLen(3))
			for _, n := range s.nodes {
				s.Expect(ids).To(HaveKey(n.EtcdMemberID()))
			}
		},
	},
	{
		says: "a worker has none", source: sourceEtcd, options: subjectOptions{worker: true},
		check: func(_ *testing.T, s *subject) {
			_, err := s.as(role.Reader).EtcdMemberList(s.ctx, &machine.EtcdMemberListRequest{})
			s.Expect(err).To(HaveOccurred())
		},
	},
	{
		says: "leadership is handed over and the new leader named, and only by the leader", source: sourceEtcd, options: three,
		check: func(_ *testing.T, s *subject) {
			s.Expect(leader(s, s.node)).To(Equal(s.node.EtcdMemberID()))
			forfeit := func() string {
				response, err := s.as(role.Admin).EtcdForfeitLeadership(s.ctx, &machine.EtcdForfeitLeadershipRequest{})
				s.Expect(err).NotTo(HaveOccurred())
				return response.GetMessages()[0].GetMember()
			}
			s.Expect(forfeit()).To(Or(Equal("cp2"), Equal("cp3")))
			s.Expect(leader(s, s.node)).NotTo(Equal(s.node.EtcdMemberID()))
			s.Expect(forfeit()).To(BeEmpty())
		},
	},
	{
		says: "a single member keeps leadership, with an error", source: sourceEtcd,
		check: func(_ *testing.T, s *subject) {
			_, err := s.as(role.Admin).EtcdForfeitLeadership(s.ctx, &machine.EtcdForfeitLeadershipRequest{})
			s.Expect(err).To(HaveOccurred())
		},
	},
	{
		says: "a member that leaves is gone, until its node boots again", source: sourceEtcd, options: three,
		check: func(_ *testing.T, s *subject) {
			old := s.node.EtcdMemberID()
			s.Expect(leave(s, s.node)).To(Succeed())
			s.Expect(members(s, s.nodes[1])).To(HaveLen(2))
			s.Expect(s.node.EtcdMemberID()).To(BeZero())
			s.Expect(ready(s)).To(BeFalse())
			reboot(s)
			s.Eventually(func() int { return len(members(s, s.nodes[1])) }, wait, "5ms").Should(Equal(3))
			s.Expect(s.node.EtcdMemberID()).NotTo(Equal(old))
		},
	},
	{
		says: "a member that is alone cannot leave", source: sourceStrict,
		check: func(_ *testing.T, s *subject) { s.Expect(leave(s, s.node)).NotTo(Succeed()) },
	},
	{
		says: "a node that is gone is removed by a peer, and once", source: sourceEtcd, options: three,
		check: func(_ *testing.T, s *subject) {
			gone := s.nodes[2].EtcdMemberID()
			s.nodes[2].PowerOff()
			s.Expect(remove(s, s.node, gone)).To(Succeed())
			s.Expect(members(s, s.node)).To(HaveLen(2))
			s.Expect(remove(s, s.node, gone)).To(code(codes.NotFound))
		},
	},
	{
		says: "a healthy member is not removed while another is down", source: sourceStrict, options: three,
		check: func(_ *testing.T, s *subject) {
			s.nodes[2].PowerOff()
			s.Expect(remove(s, s.node, s.nodes[1].EtcdMemberID())).NotTo(Succeed())
			s.Expect(members(s, s.node)).To(HaveLen(3))
		},
	},
	{
		says: "without a quorum nothing is listed and nothing removed, and the member says that it has no leader", source: sourceStrict, options: three,
		check: func(_ *testing.T, s *subject) {
			s.nodes[1].PowerOff()
			s.nodes[2].PowerOff()
			_, err := s.as(role.Reader).EtcdMemberList(s.ctx, &machine.EtcdMemberListRequest{})
			s.Expect(err).To(HaveOccurred())
			s.Expect(remove(s, s.node, s.nodes[1].EtcdMemberID())).NotTo(Succeed())
			s.Expect(leader(s, s.node)).To(BeZero())
		},
	},
	{
		says: "another leads when the leader is gone", source: sourceStrict, options: three,
		check: func(_ *testing.T, s *subject) {
			old := leader(s, s.nodes[1])
			s.node.PowerOff()
			s.Expect(leader(s, s.nodes[1])).NotTo(Or(Equal(old), BeZero()))
		},
	},
	{
		says: "a member that never starts stays without a name, and keeps others from joining", source: sourceStrict,
		check: func(_ *testing.T, s *subject) {
			config := s.node.Config()
			stuck, err := s.world.NewNode(talossim.NodeOptions{Name: "cp2"})
			s.Expect(err).NotTo(HaveOccurred())
			stuck.SetUserData(config)
			stuck.SetFaults(talossim.Faults{EtcdNeverStarts: true})
			s.Expect(stuck.PowerOn(s.ctx)).To(Succeed())
			s.Eventually(func() int { return len(members(s, s.node)) }, wait, "5ms").Should(Equal(2))
			third := s.start(talossim.NodeOptions{Name: "cp3"}, config)
			for _, member := range members(s, s.node) {
				s.Expect(member.GetHostname()).To(Equal(map[bool]string{true: "", false: "cp1"}[member.GetIsLearner()]))
			}
			s.Expect(third.EtcdMemberID()).To(BeZero())
			s.Expect(remove(s, s.node, stuck.EtcdMemberID())).To(Succeed())
			s.Eventually(func() bool { return s.voter(third) }, wait, "5ms").Should(BeTrue())
		},
	},
	{
		says: "an alarm shows at every member, stays when its member leaves, and is disarmed once for all", source: sourceEtcd, options: three,
		check: func(_ *testing.T, s *subject) {
			id := s.nodes[1].EtcdMemberID()
			s.Expect(s.nodes[1].RaiseEtcdAlarm(machine.EtcdMemberAlarm_NOSPACE)).To(Succeed())
			alarms := func() []*machine.EtcdMemberAlarm {
				response, err := s.as(role.Reader).EtcdAlarmList(s.ctx)
				s.Expect(err).NotTo(HaveOccurred())
				return response.GetMessages()[0].GetMemberAlarms()
			}
			s.Expect(alarms()).To(ConsistOf(HaveField("MemberId", id)))
			s.Expect(remove(s, s.node, id)).To(Succeed())
			s.Expect(alarms()).To(ConsistOf(HaveField("MemberId", id)))
			_, err := s.as(role.Operator).EtcdAlarmDisarm(s.ctx)
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(alarms()).To(BeEmpty())
		},
	},
	{
		says: "a member joins while one of five is down, and not while one of three is", source: sourceStrict,
		options: subjectOptions{controlPlanes: 5},
		check: func(_ *testing.T, s *subject) {
			config := s.node.Config()
			s.nodes[4].PowerOff()
			sixth := s.start(talossim.NodeOptions{Name: "cp6"}, config)
			s.Eventually(func() bool { return s.voter(sixth) }, wait, "5ms").Should(BeTrue())

			for _, n := range append(s.nodes[2:], sixth) {
				id := n.EtcdMemberID()
				n.PowerOff()
				s.Expect(remove(s, s.node, id)).To(Succeed())
			}
			third := s.start(talossim.NodeOptions{Name: "cp7"}, config)
			s.Eventually(func() bool { return s.voter(third) }, wait, "5ms").Should(BeTrue())
			third.PowerOff()
			fourth := s.start(talossim.NodeOptions{Name: "cp8"}, config)
			s.Consistently(func() int { return len(members(s, s.node)) }, "300ms", "20ms").Should(Equal(3))
			s.Expect(third.PowerOn(s.ctx)).To(Succeed())
			s.Eventually(func() bool { return s.voter(fourth) }, wait, "5ms").Should(BeTrue())
		},
	},
	{
		says: "a node that lost its data takes the place of the member with its name", source: sourceJoin, options: three,
		check: func(_ *testing.T, s *subject) {
			lost := s.nodes[2]
			old, before := lost.EtcdMemberID(), lost.BootID()
			s.Expect(s.client(lost, role.Admin).ResetGeneric(s.ctx, &machine.ResetRequest{Reboot: true, SystemPartitionsToWipe: wiping("EPHEMERAL")})).To(Succeed())
			s.Eventually(lost.BootID, wait, "5ms").ShouldNot(Or(Equal(before), BeEmpty()))
			s.Eventually(func() bool { return s.voter(lost) }, wait, "5ms").Should(BeTrue())
			s.Expect(lost.EtcdMemberID()).NotTo(Equal(old))
			s.Expect(members(s, s.node)).To(HaveLen(3))
		},
	},
	{
		says: "a node that dies before its member has started takes the place that it was given", source: sourceJoin,
		check: func(_ *testing.T, s *subject) {
			second, err := s.world.NewNode(talossim.NodeOptions{Name: "cp2"})
			s.Expect(err).NotTo(HaveOccurred())
			second.SetUserData(s.node.Config())
			second.SetFaults(talossim.Faults{EtcdNeverStarts: true})
			s.Expect(second.PowerOn(s.ctx)).To(Succeed())
			s.Eventually(second.EtcdMemberID, wait, "5ms").ShouldNot(BeZero())
			given := second.EtcdMemberID()
			s.Expect(files(s, second, constants.EtcdDataPath)).To(ConsistOf("."), "it has not started, and has no data")
			second.PowerOff()
			second.SetFaults(talossim.Faults{})
			s.Expect(second.PowerOn(s.ctx)).To(Succeed())
			s.Eventually(func() bool { return s.voter(second) }, wait, "5ms").Should(BeTrue())
			s.Expect(second.EtcdMemberID()).To(Equal(given))
		},
	},
}
