// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/test/builder"
	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
	play "github.com/maesh-dev/ichor/test/scenario"
)

// The first machine never boots. A better template alone replaces nothing before there is a cluster; when its user asks a MachineHealthCheck
// for it, another machine is made in its place, and etcd is bootstrapped on that.
func TestFirstMachineReplaced(t *testing.T) {
	s := newScenario(t)
	t.Parallel()

	s.Create(clusterOn(infrav1.FidelityLight, neverBoots, 1))
	s.Eventually(func(g Gomega) {
		g.Expect(s.machineList()).To(HaveLen(1))
		g.Expect(s.controlPlane().Status.Plan.Reason).To(Equal(controlplanev1.PlanWaitingForMachineReason))
	}).Should(Succeed())

	first := s.machineList()[0].Name

	s.Create(builder.These{builder.Sim{}.Template("better")})
	s.change(func(tcp *controlplanev1.TalosControlPlane) {
		tcp.Spec.MachineTemplate.Spec.InfrastructureRef.Name = "better"
	})
	s.Steady()
	s.Expect(names(s.machineList())).To(ConsistOf(first))

	s.Create(builder.HealthCheck(play.Cluster, "cp"))

	machine := &clusterv1.Machine{}
	s.Patch(machine, first, func() { metav1.SetMetaDataAnnotation(&machine.ObjectMeta, clusterv1.RemediateMachineAnnotation, "") })
	s.Gone(machine, first)
	s.bootstrappedOnce()

	second := s.machineList()
	s.Expect(second).To(HaveLen(1))
	s.Expect(second[0].Annotations[controlplanev1.RemediationForAnnotation]).To(ContainSubstring(first))
	s.Expect(s.controlPlane().Status.LastRemediation.Machine).To(Equal(first))
	s.Expect(s.Watch.Check(s.ctx)).To(Succeed())
	s.deleteCluster()
}
