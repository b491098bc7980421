// SPDX-License-Identifier: Apache-2.0

package talos_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/maesh-dev/ichor/internal/etcd"
	"github.com/maesh-dev/ichor/internal/talos"
	"github.com/maesh-dev/ichor/test/talossim"
)

func TestBootstrap(t *testing.T) {
	t.Parallel()

	w := newWorld(t, talos.Options{})
	w.growBare(2)

	w.nodes[0].SetFaults(talossim.Faults{TimeUnsynced: true})
	err := w.open().Bootstrap(w.ctx, "cp1")
	w.Expect(err).To(MatchError(talos.ErrNotReady))
	w.Expect(err.Error()).To(Equal("machine cp1: etcd cannot be bootstrapped yet: time is not in sync yet"))
	w.nodes[0].SetFaults(talossim.Faults{})

	w.nodes[0].FailNext("Bootstrap", status.Error(codes.PermissionDenied, "not authorized"))
	w.Expect(w.open().Bootstrap(w.ctx, "cp1")).To(MatchError(talos.ErrRefused))

	w.Expect(w.open().Bootstrap(w.ctx, "cp1")).To(Succeed())
	w.Eventually(func() bool { return w.votes(w.nodes[0]) }, patience, "5ms").Should(BeTrue(), "it answers before etcd has started")
	w.Expect(w.open().Bootstrap(w.ctx, "cp1")).To(MatchError(talos.ErrAlreadyExists))
	w.Expect(w.nodes[0].CallCount("Bootstrap")).To(Equal(1), "a node with data is not asked")
	w.Eventually(func() bool { return w.votes(w.nodes[1]) }, patience, "5ms").Should(BeTrue())
	w.Expect(w.open().Bootstrap(w.ctx, "cp2")).To(MatchError(talos.ErrAlreadyExists))
	w.Expect(w.nodes[1].CallCount("Bootstrap")).To(BeZero())

	w.Expect(w.open().Bootstrap(w.ctx, "nobody")).To(MatchError(talos.ErrNotFound))

	worker := machineOf(w.start("w1", machine.TypeWorker))
	worker.ControlPlane = false
	w.Expect(w.open(worker).Bootstrap(w.ctx, "w1")).To(MatchError(talos.ErrPrecondition))
}

// TestBootstrapIsNotCalledOnTheWrongNode is about an operation at an address that has moved: nothing reaches the node that is there now.
func TestBootstrapIsNotCalledOnTheWrongNode(t *testing.T) {
	t.Parallel()

	w := newWorld(t, talos.Options{})
	w.growBare(1)

	gone := machineOf(w.nodes[0])
	gone.Name, gone.NodeName = "gone", "gone"

	w.Expect(w.open(gone).Bootstrap(w.ctx, "gone")).To(MatchError(talos.ErrAnotherNode))
	w.Expect(w.nodes[0].CallCount("Bootstrap")).To(BeZero())
}

func TestForwardLeadership(t *testing.T) {
	t.Parallel()

	w := newWorld(t, talos.Options{})
	w.grow(3)

	_, err := w.open().ForwardLeadership(w.ctx, "cp1", member(w.nodes[1]))
	w.Expect(err).To(MatchError(talos.ErrPrecondition))

	leader, err := w.open().ForwardLeadership(w.ctx, "cp2", member(w.nodes[1]))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(leader).To(BeEmpty(), "it does not lead")
	w.Expect(w.nodes[1].CallCount("EtcdForfeitLeadership")).To(BeZero())

	leader, err = w.open().ForwardLeadership(w.ctx, "cp1", member(w.nodes[0]))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(leader).To(Or(Equal("cp2"), Equal("cp3")))
	w.Expect(w.observe(w.nodes[0]).Etcd.Leader).NotTo(Equal(member(w.nodes[0])))
}

