// SPDX-License-Identifier: Apache-2.0

package talossim_test

import (
	"context"
	"testing"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	. "github.com/onsi/gomega"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	configres "github.com/siderolabs/talos/pkg/machinery/resources/config"
	runtimeres "github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/maesh-dev/ichor/test/talossim"
)

const (
	sourceDirector     = "Talos source: internal/app/apid/pkg/director, Router"
	sourceBackend      = "Talos source: internal/app/apid/pkg/backend, APID"
	sourceImpersonator = "Talos source: pkg/grpc/middleware/authz, Injector"
)

// throughControlPlane is Talos' own client for the first control-plane node, and a context that asks for the subject.
func throughControlPlane(s *subject, roles ...role.Role) (*client.Client, context.Context) {
	return s.client(s.nodes[0], roles...), client.WithNode(s.ctx, s.node.Address())
}

var workerBehind = subjectOptions{worker: true}

var proxyClaims = []claim{
	{
		says: "a control-plane node passes a call on to a worker", source: sourceDirector, options: workerBehind,
		check: func(_ *testing.T, s *subject) {
			c, ctx := throughControlPlane(s, role.Reader)
			response, err := c.MachineClient.Hostname(ctx, nil)
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(response.GetMessages()[0].GetHostname()).To(Equal("w1"))
			s.Expect(response.GetMessages()[0].GetMetadata()).To(BeNil(), "one answer is passed on as it is")
			s.Expect(s.node.CallCount("Hostname")).To(Equal(1))
			s.Expect(s.nodes[0].CallCount("Hostname")).To(BeZero())
		},
	},
	{
		says: "streams and resources are passed on", source: sourceDirector, options: workerBehind,
		check: func(_ *testing.T, s *subject) {
			c, ctx := throughControlPlane(s, role.Admin)
			config, err := safe.StateGetByID[*configres.MachineConfig](ctx, c.COSI, configres.ActiveID)
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(config.Config().Machine().Type().String()).To(Equal("worker"))
			events := make(chan state.Event)
			s.Expect(c.COSI.Watch(ctx, runtimeres.NewMachineStatus().Metadata(), events)).To(Succeed())
			s.Eventually(events, wait).Should(Receive(HaveField("Type", state.Created)))
			s.Expect(c.Reboot(ctx)).To(Succeed())
			s.Eventually(events, wait).Should(Receive(WithTransform(stageOf, Equal(runtimeres.MachineStageRebooting))))
		},
	},
	{
		says: "the caller's own roles count at the node that is asked", source: sourceImpersonator, options: workerBehind,
		check: func(_ *testing.T, s *subject) {
			c, ctx := throughControlPlane(s, role.Reader)
			s.Expect(c.Reboot(ctx)).To(code(codes.PermissionDenied))
			_, err := safe.StateGetByID[*configres.MachineConfig](ctx, c.COSI, configres.ActiveID)
			s.Expect(err).To(code(codes.PermissionDenied))
		},
	},
	{
		says: "only an impersonator may name other roles", source: sourceImpersonator,
		check: func(_ *testing.T, s *subject) {
			pretend := metadata.AppendToOutgoingContext(s.ctx, "talos-role", string(role.Admin))
			s.Expect(s.as(role.Reader).Reboot(pretend)).To(code(codes.PermissionDenied))
			_, err := s.as(role.Impersonator).Version(s.ctx)
			s.Expect(err).To(code(codes.PermissionDenied))
			_, err = s.as(role.Impersonator).Version(pretend)
			s.Expect(err).NotTo(HaveOccurred())
		},
	},
	{
		says: "a node that is down cannot be reached through another", source: sourceBackend, options: workerBehind,
		check: func(_ *testing.T, s *subject) {
			c, ctx := throughControlPlane(s, role.Reader)
			s.node.PowerOff()
			_, err := c.Version(ctx)
			s.Expect(err).To(code(codes.Unavailable))
			_, err = safe.StateListAll[*runtimeres.MachineStatus](ctx, c.COSI)
			s.Expect(err).To(code(codes.Unavailable))
			s.Expect(s.node.PowerOn(s.ctx)).To(Succeed())
			s.Eventually(func() error { _, err := c.Version(ctx); return err }, wait, "5ms").Should(Succeed())
		},
	},
	{
		says: "a node that answers nothing is waited for as long as the caller waits", source: sourceBackend,
		options: subjectOptions{worker: true, faults: talossim.Faults{BlackHole: true}},
		check: func(_ *testing.T, s *subject) {
			c, ctx := throughControlPlane(s, role.Reader)
			ctx, cancel := context.WithTimeout(ctx, soon)
			defer cancel()
			_, err := c.Version(ctx)
			s.Expect(err).To(code(codes.DeadlineExceeded))
		},
	},
	{
		says: "an address that is nobody's cannot be reached", source: sourceBackend,
		check: func(_ *testing.T, s *subject) {
			_, err := s.as(role.Reader).Version(client.WithNode(s.ctx, "127.0.0.1"))
			s.Expect(err).To(code(codes.Unavailable))
		},
	},
	{
		says: "a machine of another authority at the address is not believed", source: sourceBackend,
		options: subjectOptions{worker: true, faults: talossim.Faults{WrongCA: true}},
		check: func(_ *testing.T, s *subject) {
			c, ctx := throughControlPlane(s, role.Reader)
			_, err := c.Version(ctx)
			s.Expect(err).To(code(codes.Unavailable))
		},
	},
	{
		says: "several nodes answer with a message each, named, and errors among them", source: sourceBackend, options: workerBehind,
		check: func(_ *testing.T, s *subject) {
			off := s.start(talossim.NodeOptions{Name: "w2"}, s.node.Config())
			off.PowerOff()
			// Deprecated, and what other clients still do.
			ctx := client.WithNodes(s.ctx, s.nodes[0].Address(), s.node.Address(), off.Address())
			response, err := s.client(s.nodes[0], role.Reader).MachineClient.Version(ctx, nil)
			s.Expect(err).NotTo(HaveOccurred())
			var names, failed []string
			for _, message := range response.GetMessages() {
				names = append(names, message.GetMetadata().GetHostname()) //nolint:staticcheck // as above
				if message.GetMetadata().GetError() != "" {                //nolint:staticcheck // as above
					failed = append(failed, message.GetMetadata().GetHostname()) //nolint:staticcheck // as above
				}
			}
			s.Expect(names).To(Equal([]string{s.nodes[0].Address(), s.node.Address(), off.Address()}))
			s.Expect(failed).To(Equal([]string{off.Address()}))
		},
	},
	{
		says: "resources, images and upgrades are of one node at a time", source: sourceDirector, options: workerBehind,
		check: func(_ *testing.T, s *subject) {
			ctx := client.WithNodes(s.ctx, s.node.Address()) // deprecated, and what is claimed
			c := s.client(s.nodes[0], role.Admin)
			_, err := safe.StateListAll[*runtimeres.MachineStatus](ctx, c.COSI)
			s.Expect(err).To(code(codes.InvalidArgument))
			stream, err := c.LifecycleClient.Upgrade(ctx, &machine.LifecycleServiceUpgradeRequest{})
			s.Expect(err).NotTo(HaveOccurred())
			_, err = stream.Recv()
			s.Expect(err).To(code(codes.InvalidArgument))
		},
	},
	{
		says: "a worker passes nothing on, and takes what is for itself", source: sourceDirector, options: workerBehind,
		check: func(_ *testing.T, s *subject) {
			c := s.as(role.Admin)
			_, err := c.Version(client.WithNode(s.ctx, s.nodes[0].Address()))
			s.Expect(err).To(code(codes.PermissionDenied))
			_, err = c.Version(client.WithNode(s.ctx, s.node.Address()))
			s.Expect(err).NotTo(HaveOccurred())
		},
	},
}
