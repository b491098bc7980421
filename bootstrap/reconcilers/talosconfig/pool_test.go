// SPDX-License-Identifier: Apache-2.0

package talosconfig_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
)

const poolYAML = `
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachinePool
metadata: {name: pool, labels: {cluster.x-k8s.io/cluster-name: c}}
spec:
  clusterName: c
  replicas: 2
  template:
    metadata: {labels: {node.cluster.x-k8s.io/pool: spot}}
    spec:
      clusterName: c
      version: v1.36.1
      bootstrap:
        configRef: {apiGroup: bootstrap.ichor.maesh.dev, kind: TalosConfig, name: pool}
      infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: GenericInfrastructureMachinePool, name: pool}
`

// pool creates a MachinePool with its TalosConfig, and waits for the data Secret.
func (w *world) pool() *corev1.Secret {
	w.t.Helper()
	w.create(poolYAML)
	w.ownedConfig("pool", "MachinePool", &clusterv1.MachinePool{})

	return w.ready("pool")
}

// One Secret serves every instance that a MachinePool will ever get, so each change of what goes into it gets there, and nothing else.
// contract: a change of any input of a MachinePool is written into its Secret in place.
func TestPoolFollowsItsInputs(t *testing.T) {
	w := newWorld(t)
	w.bundle()
	w.secret("registry", map[string]string{"password": "before-the-rotation"})
	w.cluster()
	w.create(registryYAML)

	first := w.pool()
	w.Expect(string(first.Data["value"])).To(And(ContainSubstring("node.cluster.x-k8s.io/pool: spot"), ContainSubstring("before-the-rotation")))

	secret := &corev1.Secret{}
	becomes := func(what string) {
		t.Helper()
		w.Eventually(func(g Gomega) {
			g.Expect(admin.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "pool"}, secret)).To(Succeed())
			g.Expect(string(secret.Data["value"])).To(ContainSubstring(what))
			g.Expect(w.config("pool").Status.RenderedHash).To(Equal(secret.Annotations[bootstrapv1.RenderedHashAnnotation]))
		}).Should(Succeed())
		w.Expect(secret.UID).To(Equal(first.UID), "changed in place")
	}

	w.create(patchYAML)
	becomes("vm.max_map_count")
	w.Eventually(w.events("pool")).Should(ContainElement("DataSecretUpdated"))
	w.Expect(w.config("pool").Status.Inputs).To(ContainElement(HaveField("Name", "sysctls")))

	changeRegistry(map[string]string{"password": "after-the-rotation"})(w)
	becomes("after-the-rotation")

	clusterConfig := &bootstrapv1.TalosClusterConfig{}
	w.change(clusterConfig, "c", func() { clusterConfig.Spec.CertSANs = []string{"added.example.com"} })
	becomes("added.example.com")

	owner := &clusterv1.MachinePool{}
	w.change(owner, "pool", func() { owner.Spec.Template.Spec.Version = "v1.36.2" })
	becomes("v1.36.2")

	// The patch goes, and so does what it has set.
	w.delete(&bootstrapv1.TalosConfigPatch{}, "sysctls")
	w.Eventually(func() string {
		w.get(secret, "pool")

		return string(secret.Data["value"])
	}).ShouldNot(ContainSubstring("vm.max_map_count"))

	// A format is pinned for life: what runs is not changed by what new machines get.
	w.change(clusterConfig, "c", func() { clusterConfig.Spec.Talos.ConfigContract = "v1.13" })

	// A change that makes no other config writes nothing, and reads nothing twice.
	w.change(owner, "pool", func() { owner.Spec.Replicas = new(int32(3)) })
	w.reconcileAgain("pool")
	w.Expect(w.ready("pool").Data).To(Equal(secret.Data))
	w.Expect(secret.Annotations[bootstrapv1.RenderedHashAnnotation]).To(Equal(w.config("pool").Status.RenderedHash))
	w.rests()

	before := len(traffic.in(w.namespace))
	w.reconcileAgain("pool")
	w.Expect(traffic.in(w.namespace)[before:]).To(BeEmpty())
	w.Expect(w.config("pool").Status.ConfigContract).To(Equal("v1.14"))

	// Asked for, the format is another for the next instances, and stays so; one that their Talos cannot read is none.
	config := &bootstrapv1.TalosConfig{}
	w.change(config, "pool", func() { config.Spec.ConfigContract = "v1.13" })
	w.Eventually(func() string { return w.config("pool").Status.ConfigContract }).Should(Equal("v1.13"))
	w.get(secret, "pool")
	w.Expect(secret.UID).To(Equal(first.UID))
	w.Expect(secret.Annotations).To(HaveKeyWithValue(bootstrapv1.ConfigContractAnnotation, "v1.13"))
	w.Expect(secret.Annotations[bootstrapv1.RenderedHashAnnotation]).To(Equal(w.config("pool").Status.RenderedHash))

	w.change(config, "pool", func() { config.Spec.ConfigContract = "" })
	w.reconcileAgain("pool")
	w.Expect(w.ready("pool").Data).To(Equal(secret.Data))

	w.change(clusterConfig, "c", func() { clusterConfig.Spec.Talos.Version = "v1.13.4" })
	w.change(config, "pool", func() { config.Spec.ConfigContract = "v1.14" })
	w.condition("pool", rendered, "RenderFailed", ContainSubstring("v1.14"))
	w.Expect(w.config("pool").Status.ConfigContract).To(Equal("v1.13"))
}

