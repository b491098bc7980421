// SPDX-License-Identifier: Apache-2.0

package talosconfig_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// Each thing that a TalosConfig waits for wakes it.
// contract: nothing is done without an owner, without a Cluster, or before the cluster's infrastructure is provisioned.
func TestWaiting(t *testing.T) {
	w := newWorld(t)
	w.bundle()
	w.create(clusterConfigYAML)
	w.create(`
apiVersion: bootstrap.ichor.maesh.dev/v1alpha1
kind: TalosConfig
metadata: {name: w-1}
`)
	w.condition("w-1", dataSecret, "WaitingForOwner")

	w.create(`
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: c}
spec:
  clusterNetwork: {pods: {cidrBlocks: [10.244.0.0/16]}}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: GenericInfrastructureCluster, name: c}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: GenericInfrastructureCluster
metadata: {name: c}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata: {name: w-1, labels: {cluster.x-k8s.io/cluster-name: c}}
spec:
  clusterName: c
  version: v1.36.1
  bootstrap:
    configRef: {apiGroup: bootstrap.ichor.maesh.dev, kind: TalosConfig, name: w-1}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: GenericInfrastructureMachine, name: w-1}
`)
	w.condition("w-1", dataSecret, clusterv1.WaitingForClusterInfrastructureReadyReason)

	w.provision()
	w.condition("w-1", dataSecret, "WaitingForControlPlaneEndpoint", ContainSubstring("Cluster c"))

	owner := &clusterv1.Cluster{}

	w.change(owner, "c", func() { owner.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "c.example.com", Port: 6443} })
	w.ready("w-1")
}

// contract: nothing is done while the Cluster or the object is paused, and the Paused condition says so.
func TestPaused(t *testing.T) {
	w := newWorld(t)
	w.bundle()
	w.cluster()
	w.create(clusterConfigYAML)

	owner := &clusterv1.Cluster{}
	w.change(owner, "c", func() { owner.Spec.Paused = new(true) })
	w.create(`
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata: {name: w-1, labels: {cluster.x-k8s.io/cluster-name: c}}
spec:
  clusterName: c
  version: v1.36.1
  bootstrap:
    configRef: {apiGroup: bootstrap.ichor.maesh.dev, kind: TalosConfig, name: w-1}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: GenericInfrastructureMachine, name: w-1}
`)
	w.ownedConfig("w-1", "Machine", &clusterv1.Machine{})

	paused := func() string {
		condition := conditions.Get(w.config("w-1"), clusterv1.PausedCondition)

		return ptr.Deref(condition, metav1.Condition{}).Message
	}
	w.Eventually(paused).Should(ContainSubstring("Cluster spec.paused"))

	config := &bootstrapv1.TalosConfig{}
	w.change(config, "w-1", func() { metav1.SetMetaDataAnnotation(&config.ObjectMeta, clusterv1.PausedAnnotation, "") })
	w.Eventually(paused).Should(ContainSubstring("TalosConfig has the cluster.x-k8s.io/paused annotation"))

	w.change(owner, "c", func() { owner.Spec.Paused = nil })
	w.Eventually(paused).ShouldNot(ContainSubstring("Cluster"))
	w.Expect(w.config("w-1").Status.DataSecretName).To(BeEmpty())

	w.change(config, "w-1", func() { config.Annotations = nil })
	w.ready("w-1")
	w.Expect(conditions.IsFalse(w.config("w-1"), clusterv1.PausedCondition)).To(BeTrue())
}

// Whatever changes after the Secret has been written, the machine keeps it: it may have booted.
// contract: after the data Secret exists, changes are ignored.
func TestWrittenConfigStays(t *testing.T) {
	w := newWorld(t)
	w.bundle()
	w.secret("registry", map[string]string{"password": "before"})
	w.cluster()
	w.create(registryYAML)
	w.machine("w-1", worker, "")

	before := w.ready("w-1")
	w.Expect(string(before.Data["value"])).To(ContainSubstring("before"))

	w.create(patchYAML)
	changeRegistry(map[string]string{"password": "rotated"})(w)

	config := &bootstrapv1.TalosConfig{}
	w.change(config, "w-1", func() { config.Spec.Hostname.Source = bootstrapv1.HostnameSourceAutomatic })

	clusterConfig := &bootstrapv1.TalosClusterConfig{}
	w.change(clusterConfig, "c", func() { clusterConfig.Spec.Talos.ConfigContract = "v1.13" })

	w.Eventually(func() int64 { return w.config("w-1").Status.ObservedGeneration }).Should(BeEquivalentTo(2))
	w.reconcileAgain("w-1")

	after := w.ready("w-1")
	w.Expect(after.ResourceVersion).To(Equal(before.ResourceVersion))
	w.Expect(w.config("w-1").Status.ConfigContract).To(Equal("v1.14"))

	// The next machine gets what is true now.
	w.machine("w-2", worker, "")
	w.Expect(string(w.ready("w-2").Data["value"])).To(And(ContainSubstring("rotated"), ContainSubstring("vm.max_map_count")))
	w.Expect(w.config("w-2").Status.ConfigContract).To(Equal("v1.13"))
}

