// SPDX-License-Identifier: Apache-2.0

package talossim_test

import (
	"errors"
	"io"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc/codes"

	"github.com/maesh-dev/ichor/test/talossim"
)

func pull(s *subject, c *client.Client, image string) error {
	stream, err := c.ImageClient.Pull(s.ctx, &machine.ImageServicePullRequest{Containerd: system(), ImageRef: image})
	if err != nil {
		return err
	}
	for {
		if _, err := stream.Recv(); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// upgrade returns the installer's exit code.
func upgrade(s *subject, c *client.Client, image string) (int32, error) {
	stream, err := c.LifecycleClient.Upgrade(s.ctx, &machine.LifecycleServiceUpgradeRequest{
		Containerd: system(), Source: &machine.InstallArtifactsSource{ImageName: image},
	})
	if err != nil {
		return 0, err
	}
	exit := int32(-1)
	for {
		response, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return exit, nil
		}
		if err != nil {
			return exit, err
		}
		if code, ok := response.GetProgress().GetResponse().(*machine.LifecycleServiceInstallProgress_ExitCode); ok {
			exit = code.ExitCode
		}
	}
}

func pullAndUpgrade(s *subject, image string) {
	c := s.as(role.Admin)
	s.Expect(pull(s, c, image)).To(Succeed())
	exit, err := upgrade(s, c, image)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(exit).To(BeZero())
}

func reboot(s *subject) {
	before := s.node.BootID()
	s.Expect(s.as(role.Admin).Reboot(s.ctx)).To(Succeed())
	rebooted(s, before)
}

func read(s *subject, c *client.Client, path string) (string, error) {
	reader, err := c.Read(s.ctx, path)
	if err != nil {
		return "", err
	}
	content, err := io.ReadAll(reader)
	return string(content), err
}

var upgradeClaims = []claim{
	{
		says: "installs beside the system that runs, and a reboot takes it", source: sourceUpgrade,
		check: func(_ *testing.T, s *subject) {
			before := s.node.BootID()
			pullAndUpgrade(s, newer114)
			s.Expect(s.node.BootID()).To(Equal(before))
			s.Expect(s.node.Version()).To(Equal("v1.14.1"))
			reboot(s)
			s.Expect(s.node.Version()).To(Equal("v1.14.2"))
		},
	},
	{
		says: "wants an image that was pulled", source: sourceUpgrade,
		check: func(_ *testing.T, s *subject) {
			_, err := upgrade(s, s.as(role.Admin), newer114)
			s.Expect(err).To(code(codes.Internal))
			s.Expect(pull(s, s.as(role.Admin), "ghcr.io/siderolabs/installer:v1.14.9")).To(code(codes.NotFound))
		},
	},
	{
		says: "an installer that fails is an exit code and no error, and nothing changed", source: sourceUpgrade,
		options: subjectOptions{faults: talossim.Faults{InstallExitCode: 7}},
		check: func(_ *testing.T, s *subject) {
			s.Expect(pull(s, s.as(role.Admin), newer114)).To(Succeed())
			exit, err := upgrade(s, s.as(role.Admin), newer114)
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(exit).To(Equal(int32(7)))
			reboot(s)
			s.Expect(s.node.Version()).To(Equal("v1.14.1"))
		},
	},
	{
		says: "a system that fails to boot is taken back by itself", source: sourceUpgrade,
		options: subjectOptions{faults: talossim.Faults{BootFails: ":v1.14.2"}},
		check: func(_ *testing.T, s *subject) {
			pullAndUpgrade(s, newer114)
			reboot(s)
			s.Expect(s.node.Version()).To(Equal("v1.14.1"))
		},
	},
	{
		says: "a system that boots and is never ready stays until Rollback", source: sourceUpgrade,
		options: subjectOptions{faults: talossim.Faults{NeverReady: ":v1.14.2"}},
		check: func(_ *testing.T, s *subject) {
			pullAndUpgrade(s, newer114)
			reboot(s)
			s.Expect(s.node.Version()).To(Equal("v1.14.2"))
			s.Eventually(func() bool { return s.voter(s.node) }, wait, "5ms").Should(BeTrue())
			s.Consistently(func() string { return statusOf(s) }, "100ms", "10ms").Should(
				MatchRegexp(`^booting false \[services: .*kubelet not healthy.* nodeReady: .*\]$`), "a service that is not healthy is not up")
			before := s.node.BootID()
			s.Expect(s.as(role.Admin).Rollback(s.ctx)).To(Succeed())
			rebooted(s, before)
			s.Expect(s.node.Version()).To(Equal("v1.14.1"))
		},
	},
	{
		says: "there is nothing to roll back to on a fresh disk", source: "Talos source: Rollback",
		check: func(_ *testing.T, s *subject) {
			s.Expect(s.as(role.Admin).Rollback(s.ctx)).NotTo(Succeed())
		},
	},
	{
		says: "a second one before the reboot destroys the system that runs", source: sourceUpgrade,
		check: func(_ *testing.T, s *subject) {
			pullAndUpgrade(s, newer114)
			pullAndUpgrade(s, newest)
			reboot(s)
			s.Expect(s.node.Version()).To(Equal("v1.14.3"))
			before := s.node.BootID()
			s.Expect(s.as(role.Admin).Rollback(s.ctx)).To(Succeed())
			rebooted(s, before)
			s.Expect(s.node.Version()).To(Equal("v1.14.2"))
		},
	},
	{
		says: "does not exist in 1.12, nor does the pull", source: "Talos 1.13 release notes; facts 4.1", options: subjectOptions{image: image112},
		check: func(_ *testing.T, s *subject) {
			s.Expect(pull(s, s.as(role.Admin), image113)).To(code(codes.Unimplemented))
			_, err := upgrade(s, s.as(role.Admin), image113)
			s.Expect(err).To(code(codes.Unimplemented))
		},
	},
	{
		says: "the legacy call installs and reboots by itself", source: sourceUpgrade, options: subjectOptions{image: image112},
		check: func(_ *testing.T, s *subject) {
			before := s.node.BootID()
			_, err := s.as(role.Admin).UpgradeWithOptions(s.ctx, client.WithUpgradeImage(image113))
			s.Expect(err).NotTo(HaveOccurred())
			rebooted(s, before)
			s.Expect(s.node.Version()).To(Equal("v1.13.0"))
		},
	},
	{
		says: "the legacy call refuses a cluster of two members", source: sourceUpgrade,
		options: subjectOptions{image: image112, controlPlanes: 2},
		check: func(_ *testing.T, s *subject) {
			_, err := s.as(role.Admin).UpgradeWithOptions(s.ctx, client.WithUpgradeImage(image113))
			s.Expect(err).To(HaveOccurred())
			s.Expect(s.node.Version()).To(Equal("v1.12.0"))
		},
	},
	{
		says: "the installer ends although the caller is gone", source: sourceUpgrade,
		check: func(_ *testing.T, s *subject) {
			s.Expect(pull(s, s.as(role.Admin), newer114)).To(Succeed())
			before := s.node.BootID()
			s.node.CrashAfter("LifecycleService/Upgrade")
			_, _ = upgrade(s, s.as(role.Admin), newer114) // what the caller hears depends on when the power goes
			rebooted(s, before)
			s.Expect(s.node.Version()).To(Equal("v1.14.2"))
		},
	},
	{
		says: "only one at a time", source: "Talos source: internal/app/lifecycle, Service", options: subjectOptions{faults: talossim.Faults{InstallTakes: time.Hour}},
		check: func(_ *testing.T, s *subject) {
			c := s.as(role.Admin)
			s.Expect(pull(s, c, newer114)).To(Succeed())
			stream, err := c.LifecycleClient.Upgrade(s.ctx, &machine.LifecycleServiceUpgradeRequest{
				Containerd: system(), Source: &machine.InstallArtifactsSource{ImageName: newer114},
			})
			s.Expect(err).NotTo(HaveOccurred())
			_, err = stream.Recv()
			s.Expect(err).NotTo(HaveOccurred())
			_, err = upgrade(s, c, newer114)
			s.Expect(err).To(code(codes.FailedPrecondition))
		},
	},
	{
		says: "a power cut while the installer works leaves the system that runs", source: sourceUpgrade,
		options: subjectOptions{faults: talossim.Faults{InstallTakes: time.Hour}},
		check: func(_ *testing.T, s *subject) {
			c := s.as(role.Admin)
			s.Expect(pull(s, c, newer114)).To(Succeed())
			stream, err := c.LifecycleClient.Upgrade(s.ctx, &machine.LifecycleServiceUpgradeRequest{
				Containerd: system(), Source: &machine.InstallArtifactsSource{ImageName: newer114},
			})
			s.Expect(err).NotTo(HaveOccurred())
			_, err = stream.Recv()
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(s.node.Crash(s.ctx)).To(Succeed())
			s.Expect(s.node.Version()).To(Equal("v1.14.1"))
		},
	},
	{
		says: "a system that does not boot is not left by itself after META was written to", source: "Talos source: pkg/meta, Flush, and the installer's fallback tag (facts 4.3, inferred)",
		options: subjectOptions{faults: talossim.Faults{BootFails: ":v1.14.2"}},
		check: func(_ *testing.T, s *subject) {
			pullAndUpgrade(s, newer114)
			s.Expect(s.as(role.Admin).MetaWrite(s.ctx, 12, []byte("x"))).To(Succeed())
			s.Expect(s.as(role.Admin).Reboot(s.ctx)).To(Succeed())
			s.Eventually(s.node.BootID, wait, "5ms").Should(BeEmpty())
			s.Expect(s.node.Version()).To(BeEmpty())
		},
	},
	{
		says: "the legacy call can wait for the next boot, which installs and boots again", source: "Talos source: Upgrade, StageUpgrade",
		options: subjectOptions{image: image112},
		check: func(_ *testing.T, s *subject) {
			before, boots := s.node.BootID(), s.node.Boots()
			_, err := s.as(role.Admin).UpgradeWithOptions(s.ctx, client.WithUpgradeImage(image113), client.WithUpgradeStage(true))
			s.Expect(err).NotTo(HaveOccurred())
			rebooted(s, before)
			s.Expect(s.node.Version()).To(Equal("v1.13.0"))
			s.Expect(s.node.Boots()).To(Equal(boots + 2))
		},
	},
	{
		says: "the legacy call, forced, does not look at etcd", source: sourceUpgrade,
		options: subjectOptions{image: image112, controlPlanes: 2},
		check: func(_ *testing.T, s *subject) {
			before := s.node.BootID()
			_, err := s.as(role.Admin).UpgradeWithOptions(s.ctx, client.WithUpgradeImage(image113), client.WithUpgradeForce(true))
			s.Expect(err).NotTo(HaveOccurred())
			rebooted(s, before)
			s.Expect(s.node.Version()).To(Equal("v1.13.0"))
		},
	},
	{
		says: "the legacy call refuses while a member is not well", source: sourceUpgrade,
		options: subjectOptions{image: image112, controlPlanes: 3},
		check: func(_ *testing.T, s *subject) {
			s.nodes[2].PowerOff()
			_, err := s.as(role.Admin).UpgradeWithOptions(s.ctx, client.WithUpgradeImage(image113))
			s.Expect(err).To(HaveOccurred())
			s.Expect(s.nodes[2].PowerOn(s.ctx)).To(Succeed())
			s.Eventually(func() bool { return s.voter(s.nodes[2]) }, wait, "5ms").Should(BeTrue())
			before := s.node.BootID()
			_, err = s.as(role.Admin).UpgradeWithOptions(s.ctx, client.WithUpgradeImage(image113))
			s.Expect(err).NotTo(HaveOccurred())
			rebooted(s, before)
		},
	},
	{
		says: "two legacy calls do not ask etcd at the same time", source: sourceUpgrade,
		options: subjectOptions{image: image112, controlPlanes: 3},
		check: func(_ *testing.T, s *subject) {
			answers := make(chan error, 2)
			for _, n := range s.nodes[:2] {
				n.SetFaults(talossim.Faults{ValidationTakes: time.Second})
				c := s.client(n, role.Admin)
				go func() {
					_, err := c.UpgradeWithOptions(s.ctx, client.WithUpgradeImage(image113))
					answers <- err
				}()
			}
			s.Expect([]error{<-answers, <-answers}).To(ConsistOf(BeNil(), HaveOccurred()))
		},
	},
}
