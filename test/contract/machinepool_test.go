// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/test/builder"
)

// pool is a MachinePool of three machines, whose label becomes their Nodes'.
func pool() builder.Builder {
	return builder.Pool("c", "pool", 3).On(builder.Generic{}).Label(poolLabel, "spot").Config(func(config *bootstrapv1.TalosConfigSpec) {
		config.Hostname.Source = bootstrapv1.HostnameSourceAutomatic
	})
}

const poolLabel = "node.cluster.x-k8s.io/pool"

// contract: a MachinePool has one TalosConfig for all its instances, in the version of its template, and Cluster API hands its data over.
func TestMachinePoolGetsOneConfig(t *testing.T) {
	w := newWorld(t)
	w.cluster()
	w.create(pool())

	made := w.poolRuns(3)
	w.Expect(ptr.Deref(made.Spec.Template.Spec.Bootstrap.DataSecretName, "")).To(Equal("pool"))

	config, secret := &bootstrapv1.TalosConfig{}, &corev1.Secret{}
	w.get(config, "pool")
	w.get(secret, "pool")
	w.Expect(conditions.IsTrue(config, bootstrapv1.TalosConfigReadyCondition)).To(BeTrue(), describe(config))
	w.Expect(string(secret.Data["value"])).To(And(
		ContainSubstring("node.cluster.x-k8s.io/pool: spot"),
		ContainSubstring(":v1.36.1"),
		ContainSubstring("auto: stable"),
	))

	// A new instance boots from the same data.
	w.change(made, "pool", func() { made.Spec.Replicas = new(int32(5)) })
	w.poolRuns(5)

	after := &corev1.Secret{}
	w.get(after, "pool")
	w.Expect(after.ResourceVersion).To(Equal(secret.ResourceVersion), "a number of instances is no input")
}

// contract: for a MachinePool the Secret is updated in place when an input changes: its next instance boots from what is true then.
func TestMachinePoolFollowsItsInputs(t *testing.T) {
	w := newWorld(t)
	w.cluster()
	w.create(pool())
	w.poolRuns(3)

	before, after := &corev1.Secret{}, &corev1.Secret{}
	w.get(before, "pool")

	w.create(builder.Patch("c", "spot", builder.Sysctl("vm.max_map_count", "262144")).Pool(poolLabel, "spot"))

	config := &bootstrapv1.TalosConfig{}
	w.Eventually(func(g Gomega) {
		w.get(after, "pool")
		g.Expect(strings.Contains(string(after.Data["value"]), `vm.max_map_count: "262144"`)).To(BeTrue())
		w.get(config, "pool")
		g.Expect(config.Status.RenderedHash).To(Equal(after.Annotations[bootstrapv1.RenderedHashAnnotation]))
	}).Should(Succeed())
	w.Expect(after.UID).To(Equal(before.UID))
	w.Expect(ptr.Deref(w.poolRuns(3).Spec.Template.Spec.Bootstrap.DataSecretName, "")).To(Equal("pool"))
	w.Expect(ptr.Deref(config.Status.Initialization.DataSecretCreated, false)).To(BeTrue())

	pool := &clusterv1.MachinePool{}
	w.change(pool, "pool", func() { pool.Spec.Replicas = new(int32(4)) })
	w.poolRuns(4)
}

// poolRuns waits until the MachinePool has so many Nodes.
func (w *world) poolRuns(count int) *clusterv1.MachinePool {
	w.t.Helper()

	pool := &clusterv1.MachinePool{}
	w.Eventually(func(g Gomega) {
		w.get(pool, "pool")
		g.Expect(ptr.Deref(pool.Status.Initialization.BootstrapDataSecretCreated, false)).To(BeTrue(), describe(pool))
		g.Expect(pool.Status.NodeRefs).To(HaveLen(count), describe(pool))
	}).Should(Succeed())

	return pool
}