// What cannot be rendered is told; the instances that the pool gets meanwhile boot of what could.
func TestPoolKeepsItsSecretWhenTheRenderFails(t *testing.T) {
	w := newWorld(t)
	w.bundle()
	w.secret("registry", map[string]string{"password": "good"})
	w.cluster()
	w.create(registryYAML)

	before := w.pool()

	w.delete(&corev1.Secret{}, "registry")
	w.condition("pool", rendered, "InvalidReference", ContainSubstring(`secret "registry" does not exist`))

	config := w.config("pool")
	w.Expect(conditions.IsTrue(config, dataSecret)).To(BeTrue())
	w.Expect(config.Status.DataSecretName).To(Equal("pool"))
	w.Expect(config.Status.RenderedHash).To(Equal(before.Annotations[bootstrapv1.RenderedHashAnnotation]))

	// The fault is remembered too.
	w.reconcileAgain("pool")
	w.rests()

	count := len(traffic.in(w.namespace))
	w.reconcileAgain("pool")
	w.Expect(traffic.in(w.namespace)[count:]).To(BeEmpty())

	after := &corev1.Secret{}
	w.get(after, "pool")
	w.Expect(after.ResourceVersion).To(Equal(before.ResourceVersion))

	w.secret("registry", map[string]string{"password": "good"})
	w.Expect(w.ready("pool").ResourceVersion).To(Equal(before.ResourceVersion), "the same config is not written again")
}

// Instances share the config, so it must not name one of them.
// contract: what a MachinePool boots from is valid for any instance.
func TestPoolHasNoNameOfItsOwn(t *testing.T) {
	w := newWorld(t)
	w.bundle()
	w.cluster()
	w.create(clusterConfigYAML)

	before := w.pool()

	config := &bootstrapv1.TalosConfig{}
	w.change(config, "pool", func() { config.Spec.Hostname.Source = bootstrapv1.HostnameSourceMachineName })
	w.condition("pool", rendered, "RenderFailed", ContainSubstring("all machines of a MachinePool share one config"))

	after := &corev1.Secret{}
	w.get(after, "pool")
	w.Expect(after.ResourceVersion).To(Equal(before.ResourceVersion))
}

