// SPDX-License-Identifier: Apache-2.0

package longhornsim_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/test/longhornsim"
	lh "github.com/maesh-dev/ichor/test/longhornsim/api/v1beta2"
	"github.com/maesh-dev/ichor/test/longhornsim/model"
)

// TestLive has the Sim react by itself, in real time, to what others write with clients of their own.
func TestLive(t *testing.T) {
	t.Parallel()

	g, id := NewWithT(t), fmt.Sprintf("t%d", count.Add(1))
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	t.Cleanup(cancel)

	sim, err := longhornsim.Start(ctx, longhornsim.Options{
		Config: shared.Config(), Namespace: "longhorn-" + id, NodeLabels: map[string]string{"test": id}, Workloads: true,
		Pace: model.Pace{RebuildBytes: 10 << 30},
	})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(sim.Stop()).To(Succeed()) })

	a, b, c := id+"-a", id+"-b", id+"-c"
	g.Expect(sim.AddNodes(ctx, longhornsim.NewNode(a), longhornsim.NewNode(b), longhornsim.NewNode(c))).To(Succeed())
	g.Expect(sim.Create(ctx, longhornsim.NewVolume("data").On(a, b).AttachedTo(b))).To(Succeed())

	n := &lh.Node{}
	g.Expect(sim.Client().Get(ctx, client.ObjectKey{Namespace: sim.Namespace(), Name: a}, n)).To(Succeed())
	patch := client.MergeFrom(n.DeepCopy())
	n.Spec.AllowScheduling, n.Spec.EvictionRequested = false, true
	g.Expect(sim.Client().Patch(ctx, n, patch)).To(Succeed())

	g.Eventually(func() []string {
		var replicas lh.ReplicaList
		g.Expect(sim.Client().List(ctx, &replicas, client.InNamespace(sim.Namespace()))).To(Succeed())

		nodes := []string{}
		for _, r := range replicas.Items {
			nodes = append(nodes, r.Spec.NodeID)
		}

		return nodes
	}, wait, "100ms").Should(ConsistOf(b, c))
	g.Expect(sim.Violations()).To(BeEmpty())
}

// TestSteady looks twice at a cluster in which nothing happens: the second look writes nothing.
func TestSteady(t *testing.T) {
	t.Parallel()

	s := newSubject(t, claim{})
	s.create(longhornsim.NewVolume("data").On(s.a, s.b).AttachedTo(s.a), longhornsim.NewVolume("idle").On(s.b, s.c))
	s.settle()

	before := versions(s)
	s.settle()
	s.Expect(versions(s)).To(Equal(before), "a Sim that has nothing to do writes")

	s.Expect(s.EvictNode(s.ctx, s.b)).To(Succeed())
	s.advance(time.Minute)
	s.Expect(s.on("data")).NotTo(ContainElement(s.b))
	s.Expect(s.on("idle")).NotTo(ContainElement(s.b))
}

// versions are the resource versions of everything that the Sim writes.
func versions(s *subject) map[string]string {
	all := map[string]string{}

	for _, list := range []client.ObjectList{
		&lh.NodeList{}, &lh.VolumeList{}, &lh.EngineList{}, &lh.ReplicaList{}, &lh.InstanceManagerList{}, &lh.VolumeAttachmentList{},
		&lh.EngineImageList{}, &corev1.PodList{},
	} {
		s.Expect(s.Client().List(s.ctx, list, client.InNamespace(s.Namespace()))).To(Succeed())

		for _, object := range objectsOf(list) {
			all[fmt.Sprintf("%T %s", object, object.GetName())] = object.GetResourceVersion()
		}
	}

	var budgets policyv1.PodDisruptionBudgetList
	s.Expect(s.Client().List(s.ctx, &budgets, client.InNamespace(s.Namespace()))).To(Succeed())

	for _, budget := range budgets.Items {
		all["budget "+budget.Name] = string(budget.UID) // its status is written by another controller
	}

	return all
}

func objectsOf(list client.ObjectList) []client.Object {
	var objects []client.Object

	_ = meta.EachListItem(list, func(object runtime.Object) error {
		objects = append(objects, object.(client.Object)) //nolint:forcetypeassert // the lists are of objects

		return nil
	})

	return objects
}
