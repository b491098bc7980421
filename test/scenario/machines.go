// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
	"github.com/maesh-dev/ichor/test/talossim"
)

// Machines are the Machines of the namespace, once there are so many and all have an address.
func (s *Scenario) Machines(count int) []clusterv1.Machine {
	s.t.Helper()

	list := &clusterv1.MachineList{}

	s.Eventually(func(g Gomega) {
		g.Expect(s.Client.List(s.Ctx, list, client.InNamespace(s.Namespace))).To(Succeed())
		g.Expect(len(list.Items)).To(Equal(count), "Machines in the namespace%s", s.plans())

		for i := range list.Items {
			g.Expect(list.Items[i].Status.Addresses).NotTo(BeEmpty(), "%s: %s", list.Items[i].Name, Describe(&list.Items[i]))
		}
	}).Should(Succeed())

	return list.Items
}

// plans are what the TalosControlPlanes of the namespace say that they do next, or wait for.
func (s *Scenario) plans() string {
	list := &controlplanev1.TalosControlPlaneList{}
	if err := s.Client.List(s.Ctx, list, client.InNamespace(s.Namespace)); err != nil {
		return ": " + err.Error()
	}

	var text strings.Builder
	for i := range list.Items {
		fmt.Fprintf(&text, "\nTalosControlPlane %s: %s: %s", list.Items[i].Name, list.Items[i].Status.Plan.Reason, list.Items[i].Status.Plan.Message)
	}

	return text.String()
}

// ControlPlanes are those of the Machines that have Cluster API's label for them.
func ControlPlanes(machines []clusterv1.Machine) []clusterv1.Machine {
	return slices.DeleteFunc(slices.Clone(machines), func(machine clusterv1.Machine) bool { return !util.IsControlPlaneMachine(&machine) })
}

// Node is the simulated node of a Machine or SimMachine of that name, whose machine must be there.
func (s *Scenario) Node(name string) *talossim.Node {
	s.t.Helper()

	machine, err := s.Machine(s.Ctx, s.Key(name))
	s.Expect(err).NotTo(HaveOccurred())

	return machine.Node
}

// SimMachine reads a SimMachine.
func (s *Scenario) SimMachine(g Gomega, name string) *infrav1.SimMachine {
	object := &infrav1.SimMachine{}
	g.Expect(s.Client.Get(s.Ctx, s.Key(name), object)).To(Succeed())

	return object
}

// Ready waits until Ready of a SimMachine has a reason, and the machine is provisioned: a machine that says so is there.
func (s *Scenario) Ready(name, reason string) *infrav1.SimMachine {
	s.t.Helper()

	var object *infrav1.SimMachine

	s.Eventually(func(g Gomega) {
		object = s.SimMachine(g, name)
		condition := conditions.Get(object, infrav1.ReadyCondition)
		g.Expect(condition).NotTo(BeNil())
		g.Expect(condition.Reason).To(Equal(reason), condition.Message)
		// Cluster API's patches write conditions first.
		g.Expect(ptr.Deref(object.Status.Initialization.Provisioned, false)).To(BeTrue())
		g.Expect(object.Spec.ProviderID).NotTo(BeEmpty())
	}).Should(Succeed())

	return object
}

// ExactConfigs checks that each node has taken the config of its data Secret, byte for byte.
func (s *Scenario) ExactConfigs(machines []clusterv1.Machine) {
	s.t.Helper()

	for _, machine := range machines {
		secret := &corev1.Secret{}
		s.Expect(s.Client.Get(s.Ctx, s.Key(*machine.Spec.Bootstrap.DataSecretName), secret)).To(Succeed())

		node := s.Node(machine.Spec.InfrastructureRef.Name)
		maintenance, refusal := node.Maintenance()
		s.Expect(refusal).NotTo(HaveOccurred(), machine.Name)
		s.Expect(maintenance).To(BeFalse(), machine.Name)
		// A failure must not print the config.
		s.Expect(string(node.Config()) == string(secret.Data["value"])).To(BeTrue(), "%s runs with another config than that of its Secret", machine.Name)
	}
}

// Address is a Machine's.
func Address(machine clusterv1.Machine) string {
	for _, each := range machine.Status.Addresses {
		if each.Type == clusterv1.MachineInternalIP {
			return each.Address
		}
	}

	return ""
}

// Describe tells an object's conditions, a line for each, if it has some.
func Describe(object client.Object) string {
	getter, ok := object.(conditions.Getter)
	if !ok {
		return ""
	}

	var text strings.Builder
	for _, condition := range getter.GetConditions() {
		fmt.Fprintf(&text, "\n%s=%s %s: %s", condition.Type, condition.Status, condition.Reason, condition.Message)
	}

	return text.String()
}
