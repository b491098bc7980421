// SPDX-License-Identifier: Apache-2.0

package talosconfig_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/internal/secrets"
)

// running is a world with a cluster of one machine that has its config.
func running(t *testing.T) *world {
	t.Helper()

	w := newWorld(t)
	w.bundle()
	w.cluster()
	w.create(clusterConfigYAML)
	w.machine("w-1", worker, "")
	w.ready("w-1")
	w.agree()

	return w
}

// told waits for an event about the Cluster that has all the texts in its note.
func (w *world) told(reason string, texts ...string) {
	w.t.Helper()
	w.Eventually(func(g Gomega) {
		list := &eventsv1.EventList{}
		g.Expect(admin.List(w.t.Context(), list, client.InNamespace(w.namespace))).To(Succeed())

		var notes []string

		for _, event := range list.Items {
			if event.Regarding.Kind == "Cluster" && event.Reason == reason {
				notes = append(notes, event.Note)
			}
		}

		g.Expect(notes).To(ContainElement(And(contains(texts...)...)))
	}).Should(Succeed())
}

// Whatever of a cluster's secrets a user deletes comes back from the bundle, although no machine waits for it.
func TestDeletedSecretsComeBack(t *testing.T) {
	w := running(t)

	for _, name := range ownSecrets[1:] {
		before, after := &corev1.Secret{}, &corev1.Secret{}
		w.get(before, name)
		w.delete(&corev1.Secret{}, name)
		w.named(after, name)
		w.Eventually(func(g Gomega) {
			g.Expect(admin.Get(t.Context(), client.ObjectKeyFromObject(after), after)).To(Succeed())
			g.Expect(after.UID).NotTo(Equal(before.UID))
		}).Should(Succeed())

		if name != "c-talosconfig" {
			w.Expect(after.Data).To(Equal(before.Data), name)
		}
	}

	w.agree()
}

// A kubeconfig that is signed by an authority which the cluster does not trust, because somebody put another one into <cluster>-ca, is
// foreseen: the Cluster says it although no machine waits, and machines that come say it too.
func TestChangedAuthority(t *testing.T) {
	w := running(t)

	other, err := newBundle()
	w.Expect(err).NotTo(HaveOccurred())

	secret := &corev1.Secret{}
	w.change(secret, "c-ca", func() {
		secret.Data = map[string][]byte{"tls.crt": other.Certs.K8s.Crt, "tls.key": other.Certs.K8s.Key}
	})
	w.told("ClusterSecretsFault", "secret c-ca", `key "tls.crt"`, "certificate authority")

	w.machine("w-2", worker, "")
	w.condition("w-2", bundleOK, "Mismatch", contains("secret c-ca", `key "tls.crt"`, "certificate authority")...)

	w.delete(&corev1.Secret{}, "c-ca")
	w.ready("w-2")
	w.agree()
}

// Worker machines never mint a new PKI for a running cluster whose bundle is lost, and the loss is told before the next machine needs it.
//
// contract: the authorities of an initialized cluster are never made anew; the condition says what is missing.
func TestLostBundleIsTold(t *testing.T) {
	w := running(t)
	before := encode(w, w.opened())

	w.Eventually(func() *string {
		machine := &clusterv1.Machine{}
		w.get(machine, "w-1")

		return machine.Spec.Bootstrap.DataSecretName
	}).Should(HaveValue(Equal("w-1")))

	w.delete(&corev1.Secret{}, "c-talos")
	w.told("ClusterSecretsFault", "secret c-talos does not exist", "restore the Secret from a backup")
	w.none("c-talos")

	// Restored without label, owner and annotations.
	w.secret("c-talos", map[string]string{secrets.BundleKey: before})
	w.agree()
}

// A backup is restored without owner references, and clusterctl move follows them: the Cluster becomes the owner again, whatever
// its UID is now.
func TestRestoredSecretsAreOwned(t *testing.T) {
	w := running(t)

	owner := &clusterv1.Cluster{}
	w.change(owner, "c", func() { owner.Spec.Paused = new(true) })

	for _, name := range ownSecrets {
		secret := &corev1.Secret{}
		w.change(secret, name, func() { secret.OwnerReferences, secret.Labels = nil, nil })
	}

	w.change(owner, "c", func() { owner.Spec.Paused = nil })
	w.agree()
}

