// SPDX-License-Identifier: Apache-2.0

package talosconfig_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// sent is a request for Secrets of the world, as the manager sends it.
func (w *world) sent(method, name string) string {
	request := method + " /api/v1/namespaces/" + w.namespace + "/secrets"
	if name != "" {
		request += "/" + name
	}

	return request
}

// Of two managers that make a cluster's secrets at once, the first decides the format for all: the other one's first machine gets it, too.
func TestContractOfTheBundleThatWasFirst(t *testing.T) {
	w := newWorld(t)
	w.cluster()
	w.create(clusterConfigYAML)

	bundle, err := sharedBundle()
	w.Expect(err).NotTo(HaveOccurred())

	// The manager has chosen the contract of Talos 1.14, and finds this when it comes to write.
	traffic.before(w.sent("POST", ""), func() {
		w.Expect(admin.Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: w.namespace, Name: "c-talos", Annotations: map[string]string{bootstrapv1.ConfigContractAnnotation: "v1.13"},
			},
			StringData: map[string]string{secrets.BundleKey: encode(w, bundle)},
		})).To(Succeed())
	})

	w.machine("w-1", worker, "")
	w.Expect(w.ready("w-1").Annotations).To(HaveKeyWithValue(bootstrapv1.ConfigContractAnnotation, "v1.13"))
	w.Expect(w.config("w-1").Status.ConfigContract).To(Equal("v1.13"))
	w.agree()
}

// unreported pauses the object of a text, so that renders alone read what it refers to.
func unreported(text string) string {
	return strings.Replace(text, "metadata: {", `metadata: {annotations: {cluster.x-k8s.io/paused: ""}, `, 1)
}

// A pause that comes while a config is rendered is heeded: nothing is written any more.
func TestPauseDuringARender(t *testing.T) {
	w := newWorld(t)
	w.bundle()
	w.cluster()
	w.create(unreported(registryYAML))
	w.secret("registry", map[string]string{"password": registryPassword})

	owner := &clusterv1.Cluster{}

	traffic.before(w.sent("GET", "registry"), func() {
		w.change(owner, "c", func() { owner.Spec.Paused = new(true) })

		// Another TalosConfig of the cluster tells when the manager has seen the pause.
		w.machineOf("other")
		w.Eventually(func() bool { return conditions.IsTrue(w.config("other"), clusterv1.PausedCondition) }).Should(BeTrue())
	})

	w.machine("w-1", worker, "")
	w.Eventually(func() bool { return conditions.IsTrue(w.config("w-1"), clusterv1.PausedCondition) }).Should(BeTrue())
	w.none("w-1")

	w.change(owner, "c", func() { owner.Spec.Paused = nil })
	w.ready("w-1")
}

// A machine and its TalosConfig that are made anew under their names while a config is rendered for them get one of their own: nothing is left that
// belongs to those that are gone.
func TestMadeAnewDuringARender(t *testing.T) {
	w := newWorld(t)
	w.bundle()
	w.cluster()
	w.create(unreported(registryYAML))
	w.secret("registry", map[string]string{"password": registryPassword})

	var first, second types.UID

	traffic.before(w.sent("GET", "registry"), func() {
		first = w.config("w-1").UID

		w.delete(&clusterv1.Machine{}, "w-1")
		w.Eventually(func() error {
			return admin.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "w-1"}, &clusterv1.Machine{})
		}).Should(MatchError(ContainSubstring("not found")), "its finalizers end")
		w.Expect(client.IgnoreNotFound(admin.Delete(t.Context(), &bootstrapv1.TalosConfig{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "w-1"}}))).To(Succeed())
		w.machineOf("w-1")
		second = w.config("w-1").UID

		// Another TalosConfig of the cluster tells when the manager has seen the new one.
		w.machineOf("other")
		w.ready("other")
	})

	w.machineOf("w-1")

	secret := w.ready("w-1")
	w.Expect(first).NotTo(BeEmpty())
	w.Expect(second).NotTo(Equal(first))
	w.Expect(secret.OwnerReferences).To(ConsistOf(HaveField("UID", second)))
}

