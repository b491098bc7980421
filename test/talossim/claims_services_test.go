// SPDX-License-Identifier: Apache-2.0

package talossim_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	. "github.com/onsi/gomega"
	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	runtimeres "github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"github.com/siderolabs/talos/pkg/machinery/resources/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/maesh-dev/ichor/test/talossim"
)

const (
	sourceServices = "Talos source: internal/app/machined/pkg/system, APIStart, APIStop, APIRestart"
	sourceEvents   = "Talos source: internal/app/machined/pkg/runtime/v1alpha1, events; machinery: client, EventsWatchV2"
	kubeletPatch   = "apiVersion: v1alpha1\nkind: KubeletConfig\nextraArgs: {v: \"4\"}\n"
)

// events are those that a node has remembered and tells from now on, until the context ends.
func events(s *subject, options ...client.EventsOptionFunc) <-chan client.EventResult {
	ch := make(chan client.EventResult)
	ctx, cancel := context.WithCancel(s.ctx)
	context.AfterFunc(s.ctx, cancel)
	s.Expect(s.as(role.Reader).EventsWatchV2(ctx, ch, options...)).To(Succeed())
	return ch
}

// sequenceOf names the sequence that an event is about.
func sequenceOf(result client.EventResult) string {
	if e, ok := result.Event.Payload.(*machine.SequenceEvent); ok {
		return e.GetSequence() + " " + e.GetAction().String()
	}
	return ""
}

func serviceOf(result client.EventResult) string {
	if e, ok := result.Event.Payload.(*machine.ServiceStateEvent); ok {
		return e.GetService() + " " + e.GetAction().String()
	}
	return ""
}

// receiveUntil reads events until one is what is wanted.
func receiveUntil(s *subject, from <-chan client.EventResult, of func(client.EventResult) string, want string) client.EventResult {
	for {
		select {
		case result := <-from:
			s.Expect(result.Error).NotTo(HaveOccurred(), "before %q", want)
			if of(result) == want {
				return result
			}
		case <-s.ctx.Done():
			s.Expect(s.ctx.Err()).NotTo(HaveOccurred(), "before %q", want)
		}
	}
}

// statusOf is the stage of a node, whether it is ready, and why not.
func statusOf(s *subject) string {
	found, err := safe.StateGetByID[*runtimeres.MachineStatus](s.ctx, s.as(role.Reader).COSI, runtimeres.MachineStatusID)
	if err != nil {
		return err.Error() // it reboots
	}
	status := found.TypedSpec()
	var unmet []string
	for _, each := range status.Status.UnmetConditions {
		unmet = append(unmet, each.Name+": "+each.Reason)
	}
	return fmt.Sprintf("%s %t %v", status.Stage, status.Status.Ready, unmet)
}

func stateOf(s *subject, id string) string {
	response, err := s.as(role.Reader).ServiceList(s.ctx)
	s.Expect(err).NotTo(HaveOccurred())
	for _, service := range response.GetMessages()[0].GetServices() {
		if service.GetId() == id {
			return service.GetState()
		}
	}
	return ""
}