// A client key written at every reconcile would keep etcd, audit logs and GitOps tools busy: the talosconfig is written once.
func TestTalosconfigIsWrittenOnce(t *testing.T) {
	w := running(t)

	before := &corev1.Secret{}
	w.get(before, "c-talosconfig")

	owner := &clusterv1.Cluster{}
	w.changeStatus(owner, "c", func() { owner.Status.Initialization.ControlPlaneInitialized = new(true) })

	for _, name := range []string{"w-2", "w-3"} {
		w.machine(name, worker, "")
		w.ready(name)
	}

	for range 3 {
		// Each wakes the cluster's reconciler.
		w.change(owner, "c", func() { owner.Spec.Paused = new(!ptr.Deref(owner.Spec.Paused, false)) })
	}

	w.change(owner, "c", func() { owner.Spec.Paused = nil })
	w.reconcileAgain("w-1")

	// The last thing that the reconciler does for this Cluster is to bring back what is deleted now.
	w.delete(&corev1.Secret{}, "c-sa")
	w.agree()

	after := &corev1.Secret{}
	w.get(after, "c-talosconfig")
	w.Expect(after.ResourceVersion).To(Equal(before.ResourceVersion))
}

// talosconfig makes one with an endpoint, as a user or another tool would.
func talosconfig(w *world, bundle *secrets.Bundle, begins time.Time, life time.Duration) []byte {
	data, err := secrets.Talosconfig(bundle, "c", []string{"192.0.2.1"}, life, begins)
	w.Expect(err).NotTo(HaveOccurred())

	return data
}

func parsed(w *world) *clientconfig.Config {
	secret := &corev1.Secret{}
	w.get(secret, "c-talosconfig")

	config, err := clientconfig.FromBytes(secret.Data["talosconfig"])
	w.Expect(err).NotTo(HaveOccurred())

	return config
}

// A certificate whose half-life comes is renewed by itself: nothing else happens to the cluster. What a user has added stays.
func TestTalosconfigIsRenewedAtHalfLife(t *testing.T) {
	w := running(t)

	// Its certificate begins with the authority, which has just been made; half of its life is over in three seconds.
	authority, err := w.opened().Certs.OS.GetCert()
	w.Expect(err).NotTo(HaveOccurred())

	begins := time.Now()
	half := begins.Add(3 * time.Second)
	life := 2*half.Sub(authority.NotBefore) - begins.Sub(authority.NotBefore)

	old, err := clientconfig.FromBytes(talosconfig(w, w.opened(), begins, life))
	w.Expect(err).NotTo(HaveOccurred())

	old.Contexts["c"].Nodes = []string{"192.0.2.7"}
	old.Contexts["other"] = &clientconfig.Context{Endpoints: []string{"192.0.2.9"}}
	old.Context = "other"

	data, err := old.Bytes()
	w.Expect(err).NotTo(HaveOccurred())

	secret := &corev1.Secret{}
	w.change(secret, "c-talosconfig", func() { secret.Data["talosconfig"] = data })

	w.Eventually(func() string { return parsed(w).Contexts["c"].Crt }).ShouldNot(Equal(old.Contexts["c"].Crt))
	// The times of a certificate are cut to seconds.
	w.Expect(time.Now()).To(BeTemporally(">", half.Add(-time.Second)), "not before half of its life is over")
	w.told("TalosconfigRenewed", "Secret c-talosconfig", "half of its client certificate's life is over")

	now := parsed(w)
	w.Expect(now.Context).To(Equal("other"))
	w.Expect(now.Contexts["other"]).To(Equal(old.Contexts["other"]))
	w.Expect(now.Contexts["c"].Nodes).To(Equal([]string{"192.0.2.7"}))
	w.Expect(now.Contexts["c"].Endpoints).To(Equal([]string{"192.0.2.1"}))
	w.Expect(now.Contexts["c"].Key).NotTo(Equal(old.Contexts["c"].Key))
	w.Expect(now.Contexts["c"].CA).To(Equal(base64.StdEncoding.EncodeToString(w.opened().Certs.OS.Crt)))
}