// A machine that waits is rendered with what has been put right in the meantime.
func TestRotationWhileWaiting(t *testing.T) {
	w := newWorld(t)
	w.bundle()
	w.secret("registry", map[string]string{"password": "before"})
	w.cluster()
	w.create(registryYAML)
	w.machine("w-1", worker, `patchRefs: [{name: sysctls}]`)
	w.condition("w-1", rendered, "InvalidReference")

	changeRegistry(map[string]string{"auth": "cm90YXRlZA=="})(w)
	w.condition("w-1", rendered, "InvalidReference", ContainSubstring(`"auth"`))

	changeRegistry(map[string]string{"password": "rotated"})(w)
	w.create(patchYAML)
	w.Expect(string(w.ready("w-1").Data["value"])).To(And(ContainSubstring("rotated"), Not(ContainSubstring("before"))))
}

// contract: bootstrap data that was deleted before the machine has booted is made again.
func TestDeletedSecret(t *testing.T) {
	w := newWorld(t)
	w.bundle()
	w.cluster()
	w.create(clusterConfigYAML)
	w.machine("w-1", worker, "")

	first := w.ready("w-1")

	// The pinned contract outlives the Secret.
	clusterConfig := &bootstrapv1.TalosClusterConfig{}
	w.change(clusterConfig, "c", func() { clusterConfig.Spec.Talos.ConfigContract = "v1.13" })
	w.delete(&corev1.Secret{}, "w-1")

	second := &corev1.Secret{}
	w.named(second, "w-1")
	w.Eventually(func(g Gomega) {
		g.Expect(admin.Get(t.Context(), client.ObjectKeyFromObject(second), second)).To(Succeed())
		g.Expect(second.UID).NotTo(Equal(first.UID))
	}).Should(Succeed())
	w.Expect(second.Data["value"]).To(Equal(first.Data["value"]))
	w.Eventually(w.events("w-1")).Should(ContainElement("DataSecretRecreated"))

	// Once the machine has joined, nothing reads it any more.
	machine := &clusterv1.Machine{}
	w.changeStatus(machine, "w-1", func() { machine.Status.NodeRef.Name = "w-1" })
	w.delete(&corev1.Secret{}, "w-1")
	w.Eventually(func() string {
		return ptr.Deref(conditions.Get(w.config("w-1"), dataSecret), metav1.Condition{}).Reason
	}).Should(Equal(bootstrapv1.TalosConfigDataSecretNotNeededReason))
	w.Expect(conditions.IsTrue(w.config("w-1"), bootstrapv1.TalosConfigReadyCondition)).To(BeTrue())
}

// A machine cannot boot of a Secret whose value is empty, or missing.
func TestDamagedSecret(t *testing.T) {
	t.Parallel()

	tests := map[string]map[string][]byte{
		"empty value": {"value": {}},
		"no value":    {"values": []byte("x")},
	}

	for name, data := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.bundle()
			w.cluster()
			w.create(clusterConfigYAML)
			w.machine("w-1", worker, "")

			before := w.ready("w-1").Data
			secret := &corev1.Secret{}
			w.change(secret, "w-1", func() { secret.Data = data })
			w.condition("w-1", dataSecret, "NotAvailable", contains(`Secret w-1 has no value for the key "value"`, "delete the Secret")...)

			w.delete(&corev1.Secret{}, "w-1")
			w.Expect(w.ready("w-1").Data).To(Equal(before))
		})
	}
}

// A move between management clusters drops the status, and a restored backup may drop owner references too.
// contract: a lost status comes back without new bootstrap data, and the Secret's owner reference is ensured.
func TestAfterMove(t *testing.T) {
	w := newWorld(t)
	w.bundle()
	w.cluster()
	w.create(clusterConfigYAML)
	w.machine("w-1", worker, "")

	secret := w.ready("w-1")
	before := w.config("w-1").Status

	w.Eventually(func() string {
		machine := &clusterv1.Machine{}
		w.get(machine, "w-1")

		return ptr.Deref(machine.Spec.Bootstrap.DataSecretName, "")
	}).Should(Equal("w-1"))

	w.change(secret, "w-1", func() { secret.OwnerReferences = nil })

	config := &bootstrapv1.TalosConfig{}
	w.changeStatus(config, "w-1", func() { config.Status = bootstrapv1.TalosConfigStatus{} })

	after := w.ready("w-1")
	w.Eventually(func() []metav1.OwnerReference { w.get(after, "w-1"); return after.OwnerReferences }).
		Should(ConsistOf(ownerOf(w.config("w-1"))))
	w.Expect(after.UID).To(Equal(secret.UID))
	w.Expect(after.Data).To(Equal(secret.Data))

	// Nor is a label for ever.
	w.change(after, "w-1", func() { after.Labels = nil })
	w.Eventually(func() map[string]string { w.get(after, "w-1"); return after.Labels }).Should(HaveKeyWithValue(clusterv1.ClusterNameLabel, "c"))

	status := w.config("w-1").Status
	w.Expect(status.RenderedHash).To(Equal(before.RenderedHash))
	w.Expect(status.Inputs).To(Equal(before.Inputs))
	w.Expect(status.ConfigContract).To(Equal(before.ConfigContract))
}

