// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	play "github.com/maesh-dev/ichor/test/scenario"
	"github.com/maesh-dev/ichor/test/stage"
)

// deleteGuarded deletes a Machine on whose node a pod runs that its disruption budget keeps there: the drain waits, the etcd member stays,
// and so do all others. When the budget is gone, so is the Machine, and Cluster API deletes its Node.
func (s *scenario) deleteGuarded(name string, members []clusterv1.Machine) {
	s.t.Helper()

	release := s.guard(name)
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
	s.Expect(s.Client.Delete(s.ctx, machine)).To(Succeed())

	s.Eventually(func(g Gomega) {
		g.Expect(s.Client.Get(s.ctx, s.key(name), machine)).To(Succeed())
		g.Expect(conditions.GetReason(machine, clusterv1.MachineDeletingCondition)).To(Equal(clusterv1.MachineDeletingDrainingNodeReason), play.Describe(machine))
		g.Expect(conditions.GetMessage(machine, clusterv1.MachineDeletingCondition)).To(ContainSubstring("guarded"))
	}).Should(Succeed())
	s.Consistently(func(g Gomega) {
		for _, member := range members {
			g.Expect(s.VotersOf(g, member)).To(Equal(len(members)), member.Name)
		}
	}).WithTimeout(5 * time.Second).WithPolling(time.Second).Should(Succeed())
	s.Expect(s.Watch.Left(name)).To(BeFalse())

	release()
	s.Gone(machine, name)
	s.Expect(s.Watch.Check(s.ctx)).To(Succeed())
	s.Expect(s.Watch.Left(name)).To(BeTrue(), "the etcd member left after the drain")
	s.Expect(s.Watch.NodeDeletedBy(name)).To(ContainSubstring("cluster-api"))
}

// guard puts a pod on a node, and a budget around it. The function that is returned takes the budget away.
func (s *scenario) guard(node string) (release func()) {
	s.t.Helper()

	kubernetes, err := stage.Kubernetes(s.ctx, s.Client, s.key("c"))
	s.Expect(err).NotTo(HaveOccurred())

	labels := map[string]string{"app": "guarded"}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "guarded", Labels: labels},
		Spec: corev1.PodSpec{
			NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "example.com/c"}},
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		},
	}
	s.Eventually(func() error {
		return kubernetes.Create(s.ctx, pod) // until the namespace has its service account
	}).Should(Succeed())

	// A pod that does not run may be evicted whatever its budget says.
	before := pod.DeepCopy()
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	s.Expect(kubernetes.Status().Patch(s.ctx, pod, client.MergeFrom(before))).To(Succeed())

	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "guarded"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
		},
	}
	s.Expect(kubernetes.Create(s.ctx, budget)).To(Succeed())
	s.Eventually(func(g Gomega) {
		g.Expect(kubernetes.Get(s.ctx, client.ObjectKeyFromObject(budget), budget)).To(Succeed())
		g.Expect(budget.Status.CurrentHealthy).To(BeEquivalentTo(1))
	}).Should(Succeed())

	return func() { s.Expect(kubernetes.Delete(s.ctx, budget)).To(Succeed()) }
}