// The annotation rotates once for each value, and once more when it has been removed and set again.
func TestTalosconfigIsRotated(t *testing.T) {
	w := running(t)
	certificate := func() string { return parsed(w).Contexts["c"].Crt }

	for _, value := range []string{"leaked", "leaked again", ""} {
		before := certificate()
		w.rotate(value)
		w.Eventually(certificate).ShouldNot(Equal(before), value)
		w.stays()
	}

	secret := &corev1.Secret{}
	w.change(secret, "c-talosconfig", func() { delete(secret.Annotations, secrets.RotateAnnotation) })
	w.Eventually(func() map[string]string { w.get(secret, "c-talosconfig"); return secret.Annotations }).ShouldNot(HaveKey(secrets.RotatedAnnotation))

	before := certificate()
	w.rotate("")
	w.Eventually(certificate).ShouldNot(Equal(before))
	w.told("TalosconfigRenewed", secrets.RotateAnnotation)
}

func (w *world) rotate(value string) {
	w.t.Helper()

	secret := &corev1.Secret{}
	w.change(secret, "c-talosconfig", func() { metav1.SetMetaDataAnnotation(&secret.ObjectMeta, secrets.RotateAnnotation, value) })
}

// stays checks that the reconciler has looked at the cluster's secrets once more and left the talosconfig alone.
func (w *world) stays() {
	w.t.Helper()

	before, after := &corev1.Secret{}, &corev1.Secret{}
	w.get(before, "c-talosconfig")
	w.delete(&corev1.Secret{}, "c-proxy")
	w.agree()
	w.get(after, "c-talosconfig")
	w.Expect(after.ResourceVersion).To(Equal(before.ResourceVersion))
}

// A talosconfig Secret that exists without data breaks nothing: it is filled.
func TestTalosconfigWithoutData(t *testing.T) {
	w := newWorld(t)
	w.create(`{apiVersion: v1, kind: Secret, metadata: {name: c-talosconfig}}`)
	w.bundle()
	w.cluster()
	w.create(clusterConfigYAML)
	w.machine("w-1", worker, "")
	w.ready("w-1")
	w.agree()
	w.Eventually(func() map[string][]byte {
		secret := &corev1.Secret{}
		w.get(secret, "c-talosconfig")

		return secret.Data
	}).Should(HaveKeyWithValue("talosconfig", Not(BeEmpty())))
	w.Expect(parsed(w).Contexts).To(HaveKey("c"))
	w.Expect(parsed(w).Contexts["c"].Endpoints).To(BeEmpty(), "no address is invented: a virtual one must never be an endpoint")
}

// A talosconfig that a user has written is not replaced unless the user asks, and keeps no machine from its config.
func TestTalosconfigOfAUser(t *testing.T) {
	w := newWorld(t)
	w.bundle()
	w.cluster()

	other, err := newBundle()
	w.Expect(err).NotTo(HaveOccurred())

	theirs := talosconfig(w, other, time.Now(), time.Hour)
	w.secret("c-talosconfig", map[string]string{"talosconfig": string(theirs), "notes": "of ours"})
	w.create(clusterConfigYAML)
	w.machine("w-1", worker, "")
	w.ready("w-1")
	w.told("ClusterSecretsFault", "secret c-talosconfig", `key "talosconfig"`, "certificate authority", secrets.RotateAnnotation)
	w.agree()

	secret := &corev1.Secret{}
	w.get(secret, "c-talosconfig")
	w.Expect(secret.Data["talosconfig"]).To(Equal(theirs))

	w.rotate("mine no more")
	w.Eventually(func() string { return parsed(w).Contexts["c"].CA }).Should(Equal(base64.StdEncoding.EncodeToString(w.opened().Certs.OS.Crt)))
	w.get(secret, "c-talosconfig")
	w.Expect(secret.Data).To(HaveKeyWithValue("notes", []byte("of ours")))
	w.Expect(parsed(w).Contexts["c"].Endpoints).To(Equal([]string{"192.0.2.1"}))
}

