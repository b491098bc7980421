// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"maps"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/secrets"
)

const deploymentYAML = `
apiVersion: bootstrap.ichor.maesh.dev/v1alpha1
kind: TalosConfigTemplate
metadata: {name: workers}
spec:
  template:
    spec:
      hostname: {source: MachineName}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: GenericInfrastructureMachineTemplate
metadata: {name: workers}
spec: {template: {spec: {}}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineDeployment
metadata: {name: workers}
spec:
  clusterName: c
  replicas: 0
  rollout: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 3, maxUnavailable: 0}}}
  template:
    metadata: {labels: {role: worker}}
    spec:
      clusterName: c
      version: v1.36.1
      bootstrap:
        configRef: {apiGroup: bootstrap.ichor.maesh.dev, kind: TalosConfigTemplate, name: workers}
      infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: GenericInfrastructureMachineTemplate, name: workers}
`

const patchedTemplateYAML = `
apiVersion: bootstrap.ichor.maesh.dev/v1alpha1
kind: TalosConfigPatch
metadata: {name: map-count}
spec:
  layer: Pool
  documents:
    - kind: SysctlConfig
      sysctlConfig: {params: {vm.max_map_count: "262144"}}
---
apiVersion: bootstrap.ichor.maesh.dev/v1alpha1
kind: TalosConfigTemplate
metadata: {name: workers-2}
spec:
  template:
    spec:
      hostname: {source: MachineName}
      patchRefs: [{name: map-count}]
`

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
	w.create(deploymentYAML)

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
	w.create(deploymentYAML)
	w.scale(2)

	before := w.running(2)

	w.create(patchedTemplateYAML)

	deployment := &clusterv1.MachineDeployment{}
	w.change(deployment, "workers", func() { deployment.Spec.Template.Spec.Bootstrap.ConfigRef.Name = "workers-2" })
	w.Eventually(func(g Gomega) {
		w.get(deployment, "workers")
		g.Expect(deployment.Status.ObservedGeneration).To(Equal(deployment.Generation))
		g.Expect(ptr.Deref(deployment.Status.UpToDateReplicas, 0)).To(BeEquivalentTo(2))
	}).Should(Succeed())

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
