// SPDX-License-Identifier: Apache-2.0

package talossim_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/maesh-dev/ichor/test/talossim"
)

// soon bounds a call that a fault keeps from an answer.
const soon = 50 * time.Millisecond

func TestFaults(t *testing.T) {
	tests := map[string]struct {
		options subjectOptions
		faults  talossim.Faults
		want    codes.Code
		// bound is how long the call may take, if it gets no answer.
		bound time.Duration
	}{
		"none":                      {want: codes.OK},
		"unreachable":               {faults: talossim.Faults{Unreachable: true}, want: codes.Unavailable},
		"black hole":                {faults: talossim.Faults{BlackHole: true}, bound: soon, want: codes.DeadlineExceeded},
		"slow":                      {faults: talossim.Faults{Delay: time.Hour}, bound: soon, want: codes.DeadlineExceeded},
		"wrong authority":           {faults: talossim.Faults{WrongCA: true}, want: codes.Unavailable},
		"clock behind":              {faults: talossim.Faults{ClockSkew: -time.Hour}, want: codes.Unavailable},
		"clock ahead":               {faults: talossim.Faults{ClockSkew: time.Hour}, want: codes.Unavailable},
		"unreachable, a worker":     {options: subjectOptions{worker: true}, faults: talossim.Faults{Unreachable: true}, want: codes.Unavailable},
		"wrong authority, a worker": {options: subjectOptions{worker: true}, faults: talossim.Faults{WrongCA: true}, want: codes.Unavailable},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSubject(t, tt.options)
			s.node.SetFaults(tt.faults)
			ctx := s.ctx
			if tt.bound > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, tt.bound)
				defer cancel()
			}
			_, err := s.as(role.Reader).Version(ctx)
			s.Expect(err).To(code(tt.want))

			s.node.SetFaults(talossim.Faults{})
			s.Eventually(func() error {
				_, err := s.as(role.Reader).Version(s.ctx)
				return err
			}, wait, "5ms").Should(Succeed(), "the node works when the fault is gone")
		})
	}
}

// TestFaultsOfAConnection are those that come to a connection that exists.
func TestFaultsOfAConnection(t *testing.T) {
	tests := map[string]struct {
		faults talossim.Faults
		want   codes.Code
	}{
		"unreachable": {faults: talossim.Faults{Unreachable: true}, want: codes.Unavailable},
		"black hole":  {faults: talossim.Faults{BlackHole: true}, want: codes.DeadlineExceeded},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSubject(t, subjectOptions{})
			c := s.as(role.Reader)
			_, err := c.Version(s.ctx)
			s.Expect(err).NotTo(HaveOccurred())
			s.node.SetFaults(tt.faults)
			ctx, cancel := context.WithTimeout(s.ctx, 5*soon)
			defer cancel()
			_, err = c.Version(ctx)
			s.Expect(err).To(code(tt.want))
			s.node.SetFaults(talossim.Faults{})
			s.Eventually(func() error {
				_, err := c.Version(s.ctx)
				return err
			}, wait, "5ms").Should(Succeed())
		})
	}
}

func TestHostnameFault(t *testing.T) {
	t.Parallel()
	s := newSubject(t, subjectOptions{faults: talossim.Faults{Hostname: "somebody-else"}})
	s.Expect(hostname(s)).To(Equal("somebody-else"))
}

func TestLeaveFails(t *testing.T) {
	t.Parallel()
	s := newSubject(t, subjectOptions{controlPlanes: 3, faults: talossim.Faults{LeaveFails: "no"}})
	s.Expect(leave(s, s.node)).NotTo(Succeed())
	s.Expect(members(s, s.node)).To(HaveLen(3))
	s.node.SetFaults(talossim.Faults{})
	s.Expect(leave(s, s.node)).To(Succeed())
}

func TestTraps(t *testing.T) {
	tests := map[string]struct {
		set  func(n *talossim.Node)
		left bool // the member left all the same
		boot bool // the node booted again
	}{
		"crash before": {set: func(n *talossim.Node) { n.CrashBefore("EtcdLeaveCluster") }, boot: true},
		"crash after":  {set: func(n *talossim.Node) { n.CrashAfter("EtcdLeaveCluster") }, left: true, boot: true},
		"an error": {set: func(n *talossim.Node) {
			n.FailNext("EtcdLeaveCluster", status.Error(codes.Internal, "broken"))
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSubject(t, subjectOptions{controlPlanes: 3})
			before, member := s.node.BootID(), s.node.EtcdMemberID()
			tt.set(s.node)
			err := leave(s, s.node)
			s.Expect(err != nil || tt.left).To(BeTrue(), "a call that did nothing must not succeed")
			if tt.boot {
				rebooted(s, before)
			}
			s.Eventually(func() bool { return s.voter(s.node) }, wait, "5ms").Should(BeTrue())
			s.Expect(s.node.EtcdMemberID() != member).To(Equal(tt.left))
			s.Expect(members(s, s.nodes[1])).To(HaveLen(3))
			s.Expect(leave(s, s.node)).To(Succeed(), "a trap is sprung once")
		})
	}
}

// TestCalls are what a test counts with.
func TestCalls(t *testing.T) {
	t.Parallel()
	s := newSubject(t, subjectOptions{})
	s.Expect(s.node.CallCount("Bootstrap")).To(Equal(1))
	s.Expect(s.as(role.Admin).Bootstrap(s.ctx, &machine.BootstrapRequest{})).NotTo(Succeed())
	s.Expect(s.node.CallCount("Bootstrap")).To(Equal(1))
	s.Expect(s.node.Calls()).To(ContainElement(talossim.Call{Method: "Bootstrap", Roles: []string{"os:admin"}, Code: "AlreadyExists"}))
}

// TestCrashLosesNoMember has the whole control plane lose power at once.
func TestCrashLosesNoMember(t *testing.T) {
	t.Parallel()
	s := newSubject(t, subjectOptions{controlPlanes: 3})
	ids := map[string]uint64{}
	for _, n := range s.nodes {
		ids[n.Name()] = n.EtcdMemberID()
		n.PowerOff()
	}
	for _, n := range s.nodes {
		s.Expect(n.PowerOn(s.ctx)).To(Succeed())
	}
	for _, n := range s.nodes {
		s.Eventually(func() bool { return s.voter(n) }, wait, "5ms").Should(BeTrue())
		s.Expect(n.EtcdMemberID()).To(Equal(ids[n.Name()]))
	}
}