// What was there before a machine is in its config, though the manager's cache of patches has not seen it when the machine comes: it boots once.
func TestPatchRightBeforeItsMachine(t *testing.T) {
	w := newWorld(t)
	w.bundle()
	w.cluster()
	w.create(clusterConfigYAML)

	asked := "GET /apis/bootstrap.ichor.maesh.dev/v1alpha1/namespaces/" + w.namespace + "/talosconfigpatches"
	traffic.before(asked, func() { w.create(patchYAML) })

	w.machine("w-1", worker, "")
	w.Expect(string(w.ready("w-1").Data["value"])).To(ContainSubstring("vm.max_map_count"))
	w.Expect(w.config("w-1").Status.Inputs).To(ContainElement(HaveField("Name", "sysctls")))

	// Many that come at once share the answer.
	before := traffic.count(asked)

	const many = 12
	for i := range many {
		w.machineOf(fmt.Sprintf("many-%d", i))
	}

	for i := range many {
		w.Expect(string(w.ready(fmt.Sprintf("many-%d", i)).Data["value"])).To(ContainSubstring("vm.max_map_count"))
	}

	w.Expect(traffic.count(asked) - before).To(BeNumerically("<=", many))
}

// A pool that is deleted while its config is rendered gets none.
func TestPoolDeletedDuringARender(t *testing.T) {
	w := newWorld(t)
	w.bundle()
	w.cluster()
	w.create(unreported(registryYAML))
	w.secret("registry", map[string]string{"password": registryPassword})
	// Cluster API lets go of a pool when its infrastructure is gone, of a kind that it can ask for.
	w.create(strings.Replace(poolYAML, "kind: GenericInfrastructureMachinePool", "kind: GenericInfrastructureMachine", 1))

	traffic.before(w.sent("GET", "registry"), func() {
		w.delete(&clusterv1.MachinePool{}, "pool")

		// Cluster API deletes it, too.
		config := &bootstrapv1.TalosConfig{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "pool"}}
		w.Expect(client.IgnoreNotFound(admin.Delete(t.Context(), config))).To(Succeed())
		w.machineOf("other")
		w.ready("other")
	})
	w.ownedConfig("pool", "MachinePool", &clusterv1.MachinePool{})

	w.Eventually(func() error {
		return admin.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "other"}, &corev1.Secret{})
	}).Should(Succeed())
	w.none("pool")
	w.Expect(admin.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "pool"}, &bootstrapv1.TalosConfig{})).
		To(MatchError(ContainSubstring("not found")), "nothing holds it")
	w.Eventually(func() error {
		return admin.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "pool"}, &clusterv1.MachinePool{})
	}).Should(MatchError(ContainSubstring("not found")), "its finalizers end")
}

// machineOf creates a Machine whose TalosConfig is its own from the start.
func (w *world) machineOf(name string) {
	w.t.Helper()
	w.create(strings.NewReplacer("w-1", name, "    dataSecretName: "+name+"\n", "").Replace(strings.Replace(handMachineYAML, "    dataSecretName: w-1\n", "", 1)))
	w.ownedConfig(name, "Machine", &clusterv1.Machine{})
}

// Whichever of a cluster's first Secrets somebody deletes while the others are being made, all of them agree in the end, or it is said that the
// bundle is lost: machines that carry one never get another.
func TestSecretsDeletedDuringTheirCreation(t *testing.T) {
	t.Parallel()

	for _, name := range []string{"c-ca", "c-sa"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.cluster()
			w.create(unreported(registryYAML))
			w.secret("registry", map[string]string{"password": registryPassword})

			// All of them exist when the config is about to be rendered.
			traffic.before(w.sent("GET", "registry"), func() { w.delete(&corev1.Secret{}, name) })

			w.machine("w-1", worker, "")
			w.Expect(string(w.ready("w-1").Data["value"])).To(ContainSubstring(w.opened().TrustdInfo.Token))
			w.agree()
		})
	}
}

// A bundle that is deleted while a machine is rendered with it, and made again for another machine, is not what the first one boots with.
func TestBundleReplacedDuringARender(t *testing.T) {
	w := newWorld(t)
	w.cluster()
	w.create(clusterConfigYAML)
	w.create(unreported(tunnelYAML))
	w.secret("wireguard", map[string]string{"private": wireguardKey})

	first := ""

	traffic.before(w.sent("GET", "wireguard"), func() {
		first = w.opened().TrustdInfo.Token

		for _, name := range ownSecrets {
			w.delete(&corev1.Secret{}, name)
		}

		// This tells when the manager has seen that the bundle is gone.
		w.reports("c", "SecretsBundleAvailable", "False", "NotCreated")

		w.machine("w-2", worker, "")
		w.Expect(string(w.ready("w-2").Data["value"])).To(ContainSubstring(w.opened().TrustdInfo.Token))
	})

	w.machine("w-1", worker, "")
	data := string(w.ready("w-1").Data["value"])

	w.Expect(first).NotTo(BeEmpty())
	w.Expect(w.opened().TrustdInfo.Token).NotTo(Equal(first))
	w.Expect(data).To(ContainSubstring(w.opened().TrustdInfo.Token))
	w.agree()
}