// A Secret that a user has damaged comes back, with its hash.
func TestPoolSecretIsMended(t *testing.T) {
	w := newWorld(t)
	w.bundle()
	w.cluster()
	w.create(clusterConfigYAML)

	before := w.pool()
	secret := &corev1.Secret{}

	for name, damage := range map[string]func(){
		"no value": func() { secret.Data = map[string][]byte{"other": []byte("kept")} },
		"no hash":  func() { delete(secret.Annotations, bootstrapv1.RenderedHashAnnotation) },
	} {
		w.change(secret, "pool", damage)
		w.Eventually(func(g Gomega) {
			now := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "pool"}}
			g.Expect(admin.Get(t.Context(), client.ObjectKeyFromObject(now), now)).To(Succeed())
			g.Expect(now.Data["value"]).To(Equal(before.Data["value"]))
			g.Expect(now.Annotations).To(HaveKeyWithValue(bootstrapv1.RenderedHashAnnotation, before.Annotations[bootstrapv1.RenderedHashAnnotation]))
		}).Should(Succeed(), name)
	}

	w.Expect(strings.Count(strings.Join(w.events("pool")(), " "), "DataSecretUpdated")).To(BeNumerically(">=", 1))
}

// The Secret of a pool that an older Ichor has rendered into other bytes is left as it is until an input changes: a new version of Ichor alone
// must not replace the instances of every pool. Neither does a move, after which every object has another UID and resource version.
func TestPoolOfAnOlderIchor(t *testing.T) {
	w := newWorld(t)
	w.bundle()
	w.secret("registry", map[string]string{"password": "the-same-throughout"})
	w.cluster()
	w.create(registryYAML)
	w.create(patchYAML)

	fingerprint := w.pool().Annotations[bootstrapv1.InputsFingerprintAnnotation]
	w.Expect(fingerprint).To(MatchRegexp("^[0-9a-f]{64}$"))

	const older = "version: v1alpha1 # as an older Ichor wrote it\n"

	hash := sha256.Sum256([]byte(older))
	secret := &corev1.Secret{}
	w.change(secret, "pool", func() {
		secret.Data["value"] = []byte(older)
		secret.Annotations[bootstrapv1.RenderedHashAnnotation] = hex.EncodeToString(hash[:])
	})

	// Another object with the same content.
	w.delete(&corev1.Secret{}, "registry")
	w.secret("registry", map[string]string{"password": "the-same-throughout"})
	w.reconcileAgain("pool")
	w.Eventually(func() string { return w.config("pool").Status.RenderedHash }).Should(Equal(hex.EncodeToString(hash[:])))

	after := w.ready("pool")
	w.Expect(string(after.Data["value"])).To(Equal(older))
	w.Expect(after.ResourceVersion).To(Equal(secret.ResourceVersion))

	// A password that is another one is an input that has changed.
	changeRegistry(map[string]string{"password": "another-one"})(w)
	w.Eventually(func() string { w.get(after, "pool"); return string(after.Data["value"]) }).Should(ContainSubstring("another-one"))
	w.Expect(after.Annotations[bootstrapv1.InputsFingerprintAnnotation]).To(And(MatchRegexp("^[0-9a-f]{64}$"), Not(Equal(fingerprint))))
	w.Eventually(w.events("pool")).Should(ContainElement("DataSecretUpdated"))
}

