// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
)

// forbearance bounds waits for what a manager itself says late: a condition turns five minutes after a node was last heard of.
const forbearance = 8 * time.Minute

// ControlPlane is the TalosControlPlane of the namespace, which has one, as it is now.
func (s *Scenario) ControlPlane() *controlplanev1.TalosControlPlane {
	list := &controlplanev1.TalosControlPlaneList{}
	s.Expect(s.Client.List(s.Ctx, list, client.InNamespace(s.Namespace))).To(Succeed())
	s.Expect(list.Items).To(HaveLen(1), "TalosControlPlanes in the namespace")

	return &list.Items[0]
}

// ControlPlaneMachines are the control-plane Machines of the namespace, the oldest first.
func (s *Scenario) ControlPlaneMachines() []clusterv1.Machine {
	list := &clusterv1.MachineList{}
	s.Expect(s.Client.List(s.Ctx, list, client.InNamespace(s.Namespace))).To(Succeed())

	machines := slices.DeleteFunc(list.Items, func(m clusterv1.Machine) bool { return !util.IsControlPlaneMachine(&m) })
	slices.SortFunc(machines, func(a, b clusterv1.Machine) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})

	return machines
}

// Settled waits until the TalosControlPlane has so many machines, all ready and as the spec wants them, says so in each of its conditions, and
// has nothing left to do. It returns the Machines, the oldest first. Light machines have no Kubernetes: a control plane never settles on them.
func (s *Scenario) Settled(replicas int) []clusterv1.Machine {
	s.Eventually(func(g Gomega) {
		list := &controlplanev1.TalosControlPlaneList{}
		g.Expect(s.Client.List(s.Ctx, list, client.InNamespace(s.Namespace))).To(Succeed())
		g.Expect(list.Items).To(HaveLen(1), "TalosControlPlanes in the namespace")

		tcp := &list.Items[0]
		plan := fmt.Sprintf("%s %s: %s\n%s", tcp.Status.Plan.Action, tcp.Status.Plan.Reason, tcp.Status.Plan.Message, Describe(tcp))

		g.Expect(tcp.Status.ObservedGeneration).To(Equal(tcp.Generation), plan)
		g.Expect(tcp.Status.Plan.Action).To(Equal("None"), plan)

		for _, count := range []*int32{tcp.Status.Replicas, tcp.Status.ReadyReplicas, tcp.Status.AvailableReplicas, tcp.Status.UpToDateReplicas} {
			g.Expect(ptr.Deref(count, -1)).To(BeEquivalentTo(replicas), plan)
		}

		for _, condition := range []string{
			controlplanev1.AvailableCondition, controlplanev1.InitializedCondition, controlplanev1.CertificatesAvailableCondition,
			controlplanev1.EtcdClusterHealthyCondition, controlplanev1.ControlPlaneComponentsHealthyCondition,
			controlplanev1.MachinesReadyCondition, controlplanev1.MachinesUpToDateCondition,
		} {
			g.Expect(conditions.IsTrue(tcp, condition)).To(BeTrue(), "%s: %s", condition, plan)
		}

		for _, condition := range []string{
			controlplanev1.RollingOutCondition, controlplanev1.ScalingUpCondition, controlplanev1.ScalingDownCondition,
			controlplanev1.RemediatingCondition, controlplanev1.DeletingCondition, controlplanev1.PausedCondition,
		} {
			g.Expect(conditions.IsFalse(tcp, condition)).To(BeTrue(), "%s: %s", condition, plan)
		}

		g.Expect(tcp.Status.Versions).To(ConsistOf(clusterv1.StatusVersion{Version: tcp.Spec.Version, Replicas: int32(replicas)}), plan)
	}).Should(Succeed())

	machines := s.ControlPlaneMachines()
	s.Expect(machines).To(HaveLen(replicas))

	return machines
}

// Speaker is an object with conditions.
type Speaker interface {
	client.Object
	conditions.Getter
}

// Says waits until a condition of an object has this status, and each of the words in its message. It waits for longer than anything else, so
// that it sees what a control plane says of a node only after it has not heard of it for five minutes.
func (s *Scenario) Says(object Speaker, name, condition string, status metav1.ConditionStatus, words ...string) {
	s.Eventually(func(g Gomega) {
		g.Expect(s.Client.Get(s.Ctx, s.Key(name), object)).To(Succeed())

		found := conditions.Get(object, condition)
		g.Expect(found).NotTo(BeNil(), "there is no condition %s:\n%s", condition, Describe(object))
		g.Expect(found.Status).To(Equal(status), "%s: %s", condition, found.Message)

		for _, word := range words {
			g.Expect(found.Message).To(ContainSubstring(word), condition)
		}
	}).WithTimeout(forbearance).Should(Succeed())
}

// Plans waits until the plan of the TalosControlPlane has this reason, and each of the words in its message. It waits for as long as Says: of a
// node that does not answer, the plan speaks after five minutes.
func (s *Scenario) Plans(reason string, words ...string) {
	s.Eventually(func(g Gomega) {
		plan := s.ControlPlane().Status.Plan
		g.Expect(plan.Reason).To(Equal(reason), plan.Message)

		for _, word := range words {
			g.Expect(plan.Message).To(ContainSubstring(word), reason)
		}
	}).WithTimeout(forbearance).Should(Succeed())
}

// Power sets the power of a machine, by its Machine's name or its SimMachine's, and waits until the infrastructure provider says so.
func (s *Scenario) Power(name string, state infrav1.Power) {
	machine, reason := &infrav1.SimMachine{}, infrav1.RunningReason
	if state == infrav1.PowerOff {
		reason = infrav1.PoweredOffReason
	}

	s.Expect(s.Client.Get(s.Ctx, s.Key(name), machine)).To(Succeed())

	before := machine.DeepCopy()
	machine.Spec.Power = state
	s.Expect(s.Client.Patch(s.Ctx, machine, client.MergeFrom(before))).To(Succeed())
	s.Ready(name, reason)
}
