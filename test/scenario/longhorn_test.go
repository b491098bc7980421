// SPDX-License-Identifier: Apache-2.0

package scenario_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/test/builder"
	"github.com/maesh-dev/ichor/test/longhornsim"
	lh "github.com/maesh-dev/ichor/test/longhornsim/api/v1beta2"
	"github.com/maesh-dev/ichor/test/longhornsim/model"
	"github.com/maesh-dev/ichor/test/scenario"
	"github.com/maesh-dev/ichor/test/stage"
)

// TestDrainWaitsForTheLastReplica deletes the Machine of a node that has the only replica of a volume: Cluster API's drain is refused by
// Longhorn's disruption budget, in the cluster's own eviction API, for as long as the replica is there. When Longhorn has moved it, the
// drain goes on, and the Machine goes.
func TestDrainWaitsForTheLastReplica(t *testing.T) {
	s := suite.New(t)
	t.Parallel()

	const volume, claim = "only", "data"

	s.Step("create a cluster of one control plane and two workers", func() {
		s.Create(
			builder.Cluster(scenario.Cluster), builder.ControlPlaneMachine(scenario.Cluster, "cp1"),
			builder.Machine(scenario.Cluster, "w1"), builder.Machine(scenario.Cluster, "w2"),
		)
		s.WriteKubeconfig()
		s.Bootstrap(s.Machines(3))
		s.NodesAreReady(3)
		s.Expect(stage.WaitForNodeRefs(s.Ctx, s.Client, s.Key(scenario.Cluster), patience)).To(Succeed())
	})

	var l *longhorn

	s.Step("install Longhorn, and use a volume whose only replica is on w1", func() {
		l = startLonghorn(s)
		s.Expect(l.Create(s.Ctx, longhornsim.NewVolume(volume).On("w1").Claim(metav1.NamespaceDefault, claim))).To(Succeed())

		s.Eventually(func() error {
			_, err := l.Workload(s.Ctx, metav1.NamespaceDefault, "app", "w1", claim)

			return err // until the namespace has its service account
		}).Should(Succeed())
		s.Eventually(func(g Gomega) {
			pod := &corev1.Pod{}
			g.Expect(l.kubernetes.Get(s.Ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "app"}, pod)).To(Succeed())
			g.Expect(pod.Status.Phase).To(Equal(corev1.PodRunning))
			g.Expect(l.status(g, volume).CurrentNodeID).To(Equal("w1"), "Kubernetes has the volume attached to the pod's node")
			g.Expect(l.evict("w1")).To(Satisfy(apierrors.IsTooManyRequests))
		}).Should(Succeed())
	})

	s.Step("delete the Machine of w1", func() {
		machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "w1"}}
		s.Expect(s.Client.Delete(s.Ctx, machine)).To(Succeed())
		s.Eventually(func(g Gomega) {
			g.Expect(s.Client.Get(s.Ctx, s.Key("w1"), machine)).To(Succeed())

			deleting := conditions.Get(machine, clusterv1.MachineDeletingCondition)
			g.Expect(deleting).NotTo(BeNil())
			g.Expect(deleting.Reason).To(Equal(clusterv1.MachineDeletingDrainingNodeReason), deleting.Message)
			g.Expect(deleting.Message).To(ContainSubstring("disruption budget " + model.InstanceManagerName("w1", lh.DataEngineV1)))
			// The pod has gone, and its volume with it: what is left to wait for is the replica.
			g.Expect(l.status(g, volume).State).To(Equal(lh.VolumeDetached))
		}).Should(Succeed())
		s.Expect(l.evict("w1")).To(Satisfy(apierrors.IsTooManyRequests), "the last replica is there, and no engine is")
		s.Expect(s.Node("w1").On()).To(BeTrue())
	})

	s.Step("have Longhorn evict w1", func() {
		s.Expect(l.EvictNode(s.Ctx, "w1")).To(Succeed())
		s.Gone(&clusterv1.Machine{}, "w1")

		state, err := l.State(s.Ctx)
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(state.UsableCopies(volume)).To(And(HaveLen(1), Not(ContainElement("w1"))))
		s.Expect(l.Violations()).To(BeEmpty())
	})

	s.Expect(l.Stop()).To(Succeed())
	s.Step("delete the cluster", s.DeleteCluster)
}

// longhorn is a simulated Longhorn in the scenario's cluster.
type longhorn struct {
	*longhornsim.Sim

	ctx        context.Context //nolint:containedctx // It is the test's, as a scenario's is.
	kubernetes client.Client
}

// startLonghorn installs Longhorn into the cluster. It copies gigabytes in no time.
func startLonghorn(s *scenario.Scenario) *longhorn {
	config, err := stage.KubernetesConfig(s.Ctx, s.Client, s.Key(scenario.Cluster))
	s.Expect(err).NotTo(HaveOccurred())

	sim, err := longhornsim.Start(s.Ctx, longhornsim.Options{Config: config, Pace: model.Pace{RebuildBytes: 100 << 30}})
	s.Expect(err).NotTo(HaveOccurred())

	return &longhorn{Sim: sim, ctx: s.Ctx, kubernetes: sim.Client()}
}

// evict asks the cluster's eviction API for the instance manager's pod of a node.
func (l *longhorn) evict(node string) error {
	return l.EvictPod(l.ctx, l.Namespace(), model.InstanceManagerName(node, lh.DataEngineV1))
}

func (l *longhorn) status(g Gomega, volume string) lh.VolumeStatus {
	v := &lh.Volume{}
	g.Expect(l.kubernetes.Get(l.ctx, client.ObjectKey{Namespace: l.Namespace(), Name: volume}, v)).To(Succeed())

	return v.Status
}
