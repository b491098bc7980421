// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/secrets"
	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
	play "github.com/maesh-dev/ichor/test/scenario"
)

// A second Cluster is made with the secrets and the endpoint of one that lives, and without its Machines. Nothing is begun beside it, also while it is
// off. When it is gone, and a user says so, the control plane goes on.
//
// contract: etcd is never bootstrapped beside a control plane of the cluster that lives.
func TestServedElsewhere(t *testing.T) {
	onlyLong(t)

	living, s := newScenario(t), newScenario(t)
	t.Parallel()

	living.Create(clusterOf(infrav1.FidelityInMemory, 1))

	machine := living.settled(1)[0].Name
	there, bundle := &clusterv1.Cluster{}, &corev1.Secret{}
	s.Expect(s.Client.Get(s.ctx, living.key(play.Cluster), there)).To(Succeed())
	s.Expect(s.Client.Get(s.ctx, living.key(secrets.BundleName(play.Cluster)), bundle)).To(Succeed())

	s.Expect(s.Client.Create(s.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: bundle.Name, Labels: bundle.Labels}, Type: bundle.Type, Data: bundle.Data,
	})).To(Succeed())
	s.Create(clusterOf(infrav1.FidelityLight, 1).With(func(cluster *clusterv1.Cluster) {
		cluster.Spec.ControlPlaneEndpoint = there.Spec.ControlPlaneEndpoint
	}))

	waits := func() {
		t.Helper()

		tcp := &controlplanev1.TalosControlPlane{}
		s.Plans(controlplanev1.PlanServedElsewhereReason, "Bring the Machines", controlplanev1.ServedElsewhereAnnotation)
		s.Says(tcp, "cp", controlplanev1.InitializedCondition, metav1.ConditionFalse, "etcd is not bootstrapped beside its own")
		s.Expect(tcp.Annotations).To(HaveKeyWithValue(controlplanev1.ServedElsewhereAnnotation, there.Spec.ControlPlaneEndpoint.String()))
		s.Steady()
		s.Expect(s.machineList()).To(BeEmpty())
	}

	waits()
	living.Power(machine, infrav1.PowerOff)
	s.change(func(tcp *controlplanev1.TalosControlPlane) {
		metav1.SetMetaDataAnnotation(&tcp.ObjectMeta, "example.com/look", "again")
	})
	waits()
	living.Power(machine, infrav1.PowerOn)
	living.settled(1)
	living.deleteCluster()

	waits()
	s.change(func(tcp *controlplanev1.TalosControlPlane) {
		delete(tcp.Annotations, controlplanev1.ServedElsewhereAnnotation)
	})
	s.bootstrappedOnce()
	s.deleteCluster()
}
