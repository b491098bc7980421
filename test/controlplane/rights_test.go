// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/test/builder"
	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
	play "github.com/maesh-dev/ichor/test/scenario"
)

// refuse is the label of namespaces in which no Machine may be made.
const refuse = "test.ichor.maesh.dev/no-machines"

// The manager has the rights of its installation and no more, and goes through what needs each of them: a Machine that is refused and what was
// made for it already, bootstrap, the kubeconfig, authorities of a user's, a Machine by hand that is adopted, changes that reach machines, and
// deletion. None is lacking, and none is of no use. What other scenarios do counts, too; alone, this one is enough.
func TestRights(t *testing.T) {
	s := newScenario(t)

	s.refuseMachines(true)
	// Who says the config contract has patches looked at when the control plane is created.
	tcp := replaced(infrav1.SimMachineSpec{}, 1).With(func(tcp *controlplanev1.TalosControlPlane) { tcp.Spec.TalosConfigSpec.ConfigContract = "v1.14" })
	s.Create(builder.Cluster(play.Cluster).On(builder.Sim{Fidelity: infrav1.FidelityLight}).ControlPlane(tcp))

	// It is tried again and again.
	s.Eventually(func(g Gomega) {
		g.Expect(s.controlPlane().Status.Plan.Message).To(ContainSubstring("no Machine here"))
	}).Should(Succeed())
	s.Expect(s.machineList()).To(BeEmpty())

	for _, list := range []client.ObjectList{&bootstrapv1.TalosConfigList{}, &infrav1.SimMachineList{}} {
		s.Eventually(func(g Gomega) {
			g.Expect(s.Client.List(s.ctx, list, client.InNamespace(s.namespace))).To(Succeed())
			g.Expect(list).To(HaveField("Items", Or(BeEmpty(), HaveLen(1))), "what was made for it is removed, and one is being made")
		}).Should(Succeed())
	}

	s.refuseMachines(false)
	s.bootstrappedOnce()
	s.renewKubeconfig()
	s.acceptOwnAuthority()

	s.change(func(tcp *controlplanev1.TalosControlPlane) {
		tcp.Spec.MachineTemplate.ObjectMeta.Labels = map[string]string{"tier": "gold"}
	})
	s.Eventually(func(g Gomega) { g.Expect(s.machineList()[0].Labels).To(HaveKey("tier")) }).Should(Succeed())

	s.orphan()
	s.deleteCluster()

	unfit, err := s.UnfitRights()
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(unfit).To(BeEmpty())
}

// refuseMachines has an admission policy refuse Machines in the namespace, or no more.
func (s *scenario) refuseMachines(on bool) {
	s.t.Helper()

	namespace := &corev1.Namespace{}
	s.Expect(s.Client.Get(s.ctx, client.ObjectKey{Name: s.namespace}, namespace)).To(Succeed())
	before := namespace.DeepCopy()

	if !on {
		delete(namespace.Labels, refuse)
		s.Expect(s.Client.Patch(s.ctx, namespace, client.MergeFrom(before))).To(Succeed())

		return
	}

	metav1.SetMetaDataLabel(&namespace.ObjectMeta, refuse, "")
	s.Expect(s.Client.Patch(s.ctx, namespace, client.MergeFrom(before))).To(Succeed())

	named := metav1.ObjectMeta{Name: "no-machines-" + s.namespace}
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: named, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{refuse: "", corev1.LabelMetadataName: s.namespace}},
			ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule: admissionv1.Rule{
					APIGroups: []string{clusterv1.GroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"machines"},
				},
			}}},
		},
		Validations: []admissionv1.Validation{{Expression: "false", Message: "no Machine here"}},
	}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: named, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: named.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}

	for _, object := range []client.Object{policy, binding} {
		s.Expect(s.Client.Create(s.ctx, object)).To(Succeed())
		s.t.Cleanup(func() { NewWithT(s.t).Expect(s.Client.Delete(context.Background(), object)).To(Succeed()) })
	}

	// A policy counts some moments after it was made.
	probe := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "probe"},
		Spec: clusterv1.MachineSpec{
			ClusterName: "another", Bootstrap: clusterv1.Bootstrap{DataSecretName: new("none")},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "SimMachine", Name: "probe"},
		},
	}
	s.Eventually(func() error { return s.Client.Create(s.ctx, probe.DeepCopy(), client.DryRunAll) }).Should(MatchError(ContainSubstring("no Machine here")))
}

// acceptOwnAuthority has nodes' certificates of an authority in a user's Secret accepted: it is the cluster's own Kubernetes authority, which no
// node has.
func (s *scenario) acceptOwnAuthority() {
	s.t.Helper()

	authority := &corev1.Secret{}
	s.Expect(s.Client.Get(s.ctx, s.key(secret.Name("c", secret.ClusterCA)), authority)).To(Succeed())
	s.Expect(s.Client.Create(s.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "accepted"},
		Data:       map[string][]byte{"talos.crt": authority.Data[secret.TLSCrtDataName]},
	})).To(Succeed())

	config := &bootstrapv1.TalosClusterConfig{}
	s.Patch(config, "c", func() { config.Spec.AcceptedCAsSecretRef = &corev1.LocalObjectReference{Name: "accepted"} })
}

// orphan takes the owner off the Machine, and waits until the control plane has adopted it.
func (s *scenario) orphan() {
	s.t.Helper()

	machine := &clusterv1.Machine{}
	s.Patch(machine, s.machineList()[0].Name, func() { machine.OwnerReferences = nil })
	s.Eventually(func(g Gomega) {
		found := s.machineList()[0]
		g.Expect(metav1.GetControllerOf(&found)).To(HaveValue(HaveField("Kind", "TalosControlPlane")))
	}).Should(Succeed())
}
