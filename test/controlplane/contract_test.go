// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
)

// What Cluster API's contract wants of a control plane and of what it makes, with Cluster API's own core manager beside it.
//
// contract: Machine, TalosConfig and infrastructure machine have one name, the labels and the owners that Cluster API looks for.
// contract: spec and metadata are applied by two field managers, and nothing is written into the spec of the control plane.
// contract: conditions and counters are where Cluster API reads them; Available is that of the Cluster, too.
// contract: the infrastructure template is owned by the Cluster.
func TestContract(t *testing.T) {
	s := newScenario(t)
	t.Parallel()

	s.Create(clusterOf(infrav1.FidelityLight, 1))
	s.bootstrappedOnce()

	tcp := s.controlPlane()
	machine := s.machineList()[0]

	s.Expect(machine.Labels).To(And(HaveKeyWithValue(clusterv1.ClusterNameLabel, "c"), HaveKeyWithValue(clusterv1.MachineControlPlaneNameLabel, "cp"),
		HaveKey(clusterv1.MachineControlPlaneLabel)))
	s.Expect(metav1.IsControlledBy(&machine, tcp)).To(BeTrue())
	s.Expect(machine.Spec.ClusterName).To(Equal("c"))
	s.Expect(machine.Spec.Version).To(Equal(tcp.Spec.Version))
	s.Expect(conditions.Has(&machine, controlplanev1.MachineUpToDateCondition)).To(BeTrue())

	for _, gate := range []string{
		controlplanev1.MachineAPIServerPodHealthyCondition, controlplanev1.MachineControllerManagerPodHealthyCondition,
		controlplanev1.MachineSchedulerPodHealthyCondition, controlplanev1.MachineEtcdMemberHealthyCondition,
	} {
		s.Expect(machine.Spec.ReadinessGates).To(ContainElement(clusterv1.MachineReadinessGate{ConditionType: gate}))
	}

	for _, object := range []client.Object{&bootstrapv1.TalosConfig{}, &infrav1.SimMachine{}} {
		s.Eventually(func(g Gomega) { // core makes the Machine the owner when it has seen it
			g.Expect(s.Client.Get(s.ctx, s.key(machine.Name), object)).To(Succeed())
			g.Expect(metav1.IsControlledBy(object, &machine)).To(BeTrue(), "%T: %v", object, object.GetOwnerReferences())
		}).Should(Succeed())
		s.Expect(object.GetLabels()).To(And(HaveKeyWithValue(clusterv1.ClusterNameLabel, "c"), HaveKey(clusterv1.MachineControlPlaneLabel)))
		s.Expect(managersOf(object)).To(ContainElements("ichor-controlplane", "ichor-controlplane-metadata"))
	}

	infrastructure := &infrav1.SimMachine{}
	s.Expect(s.Client.Get(s.ctx, s.key(machine.Name), infrastructure)).To(Succeed())
	s.Expect(infrastructure.Annotations).To(And(HaveKeyWithValue(clusterv1.TemplateClonedFromNameAnnotation, "cp"),
		HaveKeyWithValue(clusterv1.TemplateClonedFromGroupKindAnnotation, "SimMachineTemplate.infrastructure.ichor.maesh.dev")))

	s.reported()
	s.templateOwned()
	s.deleteCluster()
}

// managersOf are the field managers that apply something.
func managersOf(object client.Object) []string {
	var out []string

	for _, each := range object.GetManagedFields() {
		if each.Operation == metav1.ManagedFieldsOperationApply {
			out = append(out, each.Manager)
		}
	}

	return out
}

// reported looks at what Cluster API and kubectl read of a control plane.
func (s *scenario) reported() {
	s.t.Helper()

	tcp := s.controlPlane()
	s.Expect(tcp.Status.Replicas).To(HaveValue(BeEquivalentTo(1)))
	s.Expect(tcp.Status.ReadyReplicas).To(HaveValue(BeEquivalentTo(0)))
	s.Expect(tcp.Status.AvailableReplicas).To(HaveValue(BeEquivalentTo(0)))
	s.Expect(tcp.Status.UpToDateReplicas).To(HaveValue(BeEquivalentTo(1)))
	s.Expect(tcp.Status.Versions).To(ConsistOf(clusterv1.StatusVersion{Version: tcp.Spec.Version, Replicas: 1}))
	s.Expect(tcp.Status.Version).To(Equal(tcp.Spec.Version))
	s.Expect(tcp.Status.Initialization.ControlPlaneInitialized).To(BeNil(), "no API server has answered")

	scale := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "autoscaling/v1", "kind": "Scale"}}
	s.Expect(s.Client.SubResource("scale").Get(s.ctx, tcp, scale)).To(Succeed())

	selector, _, err := unstructured.NestedString(scale.Object, "status", "selector")
	s.Expect(err).NotTo(HaveOccurred())

	parsed, err := metav1.ParseToLabelSelector(selector)
	s.Expect(err).NotTo(HaveOccurred())

	selects, err := metav1.LabelSelectorAsSelector(parsed)
	s.Expect(err).NotTo(HaveOccurred())

	selected := &clusterv1.MachineList{}
	s.Expect(s.Client.List(s.ctx, selected, client.InNamespace(s.namespace), client.MatchingLabelsSelector{Selector: selects})).To(Succeed())
	s.Expect(selected.Items).To(HaveLen(1))

	s.Expect(tcp.Generation).To(BeEquivalentTo(1), "somebody has written into the spec")

	cluster := &clusterv1.Cluster{}
	s.Eventually(func(g Gomega) {
		g.Expect(s.Client.Get(s.ctx, s.key("c"), cluster)).To(Succeed())

		mirrored, own := conditions.Get(cluster, clusterv1.ClusterControlPlaneAvailableCondition), conditions.Get(s.controlPlane(), controlplanev1.AvailableCondition)
		g.Expect(mirrored).NotTo(BeNil())
		g.Expect([]any{mirrored.Status, mirrored.Reason, mirrored.Message}).To(Equal([]any{own.Status, own.Reason, own.Message}))
	}).Should(Succeed())

	kubeconfig := &corev1.Secret{}
	s.Expect(s.Client.Get(s.ctx, s.key("c-kubeconfig"), kubeconfig)).To(Succeed())
	s.Expect(kubeconfig.Type).To(Equal(clusterv1.ClusterSecretType))
	s.Expect(metav1.IsControlledBy(kubeconfig, tcp)).To(BeTrue())
}

// templateOwned looks at who owns the template that the machine was made from.
func (s *scenario) templateOwned() {
	s.t.Helper()

	template := &infrav1.SimMachineTemplate{}
	s.Expect(s.Client.Get(s.ctx, s.key("cp"), template)).To(Succeed())
	s.Expect(template.OwnerReferences).To(HaveLen(1))
	s.Expect(template.OwnerReferences[0].Kind).To(Equal("Cluster"))
	s.Expect(ptr.Deref(template.OwnerReferences[0].Controller, false)).To(BeFalse())
}
