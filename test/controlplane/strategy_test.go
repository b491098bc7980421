// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
	play "github.com/maesh-dev/ichor/test/scenario"
)

// With OnDelete a machine that is not as the spec wants it is left alone until its user deletes it. It is the only one, so another is
// made before its etcd member leaves. Later all are replaced that were made before a time which is still to come.
func TestOnDelete(t *testing.T) {
	onlyLong(t)

	s := newScenario(t)
	t.Parallel()

	s.Create(clusterOf(infrav1.FidelityFull, 1))
	first := s.settled(1)[0].Name

	s.change(func(tcp *controlplanev1.TalosControlPlane) {
		tcp.Spec.Rollout.Strategy = controlplanev1.RolloutStrategy{Type: controlplanev1.OnDeleteRollout}
		tcp.Spec.Version = "v1.36.2"
	})
	s.Eventually(func(g Gomega) {
		tcp := s.controlPlane()
		g.Expect(tcp.Status.Plan.Reason).To(Equal(controlplanev1.PlanOnDeleteReason), play.Describe(tcp))
		g.Expect(tcp.Status.Plan.Message).To(ContainSubstring(first))
		g.Expect(tcp.Status.UpToDateReplicas).To(HaveValue(BeEquivalentTo(0)))
	}).Should(Succeed())
	s.Steady()
	s.Expect(names(s.machineList())).To(ConsistOf(first))

	s.Delete(&clusterv1.Machine{}, first)

	second := s.settled(1)[0]
	s.Expect(second.Spec.Version).To(Equal("v1.36.2"))
	s.Expect(s.Watch.Left(first)).To(BeTrue())

	s.change(func(tcp *controlplanev1.TalosControlPlane) {
		tcp.Spec.Rollout = controlplanev1.RolloutSpec{
			After:    metav1.NewTime(time.Now().Add(5 * time.Second)),
			Strategy: controlplanev1.RolloutStrategy{Type: controlplanev1.RollingUpdateRollout},
		}
	})
	s.Eventually(func() []string { return names(s.machineList()) }).ShouldNot(ContainElement(second.Name))
	s.settled(1)
	s.deleteCluster()
}

// A control plane whose Cluster somebody has torn out goes as far as Cluster API lets it, and says what is missing.
func TestClusterGone(t *testing.T) {
	s := newScenario(t)
	t.Parallel()

	s.Create(clusterOf(infrav1.FidelityLight, 1))
	s.bootstrappedOnce()

	lost := s.tearOutCluster()

	s.Eventually(func(g Gomega) {
		tcp := s.controlPlane()
		g.Expect(tcp.DeletionTimestamp).NotTo(BeNil(), "nobody owns it any more")
		g.Expect(tcp.Status.Plan.Reason).To(Equal(controlplanev1.PlanMachineDeletingReason))
		g.Expect(tcp.Status.Plan.Message).To(ContainSubstring("create the Cluster again"))
	}).Should(Succeed())

	for _, machine := range s.machineList() {
		s.Expect(machine.DeletionTimestamp).NotTo(BeNil())
		s.Expect(machine.Annotations).NotTo(HaveKey(controlplanev1.PreTerminateHookAnnotation))
	}

	lost.ObjectMeta = metav1.ObjectMeta{Namespace: lost.Namespace, Name: lost.Name}
	s.Expect(s.Client.Create(s.ctx, lost)).To(Succeed())
	s.Gone(&controlplanev1.TalosControlPlane{}, "cp")
	s.deleteCluster()
}
