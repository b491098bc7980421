// SPDX-License-Identifier: Apache-2.0

package talossim_test

import (
	"io"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
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
		says: "an alarm shows at every member and is disarmed once for all", source: sourceEtcd, options: three,
		check: func(_ *testing.T, s *subject) {
			s.Expect(s.nodes[1].RaiseEtcdAlarm(machine.EtcdMemberAlarm_NOSPACE)).To(Succeed())
			alarms := func() []*machine.EtcdMemberAlarm {
				response, err := s.as(role.Reader).EtcdAlarmList(s.ctx)
				s.Expect(err).NotTo(HaveOccurred())
				return response.GetMessages()[0].GetMemberAlarms()
			}
			s.Expect(alarms()).To(ConsistOf(HaveField("MemberId", s.nodes[1].EtcdMemberID())))
			_, err := s.as(role.Operator).EtcdAlarmDisarm(s.ctx)
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(alarms()).To(BeEmpty())
		},
	},
}