// Clusters of other Talos providers in the same management cluster keep what they have: their Secrets have the same names.
func TestClustersOfOthersAreLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.bundle()
	w.cluster()

	before := &corev1.Secret{}
	w.get(before, "c-talos")

	// Another cluster of the namespace is looked at later, and done.
	w.create(strings.ReplaceAll(clusterYAML, "name: c", "name: d"))
	w.create(strings.ReplaceAll(clusterConfigYAML, "c}", "d}"))

	bundle, err := sharedBundle()
	w.Expect(err).NotTo(HaveOccurred())
	w.secret("d-talos", map[string]string{secrets.BundleKey: encode(w, bundle)})
	w.Expect(admin.Create(t.Context(), forCluster(w.namespace, "d"))).To(Succeed())
	w.Eventually(func() error {
		return admin.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "d-talosconfig"}, &corev1.Secret{})
	}).Should(Succeed())

	after := &corev1.Secret{}
	w.get(after, "c-talos")
	w.Expect(after.ResourceVersion).To(Equal(before.ResourceVersion))
	w.none("c-ca", "c-etcd", "c-proxy", "c-sa", "c-talosconfig")
}

const acceptedCAsYAML = `
apiVersion: bootstrap.ichor.maesh.dev/v1alpha1
kind: TalosClusterConfig
metadata: {name: c}
spec:
  clusterName: c
  talos: {version: v1.14.1}
  acceptedCAsSecretRef: {name: roots}
`

// Extra trust roots for a rotation are in the configs of the machines to come; one that is no certificate is named, not quoted.
func TestAcceptedCAs(t *testing.T) {
	w := newWorld(t)
	w.bundle()
	w.cluster()

	next, err := newBundle()
	w.Expect(err).NotTo(HaveOccurred())

	w.secret("roots", map[string]string{"talos.crt": "hunter2-hunter2", "kubernetes.crt": string(next.Certs.K8s.Crt)})
	w.create(acceptedCAsYAML)
	w.machine("cp-1", controlPlane, "")
	w.machine("w-1", worker, "")

	for _, name := range []string{"cp-1", "w-1"} {
		message := w.condition(name, rendered, "InvalidReference", contains("TalosClusterConfig c", "acceptedCAsSecretRef", "roots", "talos.crt")...)
		w.Expect(message).NotTo(ContainSubstring("hunter2"))
	}

	// A change is noticed, without a label on the user's Secret.
	secret := &corev1.Secret{}
	w.change(secret, "roots", func() {
		secret.Data["talos.crt"] = next.Certs.OS.Crt
		secret.Data["aggregator.crt"] = next.Certs.K8sAggregator.Crt
	})

	encoded := base64.StdEncoding.EncodeToString(next.Certs.OS.Crt)
	line := strings.Split(strings.TrimSpace(string(next.Certs.K8s.Crt)), "\n")[1]
	aggregator := strings.Split(strings.TrimSpace(string(next.Certs.K8sAggregator.Crt)), "\n")[1]

	w.Expect(string(w.ready("cp-1").Data["value"])).To(And(ContainSubstring(encoded), ContainSubstring(line), ContainSubstring(aggregator)))
	w.Expect(string(w.ready("w-1").Data["value"])).To(And(ContainSubstring(encoded), ContainSubstring(line), Not(ContainSubstring(aggregator))))

	// Later machines get what is true then; the machines that run keep theirs.
	w.change(secret, "roots", func() { delete(secret.Data, "talos.crt") })
	w.machine("w-2", worker, "")
	w.Expect(string(w.ready("w-2").Data["value"])).NotTo(ContainSubstring(encoded))
	w.Expect(string(w.ready("w-1").Data["value"])).To(ContainSubstring(encoded))
}
