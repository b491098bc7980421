// SPDX-License-Identifier: Apache-2.0

package talossim_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc/codes"

	"github.com/maesh-dev/ichor/test/talossim"
)

func inMaintenance(s *subject) {
	s.Eventually(func() bool { maintenance, _ := s.node.Maintenance(); return maintenance }, wait, "5ms").Should(BeTrue())
}

func reset(s *subject, request *machine.ResetRequest) error {
	return s.as(role.Admin).ResetGeneric(s.ctx, request)
}

func wiping(labels ...string) []*machine.ResetPartitionSpec {
	var partitions []*machine.ResetPartitionSpec
	for _, label := range labels {
		partitions = append(partitions, &machine.ResetPartitionSpec{Label: label, Wipe: true})
	}
	return partitions
}

var resetClaims = []claim{
	{
		says: "a graceful one leaves etcd, wipes and goes to maintenance mode", source: sourceReset, options: three,
		check: func(_ *testing.T, s *subject) {
			s.node.SetUserData(nil)
			s.Expect(s.as(role.Admin).Reset(s.ctx, true, true)).To(Succeed())
			inMaintenance(s)
			s.Expect(members(s, s.nodes[1])).To(HaveLen(2))
			s.Expect(s.node.Config()).To(BeNil())
		},
	},
	{
		says: "one that is not graceful leaves a dead member behind", source: sourceReset, options: three,
		check: func(_ *testing.T, s *subject) {
			s.node.SetUserData(nil)
			s.Expect(s.as(role.Admin).Reset(s.ctx, false, true)).To(Succeed())
			inMaintenance(s)
			s.Expect(members(s, s.nodes[1])).To(HaveLen(3))
		},
	},
	{
		says: "a graceful one that cannot leave etcd wipes nothing", source: sourceReset,
		options: subjectOptions{controlPlanes: 3, faults: talossim.Faults{LeaveFails: "no"}},
		check: func(_ *testing.T, s *subject) {
			ch := events(s)
			s.Expect(s.as(role.Admin).Reset(s.ctx, true, true)).To(Succeed())
			stop := receiveUntil(s, ch, sequenceOf, "reset STOP")
			s.Expect(stop.Event.Payload.(*machine.SequenceEvent).GetError().GetMessage()).To(Equal("no")) //nolint:forcetypeassert // receiveUntil looked
			s.Expect(s.node.Config()).NotTo(BeNil())
			s.Expect(members(s, s.node)).To(HaveLen(3))
		},
	},
	{
		says: "without a reboot the machine stays off", source: sourceReset, options: workerBehind,
		check: func(_ *testing.T, s *subject) {
			s.Expect(s.as(role.Admin).Reset(s.ctx, false, false)).To(Succeed())
			s.Eventually(s.node.BootID, wait, "5ms").Should(BeEmpty())
			s.Expect(s.node.Config()).To(BeNil())
		},
	},
	{
		says: "of the data alone keeps the configuration", source: sourceReset, options: workerBehind,
		check: func(_ *testing.T, s *subject) {
			before, data := s.node.BootID(), volumeStatus(s, "EPHEMERAL").PartitionUUID
			s.Expect(reset(s, &machine.ResetRequest{Reboot: true, SystemPartitionsToWipe: wiping("EPHEMERAL")})).To(Succeed())
			rebooted(s, before)
			s.Expect(s.node.Config()).NotTo(BeNil())
			s.Expect(volumeStatus(s, "EPHEMERAL").PartitionUUID).NotTo(Equal(data))
		},
	},
	{
		says: "of user disks alone keeps the system", source: sourceReset, options: subjectOptions{disks: twoDisks},
		check: func(_ *testing.T, s *subject) {
			_, err := apply(s, s.as(role.Admin), machine.ApplyConfigurationRequest_NO_REBOOT, s.config(machinetype.TypeControlPlane, volumePatch))
			s.Expect(err).NotTo(HaveOccurred())
			before, system, user := s.node.BootID(), volumeStatus(s, "EPHEMERAL").PartitionUUID, volumeStatus(s, "u-longhorn").PartitionUUID
			s.Expect(reset(s, &machine.ResetRequest{Reboot: true, Mode: machine.ResetRequest_USER_DISKS, UserDisksToWipe: []string{"/dev/nvme0n1"}})).To(Succeed())
			rebooted(s, before)
			s.Expect(volumeStatus(s, "EPHEMERAL").PartitionUUID).To(Equal(system))
			s.Expect(volumeStatus(s, "u-longhorn").PartitionUUID).NotTo(Equal(user))
		},
	},
	{
		says: "of what is not there, or is no user disk, is refused", source: sourceReset, options: workerBehind,
		check: func(_ *testing.T, s *subject) {
			s.Expect(reset(s, &machine.ResetRequest{SystemPartitionsToWipe: wiping("NOTHING")})).NotTo(Succeed())
			for _, disk := range []string{"/dev/sdz", "/dev/vda", "vda", ""} {
				s.Expect(reset(s, &machine.ResetRequest{UserDisksToWipe: []string{disk}})).To(code(codes.Unknown), disk)
			}
			s.Expect(reset(s, &machine.ResetRequest{Mode: machine.ResetRequest_USER_DISKS, SystemPartitionsToWipe: wiping("STATE")})).To(code(codes.Unknown))
			s.Expect(reset(s, &machine.ResetRequest{Mode: machine.ResetRequest_SYSTEM_DISK, UserDisksToWipe: []string{"/dev/vda"}})).To(code(codes.Unknown))
			s.Expect(s.node.Config()).NotTo(BeNil())
		},
	},
}
