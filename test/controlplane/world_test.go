// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/test/builder"
	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
	play "github.com/maesh-dev/ichor/test/scenario"
	"github.com/maesh-dev/ichor/test/stage"
)

// scenario is one of the suite: a namespace with a Cluster c and its control plane cp, over which the invariants are watched.
type scenario struct {
	*play.Scenario

	t         *testing.T
	ctx       context.Context //nolint:containedctx // A scenario is a test's, and so is its context.
	namespace string
	begin     time.Time
}

func newScenario(t *testing.T) *scenario {
	t.Helper()

	s := &scenario{Scenario: suite.New(t), t: t, ctx: t.Context(), begin: time.Now()}
	s.namespace = s.Namespace
	s.SetDefaultEventuallyTimeout(patience)
	s.SetDefaultEventuallyPollingInterval(250 * time.Millisecond)

	t.Cleanup(func() {
		if t.Failed() {
			s.explain()
		}
	})

	return s
}

func (s *scenario) key(name string) client.ObjectKey { return s.Key(name) }

// change reads the control plane, changes it and writes the difference.
func (s *scenario) change(change func(*controlplanev1.TalosControlPlane)) {
	s.t.Helper()

	tcp := &controlplanev1.TalosControlPlane{}
	s.Patch(tcp, "cp", func() { change(tcp) })
}

func (s *scenario) controlPlane() *controlplanev1.TalosControlPlane { return s.ControlPlane() }

// machineList are the control-plane Machines, the oldest first.
func (s *scenario) machineList() []clusterv1.Machine { return s.ControlPlaneMachines() }

func names(list []clusterv1.Machine) []string {
	out := make([]string, len(list))
	for i := range list {
		out[i] = list[i].Name
	}

	return out
}

// settled waits until the control plane has so many machines, all of them ready and as the spec wants them, and there is nothing to do; and
// checks what must always hold. It returns the Machines.
func (s *scenario) settled(replicas int) []clusterv1.Machine {
	s.t.Helper()

	list := s.Settled(replicas)
	s.check(list)
	s.t.Logf("%d machines, settled after %s", replicas, time.Since(s.begin).Round(100*time.Millisecond))

	return list
}

// check checks what must hold at any time: every Machine has the hook and what belongs to it, etcd has a member for each machine that is up,
// and was bootstrapped once.
func (s *scenario) check(list []clusterv1.Machine) {
	s.t.Helper()

	for i := range list {
		s.Expect(list[i].Annotations).To(HaveKey(controlplanev1.PreTerminateHookAnnotation), list[i].Name)
		s.Expect(metav1.GetControllerOf(&list[i]).Kind).To(Equal("TalosControlPlane"))
		s.Expect(list[i].Spec.Bootstrap.ConfigRef.Name).To(Equal(list[i].Name))
		s.Expect(list[i].Spec.InfrastructureRef.Name).To(Equal(list[i].Name))
	}

	s.Voters(list, len(list))
	s.countBootstraps()
	s.Expect(s.Watch.Check(s.ctx)).To(Succeed())
}

// countBootstraps checks that one etcd cluster was made, by all machines that there have been.
func (s *scenario) countBootstraps() {
	s.t.Helper()
	s.Expect(s.Bootstraps()).To(Equal(1), "how many etcd clusters were made")
}

// leader is the Machine that leads etcd.
func (s *scenario) leader(list []clusterv1.Machine) string {
	s.t.Helper()

	name := ""

	s.Eventually(func(g Gomega) {
		name = ""

		for i := range list {
			c, err := stage.Talos(s.ctx, s.Client, s.key("c"), play.Address(list[i]))
			g.Expect(err).NotTo(HaveOccurred())

			response, err := c.EtcdStatus(s.ctx)
			g.Expect(c.Close()).To(Succeed())
			g.Expect(err).NotTo(HaveOccurred())

			if status := response.GetMessages()[0].GetMemberStatus(); status.GetLeader() == status.GetMemberId() {
				name = list[i].Name
			}
		}

		g.Expect(name).NotTo(BeEmpty(), "nobody leads etcd")
	}).Should(Succeed())

	return name
}

// deleteCluster deletes the Cluster and waits until nothing is left of it.
func (s *scenario) deleteCluster() {
	s.t.Helper()
	s.DeleteCluster()
	s.t.Logf("deleted after %s", time.Since(s.begin).Round(100*time.Millisecond))
}

// tearOutCluster has the Cluster gone without what Cluster API does before, which it does not do while the Cluster is paused, and returns
// what it was.
func (s *scenario) tearOutCluster() *clusterv1.Cluster {
	s.t.Helper()

	cluster, now := &clusterv1.Cluster{}, &clusterv1.Cluster{}
	s.Expect(s.Client.Get(s.ctx, s.key("c"), cluster)).To(Succeed())
	s.Patch(now, "c", func() { now.Spec.Paused = new(true) })
	s.Expect(s.Client.Delete(s.ctx, now)).To(Succeed())
	s.Eventually(func() bool {
		err := s.Client.Patch(s.ctx, now, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))

		return apierrors.IsNotFound(err)
	}).Should(BeTrue())

	return cluster
}

// explain prints the state of everything, after a failure.
func (s *scenario) explain() {
	ctx := context.WithoutCancel(s.ctx)

	tcp := &controlplanev1.TalosControlPlane{}
	if err := s.Client.Get(ctx, s.key("cp"), tcp); err == nil {
		s.t.Logf("plan: %+v%s", tcp.Status.Plan, play.Describe(tcp))
	}

	list := &clusterv1.MachineList{}
	if err := s.Client.List(ctx, list, client.InNamespace(s.namespace)); err == nil {
		for i := range list.Items {
			s.t.Logf("Machine %s %v%s", list.Items[i].Name, list.Items[i].Annotations, play.Describe(&list.Items[i]))
		}
	}
}

// clusterOf is a Cluster on machines of a fidelity with a TalosControlPlane of so many, which are replaced when they are to be changed.
func clusterOf(fidelity infrav1.Fidelity, replicas int32) *builder.ClusterBuilder {
	return clusterOn(fidelity, infrav1.SimMachineSpec{}, replicas)
}

// clusterOn is such a Cluster on simulated machines of a kind.
func clusterOn(fidelity infrav1.Fidelity, machines infrav1.SimMachineSpec, replicas int32) *builder.ClusterBuilder {
	return builder.Cluster(play.Cluster).On(builder.Sim{Fidelity: fidelity}).ControlPlane(replaced(machines, replicas))
}

func replaced(machines infrav1.SimMachineSpec, replicas int32) *builder.ControlPlaneBuilder {
	return builder.ControlPlane(play.Cluster, "cp", replicas).On(builder.Sim{MachineSpec: machines}).With(func(tcp *controlplanev1.TalosControlPlane) {
		tcp.Spec.Rollout.Strategy.Type = controlplanev1.RollingUpdateRollout
	})
}

// neverBoots are machines on which no Talos comes up.
var neverBoots = infrav1.SimMachineSpec{Faults: infrav1.Faults{BootFails: ":" + builder.TalosVersion}}