var serviceClaims = []claim{
	{
		says: "the boot is remembered, and what comes is told", source: sourceEvents,
		check: func(_ *testing.T, s *subject) {
			ch := events(s, client.WithTailEvents(-1))
			receiveUntil(s, ch, sequenceOf, "boot START")
			receiveUntil(s, ch, serviceOf, "etcd RUNNING")
			receiveUntil(s, ch, sequenceOf, "boot STOP")
			_, err := s.as(role.Operator).ServiceRestart(s.ctx, "kubelet")
			s.Expect(err).NotTo(HaveOccurred())
			receiveUntil(s, ch, serviceOf, "kubelet FINISHED")
			receiveUntil(s, ch, serviceOf, "kubelet RUNNING")
		},
	},
	{
		says: "a control-plane node is booting until its etcd is bootstrapped", source: "Talos source: v1alpha1 sequencer, StartAllServices; constants, BootTimeout",
		options: subjectOptions{bare: true},
		check: func(_ *testing.T, s *subject) {
			stage := func() string {
				status, err := safe.StateGetByID[*runtimeres.MachineStatus](s.ctx, s.as(role.Reader).COSI, runtimeres.MachineStatusID)
				s.Expect(err).NotTo(HaveOccurred())
				return status.TypedSpec().Stage.String()
			}
			s.Consistently(stage, "100ms", "20ms").Should(Equal("booting"))
			s.Expect(s.as(role.Admin).Bootstrap(s.ctx, &machine.BootstrapRequest{})).To(Succeed())
			s.Eventually(stage, wait, "5ms").Should(Equal("running"))
		},
	},
	{
		says: "a node is booting as long as the service of an extension waits, and is ready all the same", source: "Talos source: v1alpha1 sequencer, StartAllServices; runtime, MachineStatusController; " +
			"siderolabs/talos issues 11838, 14373",
		options: subjectOptions{image: "factory.talos.dev/metal-installer/" + schematic + ":v1.14.1"},
		check: func(_ *testing.T, s *subject) {
			s.Eventually(func() string { return statusOf(s) }, wait, "5ms").Should(Equal("running true []"))
			s.node.SetFaults(talossim.Faults{ServiceWaits: "iscsi-tools"})
			s.Expect(stateOf(s, "ext-iscsid")).To(Equal("Waiting"))
			s.Expect(statusOf(s)).To(Equal("running true []"), "it has booted")
			s.Expect(s.as(role.Operator).Reboot(s.ctx)).To(Succeed())
			s.Eventually(func() string { return statusOf(s) }, wait, "5ms").Should(Equal("booting true []"))
			s.Expect(stateOf(s, "ext-iscsid")).To(Equal("Waiting"))
			_, err := safe.StateGetByID[*v1alpha1.Service](s.ctx, s.as(role.Reader).COSI, "ext-iscsid")
			s.Expect(state.IsNotFoundError(err)).To(BeTrue(), "there is a resource of a service that does not run: %v", err)
			s.node.SetFaults(talossim.Faults{})
			s.Eventually(func() string { return statusOf(s) }, wait, "5ms").Should(Equal("running true []"))
		},
	},
	{
		says: "a node whose Kubernetes Node is not ready runs and says why it is not", source: "Talos source: runtime, MachineStatusController, nodeReadyCheck",
		options: subjectOptions{faults: talossim.Faults{NodeNotReady: true}},
		check: func(_ *testing.T, s *subject) {
			s.Eventually(func() string { return statusOf(s) }, wait, "5ms").Should(MatchRegexp(`^running false \[nodeReady: node ".+" is not ready\]$`))
			s.node.SetFaults(talossim.Faults{})
			s.Eventually(func() string { return statusOf(s) }, wait, "5ms").Should(Equal("running true []"))
		},
	},
	{
		says: "a call's sequence has its actor", source: sourceEvents,
		check: func(_ *testing.T, s *subject) {
			ch := events(s)
			response, err := s.as(role.Operator).RebootWithResponse(s.ctx)
			s.Expect(err).NotTo(HaveOccurred())
			start := receiveUntil(s, ch, sequenceOf, "reboot START")
			s.Expect(start.Event.ActorID).To(Equal(response.GetMessages()[0].GetActorId()))
		},
	},
	{
		says: "only what is new is told to one who asks for nothing that was", source: sourceEvents,
		check: func(_ *testing.T, s *subject) {
			ch := events(s)
			_, err := s.as(role.Operator).ServiceRestart(s.ctx, "kubelet")
			s.Expect(err).NotTo(HaveOccurred())
			s.Eventually(ch, wait).Should(Receive(WithTransform(serviceOf, Equal("kubelet STOPPING"))))
		},
	},
	{
		says: "an operator restarts the kubelet, and no service of the system", source: sourceServices,
		check: func(_ *testing.T, s *subject) {
			_, err := s.as(role.Operator).ServiceRestart(s.ctx, "etcd")
			s.Expect(err).To(MatchError(ContainSubstring("doesn't support restart operation via API")))
			_, err = s.as(role.Operator).ServiceRestart(s.ctx, "nothing")
			s.Expect(err).To(HaveOccurred())
			_, err = s.as(role.Reader).ServiceRestart(s.ctx, "kubelet")
			s.Expect(err).To(code(codes.PermissionDenied))
		},
	},
	{
		says: "a kubelet that is stopped keeps the node from being ready, until it is started", source: sourceServices,
		check: func(_ *testing.T, s *subject) {
			s.Expect(ready(s)).To(BeTrue())
			_, err := s.as(role.Operator).ServiceStop(s.ctx, "kubelet")
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(stateOf(s, "kubelet")).To(Equal("Finished"))
			s.Expect(ready(s)).To(BeFalse())
			_, err = s.as(role.Operator).ServiceStart(s.ctx, "kubelet")
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(ready(s)).To(BeTrue())
		},
	},
	{
		says: "a change of its configuration restarts the kubelet, and nothing else does", source: "Talos source: internal/app/machined/pkg/controllers/k8s, KubeletServiceController",
		check: func(_ *testing.T, s *subject) {
			ch := events(s)
			for _, patch := range []string{schedulerPatch, kubeletPatch} {
				_, err := apply(s, s.as(role.Admin), machine.ApplyConfigurationRequest_NO_REBOOT, s.config(machinetype.TypeControlPlane, patch))
				s.Expect(err).NotTo(HaveOccurred())
			}
			s.Eventually(ch, wait).Should(Receive(WithTransform(serviceOf, Equal("kubelet STOPPING"))))
		},
	},
	{
		says: "a service's log is sent, and followed", source: "Talos documentation: talosctl logs",
		check: func(_ *testing.T, s *subject) {
			c := s.as(role.Reader)
			stream, err := c.Logs(s.ctx, "system", common.ContainerDriver_CONTAINERD, "kubelet", false, -1)
			s.Expect(err).NotTo(HaveOccurred())
			var text string
			for {
				data, err := stream.Recv()
				if errors.Is(err, io.EOF) {
					break
				}
				s.Expect(err).NotTo(HaveOccurred())
				text += string(data.GetBytes())
			}
			s.Expect(text).To(ContainSubstring("kubelet: Started service"))
			stream, err = c.Logs(s.ctx, "system", common.ContainerDriver_CONTAINERD, "kubelet", true, 0)
			s.Expect(err).NotTo(HaveOccurred())
			followed := make(chan string, 1)
			go func() {
				data, _ := stream.Recv()
				followed <- string(data.GetBytes())
			}()
			// What happens before the node follows is not told.
			s.Eventually(func() string {
				_, err := s.as(role.Operator).ServiceRestart(s.ctx, "kubelet")
				s.Expect(err).NotTo(HaveOccurred())
				select {
				case line := <-followed:
					return line
				case <-time.After(20 * time.Millisecond):
					return ""
				}
			}, wait, "5ms").Should(HavePrefix("kubelet: "))
			stream, err = c.Logs(s.ctx, "system", common.ContainerDriver_CONTAINERD, "nothing", false, -1)
			s.Expect(err).NotTo(HaveOccurred())
			_, err = stream.Recv()
			s.Expect(err).To(HaveOccurred())
		},
	},
	{
		says: "figures of the machine are for readers", source: sourceRoles, harmless: true,
		check: func(_ *testing.T, s *subject) {
			c := s.as(role.Reader)
			memory, err := c.Memory(s.ctx)
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(memory.GetMessages()[0].GetMeminfo().GetMemtotal()).NotTo(BeZero())
			_, err = c.MachineClient.LoadAvg(s.ctx, &emptypb.Empty{})
			s.Expect(err).NotTo(HaveOccurred())
			stat, err := c.MachineClient.SystemStat(s.ctx, &emptypb.Empty{})
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(stat.GetMessages()[0].GetBootTime()).NotTo(BeZero())
			_, err = c.Mounts(s.ctx)
			s.Expect(err).NotTo(HaveOccurred())
		},
	},
}