func TestLeaveEtcd(t *testing.T) {
	t.Parallel()

	w := newWorld(t, talos.Options{})
	w.grow(3)

	left := member(w.nodes[2])

	err := w.open().LeaveEtcd(w.ctx, "cp3", member(w.nodes[1]))
	w.Expect(err).To(MatchError(talos.ErrPrecondition))
	w.Expect(err.Error()).To(Equal("machine cp3: its node is etcd member " + left.String() + " now, and " + member(w.nodes[1]).String() + " was meant"))
	w.Expect(w.nodes[2].CallCount("EtcdLeaveCluster")).To(BeZero())

	w.nodes[2].SetFaults(talossim.Faults{LeaveFails: "etcdserver: unhealthy cluster"})
	err = w.open().LeaveEtcd(w.ctx, "cp3", left)
	w.Expect(err).To(MatchError(talos.ErrFailed))
	w.Expect(err.Error()).To(Equal("machine cp3: etcdserver: unhealthy cluster"))

	w.nodes[2].SetFaults(talossim.Faults{LeaveDoesNothing: true})
	err = w.open().LeaveEtcd(w.ctx, "cp3", left)
	w.Expect(err).To(MatchError(talos.ErrFailed), "a word is no proof")
	w.Expect(err.Error()).To(Equal("machine cp3: Talos says that etcd member " + left.String() + " has left, and it is still in the list of members"))
	w.nodes[2].SetFaults(talossim.Faults{})

	w.Expect(w.open().LeaveEtcd(w.ctx, "cp3", left)).To(Succeed())
	w.Expect(w.observe(w.nodes[0]).Etcd.Members).To(HaveLen(2))

	node := w.observe(w.nodes[2])
	w.Expect(node.Etcd.Self).To(BeZero())
	w.Expect(node.Etcd.Problem).To(Equal("etcd has stopped"))

	w.Expect(w.open().LeaveEtcd(w.ctx, "cp3", left)).To(Succeed(), "it is gone already")
	w.Expect(w.nodes[2].CallCount("EtcdLeaveCluster")).To(Equal(2))
	w.Expect(w.open().LeaveEtcd(w.ctx, "cp3", member(w.nodes[1]))).To(MatchError(talos.ErrNotReady), "it is another's, who is there")
}

// TestLeaveWithoutAnAnswer is about a node that dies when it has left, before anyone hears of it: the answer is not taken for a yes, and asking
// again tells.
func TestLeaveWithoutAnAnswer(t *testing.T) {
	t.Parallel()

	w := newWorld(t, talos.Options{})
	w.grow(3)

	left := member(w.nodes[2])

	w.nodes[2].CrashAfter("EtcdLeaveCluster")
	w.Expect(w.open().LeaveEtcd(w.ctx, "cp3", left)).To(Or(MatchError(talos.ErrUnreachable), MatchError(talos.ErrNotReady)))
	w.Eventually(func() error { return w.open().LeaveEtcd(w.ctx, "cp3", left) }, patience, "20ms").Should(Succeed())
	w.Expect(w.nodes[2].CallCount("EtcdLeaveCluster")).To(BeNumerically("<=", 1))
}

func TestRemoveEtcdMember(t *testing.T) {
	t.Parallel()

	w := newWorld(t, talos.Options{})
	w.grow(3)

	gone := member(w.nodes[2])
	w.Expect(w.open().RemoveEtcdMember(w.ctx, "cp3", gone)).To(MatchError(talos.ErrPrecondition), "a member does not remove itself")

	w.nodes[2].PowerOff()
	w.Expect(w.open().RemoveEtcdMember(w.ctx, "cp3", gone)).To(MatchError(talos.ErrUnreachable))

	err := w.open().RemoveEtcdMember(w.ctx, "cp1", member(w.nodes[1]))
	w.Expect(err).To(MatchError(talos.ErrFailed), "etcd itself refuses to remove a healthy member beside one that is down")

	w.Expect(w.open().RemoveEtcdMember(w.ctx, "cp1", gone)).To(Succeed())
	w.Expect(w.open().RemoveEtcdMember(w.ctx, "cp1", gone)).To(Succeed(), "it is gone already")
	w.Expect(w.nodes[0].CallCount("EtcdRemoveMemberByID")).To(Equal(1))
	w.Expect(w.observe(w.nodes[0]).Etcd.Members).To(HaveLen(2))

	w.nodes[1].PowerOff()
	w.Expect(w.open().RemoveEtcdMember(w.ctx, "cp1", member(w.nodes[1]))).NotTo(Succeed(), "without a quorum nobody knows who is a member")
	w.Expect(w.open().RemoveEtcdMember(w.ctx, "cp1", etcd.MemberID(1))).NotTo(Succeed())
}