// What a user has broken in a data Secret's annotations, which the status takes up, does not stand in the status's way.
func TestBrokenAnnotations(t *testing.T) {
	w := newWorld(t)
	w.bundle()
	w.cluster()
	w.create(clusterConfigYAML)
	w.machine("w-1", worker, "")

	secret := w.ready("w-1")
	w.change(secret, "w-1", func() {
		secret.Annotations[bootstrapv1.ConfigContractAnnotation] = "the newest one"
		secret.Annotations[bootstrapv1.RenderedHashAnnotation] = "none"
		secret.Annotations[bootstrapv1.RenderedInputsAnnotation] = `[{"kind": "Machine", "name": "w-1", "layer": "the layer of machines"}]`
	})
	w.Eventually(func() string { return w.config("w-1").Status.RenderedHash }).Should(BeEmpty())
	w.Expect(w.config("w-1").Status.Inputs).To(BeEmpty())
	w.Expect(w.config("w-1").Status.ConfigContract).To(Equal("v1.14"), "the pin stays")

	config := &bootstrapv1.TalosConfig{}
	w.changeStatus(config, "w-1", func() { config.Status = bootstrapv1.TalosConfigStatus{} })
	w.ready("w-1")
}

// contract: a dataSecretName that the Machine has already is taken over.
func TestAdoptsBootstrapDataOfAnotherName(t *testing.T) {
	w := newWorld(t)
	w.cluster()
	w.create(`
apiVersion: bootstrap.ichor.maesh.dev/v1alpha1
kind: TalosConfig
metadata: {name: w-1}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata: {name: w-1, labels: {cluster.x-k8s.io/cluster-name: c}}
spec:
  clusterName: c
  version: v1.36.1
  bootstrap:
    dataSecretName: handmade
    configRef: {apiGroup: bootstrap.ichor.maesh.dev, kind: TalosConfig, name: w-1}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: GenericInfrastructureMachine, name: w-1}
`)

	w.Eventually(func() string { return w.config("w-1").Status.DataSecretName }).Should(Equal("handmade"))
	w.Expect(conditions.GetReason(w.config("w-1"), rendered)).To(Equal(bootstrapv1.TalosConfigAdoptedReason))
}

func TestUserBundle(t *testing.T) {
	w := newWorld(t)
	theirs := w.userBundle("mine")
	w.cluster()
	w.create(userBundleYAML)
	w.machine("cp-1", controlPlane, "")
	w.Expect(string(w.ready("cp-1").Data["value"])).To(ContainSubstring(theirs.TrustdInfo.Token))

	// Copied once: a change later is a fault of the machines to come.
	w.delete(&corev1.Secret{}, "mine")
	w.userBundle("mine")
	w.machine("w-1", worker, "")
	w.condition("w-1", bundleOK, "Mismatch", ContainSubstring("spec.secretsRef"), ContainSubstring("secret mine"))
}

// Certificate authorities that exist before the cluster's secrets are made are taken into them.
func TestSuppliedAuthority(t *testing.T) {
	w := newWorld(t)

	theirs, err := newBundle()
	w.Expect(err).NotTo(HaveOccurred())
	w.secret("c-ca", map[string]string{"tls.crt": string(theirs.Certs.K8s.Crt), "tls.key": string(theirs.Certs.K8s.Key)})
	w.cluster()
	w.create(clusterConfigYAML)
	w.machine("w-1", worker, "")
	w.ready("w-1")

	secret := &corev1.Secret{}
	w.get(secret, "c-talos")

	made, _, err := secrets.FromSecret(secret, nil)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(made.Certs.K8s).To(Equal(theirs.Certs.K8s))
	w.Expect(made.Certs.Etcd).NotTo(Equal(theirs.Certs.Etcd))

	w.get(secret, "c-ca")
	w.Expect(secret.Labels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, "c"))
	w.Expect(secret.OwnerReferences).To(ConsistOf(w.clusterOwner()))
}