// A tool that waits for a change to be seen does not wait for the end of a pause.
func TestPausedObjectsAreObserved(t *testing.T) {
	w := newWorld(t)
	w.bundle()
	w.cluster()
	w.create(clusterConfigYAML)
	w.create(patchYAML)
	w.machine("w-1", worker, "")
	w.ready("w-1")

	pause := func(object metav1.Object) { object.SetAnnotations(map[string]string{clusterv1.PausedAnnotation: ""}) }

	config, clusterConfig, patch := &bootstrapv1.TalosConfig{}, &bootstrapv1.TalosClusterConfig{}, &bootstrapv1.TalosConfigPatch{}
	w.change(config, "w-1", func() { pause(config); config.Spec.PatchRefs = []bootstrapv1.PatchReference{{Name: "sysctls"}} })
	w.change(clusterConfig, "c", func() { pause(clusterConfig); clusterConfig.Spec.CertSANs = []string{"a.example.com"} })
	w.change(patch, "sysctls", func() { pause(patch); patch.Spec.Priority = new(int32(7)) })

	w.Eventually(func(g Gomega) {
		w.get(config, "w-1")
		w.get(clusterConfig, "c")
		w.get(patch, "sysctls")
		g.Expect(config.Generation).To(BeEquivalentTo(2))
		g.Expect(config.Status.ObservedGeneration).To(BeEquivalentTo(2))
		g.Expect(conditions.Get(config, clusterv1.PausedCondition)).To(HaveField("ObservedGeneration", BeEquivalentTo(2)))
		g.Expect(conditions.IsTrue(config, clusterv1.PausedCondition)).To(BeTrue())
		g.Expect(clusterConfig.Status.ObservedGeneration).To(BeEquivalentTo(2))
		g.Expect(patch.Status.ObservedGeneration).To(BeEquivalentTo(2))
	}).Should(Succeed())
}

// One fault is one error in the log, however often it is looked at.
func TestFaultIsLoggedOnce(t *testing.T) {
	w := newWorld(t)
	w.bundle()
	w.cluster()
	w.machine("w-1", worker, "")
	w.condition("w-1", rendered, "ConfigContractUnknown")

	w.reconcileAgain("w-1")
	w.reconcileAgain("w-1")

	errors := 0

	for line := range strings.Lines(logs.String()) {
		if strings.Contains(line, "Reconciler error") && strings.Contains(line, w.namespace) && strings.Contains(line, "nothing says which Talos") {
			errors++
		}
	}

	w.Expect(errors).To(Equal(1))
}

const sharedSecretYAML = `
apiVersion: bootstrap.ichor.maesh.dev/v1alpha1
kind: TalosClusterConfig
metadata: {name: c}
spec:
  clusterName: c
  talos: {version: v1.14.1}
  secretsRef: {name: mine}
  registries:
  - {host: a.example.com, username: puller, authSecretRef: {name: registry}}
  - {host: b.example.com, username: puller, authSecretRef: {name: registry}}
`

// A reconcile reads no object twice, and a user's bundle once for all machines.
func TestLiveReads(t *testing.T) {
	w := newWorld(t)
	w.secret("registry", map[string]string{"password": registryPassword})
	w.userBundle("mine")
	w.cluster()
	w.create(unreported(sharedSecretYAML))

	reads := func() map[string]int {
		found := map[string]int{}

		for _, name := range append(ownSecrets, "registry", "mine") {
			found[name] = traffic.count(w.sent("GET", name))
		}

		return found
	}

	before := reads()

	w.machine("w-1", worker, "")
	w.ready("w-1")
	w.rests() // the cluster's own Secrets follow

	first := reads()
	for _, name := range []string{"registry", "mine"} {
		w.Expect(first[name]-before[name]).To(Equal(1), name)
	}

	w.machine("w-2", worker, "")
	w.ready("w-2")

	for name, count := range reads() {
		want := 0
		if name == "registry" {
			want = 1
		}

		w.Expect(count-first[name]).To(Equal(want), name)
	}
}
