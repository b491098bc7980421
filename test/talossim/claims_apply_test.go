// SPDX-License-Identifier: Apache-2.0

package talossim_test

import (
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
	labelPatch = `{machine: {sysctls: {"net.ipv4.ip_forward": "1"}}}`
	// modernPatch is of a kind that came with 1.14.
	modernPatch   = "apiVersion: v1alpha1\nkind: SysctlConfig\nparams: {net.ipv4.ip_forward: \"1\"}\n"
	rebootPatch   = `{machine: {env: {GRPC_GO_LOG_SEVERITY_LEVEL: info}}}`
	hostnamePatch = "apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: renamed\nauto: off\n"
)

func apply(s *subject, c *client.Client, mode machine.ApplyConfigurationRequest_Mode, config []byte) (*machine.ApplyConfiguration, error) {
	response, err := c.ApplyConfiguration(s.ctx, &machine.ApplyConfigurationRequest{Data: config, Mode: mode})
	if err != nil {
		return nil, err
	}
	return response.GetMessages()[0], nil
}

func hostname(s *subject) string {
	response, err := s.as(role.Reader).MachineClient.Hostname(s.ctx, nil)
	s.Expect(err).NotTo(HaveOccurred())
	return response.GetMessages()[0].GetHostname()
}

var applyClaims = []claim{
	{
		says: "without a reboot is at once, and kept", source: sourceApply,
		check: func(_ *testing.T, s *subject) {
			before := s.node.BootID()
			config := s.config(machinetype.TypeControlPlane, hostnamePatch)
			answer, err := apply(s, s.as(role.Admin), machine.ApplyConfigurationRequest_NO_REBOOT, config)
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(answer.GetMode()).To(Equal(machine.ApplyConfigurationRequest_NO_REBOOT))
			s.Expect(hostname(s)).To(Equal("renamed"))
			s.Expect(s.node.Config()).To(Equal(config))
			s.Expect(s.node.BootID()).To(Equal(before))
		},
	},
	{
		says: "the zero mode, reboot, is not implemented from 1.14 on", source: sourceApply,
		check: func(_ *testing.T, s *subject) {
			_, err := apply(s, s.as(role.Admin), machine.ApplyConfigurationRequest_REBOOT, s.config(machinetype.TypeControlPlane))
			s.Expect(err).To(code(codes.Unimplemented))
		},
	},
	{
		says: "the zero mode reboots before 1.14", source: sourceApply, options: subjectOptions{image: image113},
		check: func(_ *testing.T, s *subject) {
			before := s.node.BootID()
			_, err := apply(s, s.as(role.Admin), machine.ApplyConfigurationRequest_REBOOT, s.config(machinetype.TypeControlPlane, labelPatch))
			s.Expect(err).NotTo(HaveOccurred())
			rebooted(s, before)
		},
	},
	{
		says: "auto reboots before 1.14 when it has to", source: sourceImmediate, options: subjectOptions{image: image113},
		check: func(_ *testing.T, s *subject) {
			before := s.node.BootID()
			config := s.config(machinetype.TypeControlPlane, rebootPatch)
			_, err := apply(s, s.as(role.Admin), machine.ApplyConfigurationRequest_NO_REBOOT, config)
			s.Expect(err).To(code(codes.InvalidArgument))
			answer, err := apply(s, s.as(role.Admin), machine.ApplyConfigurationRequest_AUTO, config)
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(answer.GetMode()).To(Equal(machine.ApplyConfigurationRequest_REBOOT))
			rebooted(s, before)
		},
	},
	{
		says: "auto does not reboot before 1.14 when it has not to", source: sourceImmediate, options: subjectOptions{image: image113},
		check: func(_ *testing.T, s *subject) {
			before := s.node.BootID()
			answer, err := apply(s, s.as(role.Admin), machine.ApplyConfigurationRequest_AUTO, s.config(machinetype.TypeControlPlane, labelPatch))
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(answer.GetMode()).To(Equal(machine.ApplyConfigurationRequest_NO_REBOOT))
			s.Expect(s.node.BootID()).To(Equal(before))
		},
	},
	{
		says: "staged waits for the next boot", source: sourceApply,
		check: func(_ *testing.T, s *subject) {
			before := s.node.BootID()
			_, err := apply(s, s.as(role.Admin), machine.ApplyConfigurationRequest_STAGED, s.config(machinetype.TypeControlPlane, hostnamePatch))
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(hostname(s)).To(Equal("cp1"))
			s.Expect(s.as(role.Admin).Reboot(s.ctx)).To(Succeed())
			rebooted(s, before)
			s.Expect(hostname(s)).To(Equal("renamed"))
		},
	},
	{
		says: "a try is taken back", source: sourceApply,
		check: func(_ *testing.T, s *subject) {
			_, err := s.as(role.Admin).ApplyConfiguration(s.ctx, &machine.ApplyConfigurationRequest{
				Data: s.config(machinetype.TypeControlPlane, hostnamePatch),
				Mode: machine.ApplyConfigurationRequest_TRY, TryModeTimeout: durationpb.New(20 * time.Millisecond),
			})
			s.Expect(err).NotTo(HaveOccurred())
			s.Eventually(func() string { return hostname(s) }, wait, "5ms").Should(Equal("cp1"))
		},
	},
	{
		says: "a dry run tells the difference and changes nothing", source: sourceApply,
		check: func(_ *testing.T, s *subject) {
			response, err := s.as(role.Admin).ApplyConfiguration(s.ctx, &machine.ApplyConfigurationRequest{
				Data: s.config(machinetype.TypeControlPlane, hostnamePatch), Mode: machine.ApplyConfigurationRequest_AUTO, DryRun: true,
			})
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(response.GetMessages()[0].GetModeDetails()).To(ContainSubstring("+hostname: renamed"))
			s.Expect(hostname(s)).To(Equal("cp1"))
		},
	},
	{
		says: "an unknown field is refused", source: sourceApply, harmless: true,
		check: func(_ *testing.T, s *subject) {
			_, err := apply(s, s.as(role.Admin), machine.ApplyConfigurationRequest_AUTO, []byte("version: v1alpha1\nmachine: {type: worker, tpye: x}\n"))
			s.Expect(err).To(code(codes.InvalidArgument))
		},
	},
	{
		says: "a configuration without its first document is refused", source: sourceApply, harmless: true,
		check: func(_ *testing.T, s *subject) {
			_, err := apply(s, s.as(role.Admin), machine.ApplyConfigurationRequest_AUTO, []byte(hostnamePatch))
			s.Expect(err).To(code(codes.InvalidArgument))
		},
	},
	{
		says: "what validation refuses is refused", source: sourceApply,
		check: func(_ *testing.T, s *subject) {
			config := s.config(machinetype.TypeControlPlane, "apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: renamed\nauto: stable\n")
			_, err := apply(s, s.as(role.Admin), machine.ApplyConfigurationRequest_AUTO, config)
			s.Expect(err).To(code(codes.InvalidArgument))
		},
	},
	{
		says: "a document of 1.14 is refused by 1.13", source: "machinery 1.13: registry of kinds", options: subjectOptions{image: image113},
		check: func(_ *testing.T, s *subject) {
			config := append(s.config(machinetype.TypeControlPlane), []byte("---\n"+modernPatch)...)
			_, err := apply(s, s.as(role.Admin), machine.ApplyConfigurationRequest_AUTO, config)
			s.Expect(err).To(code(codes.InvalidArgument))
		},
	},
	{
		says: "a user data that is refused leaves the node in maintenance mode", source: "Talos documentation: maintenance mode",
		options: subjectOptions{maintenance: true, image: image113},
		check: func(_ *testing.T, s *subject) {
			n := s.start(talossim.NodeOptions{Name: "bad", Image: image113}, append(s.config(machinetype.TypeControlPlane), []byte("---\n"+modernPatch)...))
			maintenance, err := n.Maintenance()
			s.Expect(maintenance).To(BeTrue())
			s.Expect(err).To(MatchError(ContainSubstring("SysctlConfig")))
		},
	},
	{
		says: "a reader may in maintenance mode only", source: sourceRoles,
		check: func(_ *testing.T, s *subject) {
			_, err := apply(s, s.as(role.Reader), machine.ApplyConfigurationRequest_AUTO, s.config(machinetype.TypeControlPlane))
			s.Expect(err).To(code(codes.PermissionDenied))
		},
	},
	{
		says: "in maintenance mode the node goes on with its boot", source: sourceClient, options: subjectOptions{maintenance: true},
		check: func(_ *testing.T, s *subject) {
			before := s.node.BootID()
			c := s.maintenanceClient(s.node)
			_, err := c.Version(s.ctx)
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(c.Reboot(s.ctx)).To(code(codes.PermissionDenied))
			_, err = apply(s, c, machine.ApplyConfigurationRequest_AUTO, s.config(machinetype.TypeControlPlane))
			s.Expect(err).NotTo(HaveOccurred())
			s.Eventually(func() error { _, err := s.as(role.Admin).Version(s.ctx); return err }, wait, "5ms").Should(Succeed())
			s.Expect(s.node.BootID()).To(Equal(before))
		},
	},
	{
		says: "in maintenance mode a blank machine installs what the configuration names and reboots", source: "Talos documentation: install",
		options: subjectOptions{maintenance: true, blank: true},
		check: func(_ *testing.T, s *subject) {
			before := s.node.BootID()
			config := s.config(machinetype.TypeControlPlane, "apiVersion: v1alpha1\nkind: UnattendedInstallConfig\ninstaller: {image: "+newer114+"}\nprovisioning: {diskSelector: {match: system_disk}}\n")
			_, err := apply(s, s.maintenanceClient(s.node), machine.ApplyConfigurationRequest_AUTO, config)
			s.Expect(err).NotTo(HaveOccurred())
			rebooted(s, before)
			s.Expect(s.node.Version()).To(Equal("v1.14.2"))
		},
	},
}
