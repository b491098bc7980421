// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"maps"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/test/builder"
)

// workers are a MachineDeployment of no machines, which are made and deleted several at once.
func workers() builder.Builder {
	return builder.Workers("c", "workers", 0).On(builder.Generic{}).Label("role", "worker").With(func(deployment *clusterv1.MachineDeployment) {
		deployment.Spec.Rollout.Strategy = clusterv1.MachineDeploymentRolloutStrategy{
			Type: clusterv1.RollingUpdateMachineDeploymentStrategyType,
			RollingUpdate: clusterv1.MachineDeploymentRolloutStrategyRollingUpdate{
				MaxSurge: new(intstr.FromInt32(3)), MaxUnavailable: new(intstr.FromInt32(0)),
			},
		}
	})
}

// mapCount is a patch that machines get which refer to it.
func mapCount() *builder.PatchBuilder {
	return builder.PoolPatch("map-count", builder.Sysctl("vm.max_map_count", "262144"))
}

// scale sets the replicas of the MachineDeployment.
func (w *world) scale(replicas int32) {
	w.t.Helper()

	deployment := &clusterv1.MachineDeployment{}
	w.change(deployment, "workers", func() { deployment.Spec.Replicas = new(replicas) })
}

// contract: the objects that Cluster API clones from a template become bootstrap data, and go with their Machines.
// contract: the data Secret has the TalosConfig's name, the cluster's label, the TalosConfig as controlling owner, Cluster API's type, and
// the one key "value".
// contract: Ready of a TalosConfig is BootstrapConfigReady of its Machine.
func TestMachineDeploymentScales(t *testing.T) {
	w := newWorld(t)
	w.cluster()
	w.create(workers())

	w.scale(10)

	machines := w.running(10)
	bundle := w.bundle()
	hashes := map[string]bool{}

	for name, machine := range machines {
		w.Expect(machine.data.Name).To(Equal(machine.config.Name), name)
		w.Expect([]string{machine.config.Name, machine.Spec.InfrastructureRef.Name}).To(HaveEach(name), "one name for all that belongs to a machine")
		w.Expect(machine.data.Type).To(Equal(clusterv1.ClusterSecretType), name)
		w.Expect(machine.data.Labels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, "c"), name)
		w.Expect(machine.data.OwnerReferences).To(ConsistOf(metav1.OwnerReference{
			APIVersion: bootstrapv1.GroupVersion.String(), Kind: "TalosConfig", Name: machine.config.Name, UID: machine.config.UID, Controller: new(true),
		}), name)
		w.Expect(slices.Collect(maps.Keys(machine.data.Data))).To(ConsistOf("value"), name)

		config := string(machine.data.Data["value"])
		w.Expect(config).To(And(ContainSubstring("hostname: "+name+"\n"), ContainSubstring(bundle.TrustdInfo.Token)), name)
		w.Expect(ptr.Deref(machine.config.Status.Initialization.DataSecretCreated, false)).To(BeTrue(), name)
		w.Expect(machine.config.Status.DataSecretName).To(Equal(machine.data.Name), name)
		w.Expect(conditions.IsTrue(&machine.Machine, clusterv1.MachineBootstrapConfigReadyCondition)).To(BeTrue(), "%s: %s", name, describe(&machine.Machine))

		hashes[machine.config.Status.RenderedHash] = true
	}

	w.Expect(hashes).To(HaveLen(10), "each machine has a config of its own")

	w.scale(3)

	for name, machine := range w.running(3) {
		w.Expect(machine.data.UID).To(Equal(machines[name].data.UID), "%s keeps what it has", name)
	}

	w.scale(0)
	w.running(0)
	w.Expect(w.bundle().TrustdInfo.Token).To(Equal(bundle.TrustdInfo.Token), "the cluster's secrets outlive its machines")
}

// A machine pool is changed as users of Cluster API change it: with another template, which replaces the machines.
func TestMachineDeploymentRollsOut(t *testing.T) {
	w := newWorld(t)
	w.cluster()
	w.create(workers())
	w.scale(2)

	before := w.running(2)

	template := &bootstrapv1.TalosConfigTemplate{ObjectMeta: metav1.ObjectMeta{Name: "workers-2"}}
	template.Spec.Template.Spec.Hostname.Source = bootstrapv1.HostnameSourceMachineName
	template.Spec.Template.Spec.PatchRefs = []bootstrapv1.PatchReference{{Name: "map-count"}}
	w.create(mapCount(), builder.These{template})

	deployment := &clusterv1.MachineDeployment{}
	w.change(deployment, "workers", func() { deployment.Spec.Template.Spec.Bootstrap.ConfigRef.Name = "workers-2" })
	// Right after the change the old machines still count as up to date: what they say of themselves comes later.
	w.Eventually(func() map[string]machineOf { return w.running(2) }).ShouldNot(HaveKey(BeKeyOf(before)))
	w.Eventually(func() int32 {
		w.get(deployment, "workers")

		return ptr.Deref(deployment.Status.UpToDateReplicas, 0)
	}).Should(BeEquivalentTo(2))

	for name, machine := range w.running(2) {
		w.Expect(before).NotTo(HaveKey(name))
		w.Expect(string(machine.data.Data["value"])).To(ContainSubstring(`vm.max_map_count: "262144"`), name)
		w.Expect(machine.config.Spec.PatchRefs).To(HaveLen(1))
	}
}

// bundle is the cluster's secrets bundle.
func (w *world) bundle() *secrets.Bundle {
	w.t.Helper()

	secret := &corev1.Secret{}
	w.get(secret, secrets.BundleName("c"))

	bundle, _, err := secrets.FromSecret(secret, nil)
	w.Expect(err).NotTo(HaveOccurred())

	return bundle
}