// Two managers of different builds make different configs of the same inputs, and of fields that only one of them knows. Beside one that writes its
// own whenever it finds another, each change of an input is written once here, and the Secret is not written by turns.
func TestPoolBesideAnotherBuild(t *testing.T) {
	w := newWorld(t)
	w.bundle()
	w.cluster()
	w.create(clusterConfigYAML)

	secret := w.pool()

	// other is what the other build writes.
	other := func() {
		value := "version: v1alpha1 # of another build, after " + secret.Annotations[bootstrapv1.RenderedHashAnnotation] + "\n"
		hash := sha256.Sum256([]byte(value))

		w.change(secret, "pool", func() {
			secret.Data["value"] = []byte(value)
			secret.Annotations[bootstrapv1.RenderedHashAnnotation] = hex.EncodeToString(hash[:])
			secret.Annotations[bootstrapv1.InputsFingerprintAnnotation] = strings.Repeat("0", 64)
		})
	}

	for _, change := range []func(){func() {}, func() { w.create(patchYAML) }} {
		change()
		w.Eventually(func() string {
			w.get(secret, "pool")
			return secret.Annotations[bootstrapv1.InputsFingerprintAnnotation]
		}).ShouldNot(HavePrefix("0000"))
		w.reconcileAgain("pool")

		written := traffic.count(w.sent("PATCH", "pool"))
		other()

		version := secret.ResourceVersion

		w.Eventually(func() string { return w.config("pool").Status.RenderedHash }).Should(
			Equal(secret.Annotations[bootstrapv1.RenderedHashAnnotation]), "the status says what is there")
		w.reconcileAgain("pool")
		w.reconcileAgain("pool")
		w.Expect(w.ready("pool").ResourceVersion).To(Equal(version))
		w.Expect(traffic.count(w.sent("PATCH", "pool"))).To(Equal(written))
	}
}

// What a pool's next instances need is told as long as it is at fault, also where the pool itself has not changed.
func TestPoolTellsOfTheClustersSecrets(t *testing.T) {
	w := newWorld(t)
	w.bundle()
	w.cluster()
	w.create(clusterConfigYAML)
	w.machine("w-1", worker, "")
	w.ready("w-1")

	before := w.pool()
	bundle := encode(w, w.opened())

	other, err := newBundle()
	w.Expect(err).NotTo(HaveOccurred())

	secret := &corev1.Secret{}
	w.change(secret, "c-ca", func() {
		secret.Data = map[string][]byte{"tls.crt": other.Certs.K8s.Crt, "tls.key": other.Certs.K8s.Key}
	})
	w.condition("pool", bundleOK, "Mismatch", contains("secret c-ca", "certificate authority")...)

	w.delete(&corev1.Secret{}, "c-ca")
	w.ready("pool")
	w.Expect(conditions.IsTrue(w.config("pool"), bundleOK)).To(BeTrue())

	w.delete(&corev1.Secret{}, "c-talos")
	w.condition("pool", bundleOK, "Missing", contains("secret c-talos does not exist", "MachinePool pool")...)
	w.Expect(conditions.IsTrue(w.config("pool"), dataSecret)).To(BeTrue(), "the Secret is there all the same")

	// A machine that has its data says so too, and stays ready: it needs them no more.
	w.reconcileAgain("w-1")
	w.Eventually(func() string { return conditions.GetReason(w.config("w-1"), bundleOK) }).Should(Equal("Missing"))
	w.Expect(conditions.IsTrue(w.config("w-1"), bootstrapv1.TalosConfigReadyCondition)).To(BeTrue())

	w.secret("c-talos", map[string]string{"bundle": bundle})
	w.Expect(w.ready("pool").Data).To(Equal(before.Data))
	w.reconcileAgain("w-1")
	w.Eventually(func() bool { return conditions.IsTrue(w.config("w-1"), bundleOK) }).Should(BeTrue())
}

// A Secret that nobody can change does not follow, which is told once; its deletion mends it.
func TestImmutablePoolSecret(t *testing.T) {
	w := newWorld(t)
	w.bundle()
	w.cluster()
	w.create(clusterConfigYAML)
	w.pool()

	secret := &corev1.Secret{}
	w.change(secret, "pool", func() { secret.Immutable = new(true) })
	w.create(patchYAML)
	w.condition("pool", rendered, "RenderFailed", contains("secret pool", "is immutable", "delete it")...)

	w.delete(&corev1.Secret{}, "pool")
	w.Expect(string(w.ready("pool").Data["value"])).To(ContainSubstring("vm.max_map_count"))
}
