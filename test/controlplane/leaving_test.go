// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
	"github.com/maesh-dev/ichor/test/talossim"
)

// A Machine that a user deletes goes when its etcd member has left, however that goes, and another is made in its place: nothing waits for a
// member that is no more, and no machine goes whose member is in the list. Machines are of light fidelity, and there is nothing to drain.
//
// contract: the pre-terminate hook is held until the member of a Machine has left etcd.
func TestLeaving(t *testing.T) {
	onlyLong(t)

	t.Parallel()

	tests := map[string]func(*talossim.Node){
		"it leaves":                  func(*talossim.Node) {},
		"it leaves, and dies of it":  func(n *talossim.Node) { n.CrashAfter("EtcdLeaveCluster") },
		"it dies before it has left": func(n *talossim.Node) { n.CrashBefore("EtcdLeaveCluster") },
		"it cannot leave":            func(n *talossim.Node) { n.SetFaults(talossim.Faults{LeaveFails: "etcdserver: unhealthy cluster"}) },
		"its node is dead":           func(n *talossim.Node) { n.PowerOff() },
		"its node does not answer":   func(n *talossim.Node) { n.SetFaults(talossim.Faults{Unreachable: true}) },
	}

	all := map[string]*scenario{}
	for name := range tests {
		all[name] = newScenario(t)
		all[name].play(situation{})
	}

	for _, s := range all {
		s.bootstrappedOnce()
		s.add(second, infrav1.Faults{})
	}

	for _, s := range all {
		s.hasVote(second)
		s.add(odd, infrav1.Faults{})
	}

	for _, s := range all {
		s.hasVote(odd)
		s.initialized()
		s.link(odd)
	}

	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			s := all[name].of(t)

			node := s.Node(second)
			member := node.EtcdMemberID()
			spoil(node)
			s.goesAlone(second, member)

			s.Eventually(func() []string { return names(s.machineList()) }).Should(And(HaveLen(3), Not(ContainElement(second))), "no other is made in its place")
			s.countBootstraps()
			s.goes()
		})
	}
}

// goesAlone deletes a Machine, and looks at etcd until it is gone: as long as the member is in the list the infrastructure stays.
func (s *scenario) goesAlone(name string, member uint64) {
	s.t.Helper()

	machine := &clusterv1.Machine{}
	s.Expect(s.Client.Get(s.ctx, s.key(name), machine)).To(Succeed())

	before := machine.DeepCopy()
	metav1.SetMetaDataAnnotation(&machine.ObjectMeta, clusterv1.ExcludeNodeDrainingAnnotation, "")
	metav1.SetMetaDataAnnotation(&machine.ObjectMeta, clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation, "")
	s.Expect(s.Client.Patch(s.ctx, machine, client.MergeFrom(before))).To(Succeed())
	s.Expect(s.Client.Delete(s.ctx, machine)).To(Succeed())

	first := s.Node(s.first())

	s.Eventually(func(g Gomega) {
		infrastructure := &infrav1.SimMachine{}
		err := s.Client.Get(s.ctx, s.key(name), infrastructure)
		going := apierrors.IsNotFound(err) || !infrastructure.DeletionTimestamp.IsZero()

		view, asked := first.AskEtcd(s.ctx)
		if asked == nil && going {
			for _, each := range view.Members {
				s.Expect(each.GetId()).NotTo(Equal(member), "the machine goes and its member is in the list")
			}
		}

		g.Expect(apierrors.IsNotFound(s.Client.Get(s.ctx, s.key(name), machine))).To(BeTrue(), "Machine %s is there", name)
	}).Should(Succeed())

	s.Eventually(func(g Gomega) {
		view, err := first.AskEtcd(s.ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(slices.ContainsFunc(view.Members, func(m *machineapi.EtcdMember) bool { return m.GetId() == member })).To(BeFalse())
	}).Should(Succeed())
}
