// SPDX-License-Identifier: Apache-2.0

package talosconfig_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"github.com/siderolabs/crypto/x509"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/internal/secrets"
)

// ownSecrets are the names of the cluster's own Secrets.
var ownSecrets = []string{"c-talos", "c-ca", "c-etcd", "c-proxy", "c-sa", "c-talosconfig"}

// opened reads the cluster's bundle.
func (w *world) opened() *secrets.Bundle {
	w.t.Helper()

	secret := &corev1.Secret{}
	w.get(secret, "c-talos")

	bundle, _, err := secrets.FromSecret(secret, nil)
	w.Expect(err).NotTo(HaveOccurred())

	return bundle
}

// agree checks that the cluster's own Secrets are all there, agree with its bundle, and belong to the Cluster.
func (w *world) agree() {
	w.t.Helper()

	bundle, owner := w.opened(), w.clusterOwner()

	for _, name := range ownSecrets {
		secret := &corev1.Secret{}
		w.named(secret, name)
		w.Eventually(func(g Gomega) {
			g.Expect(admin.Get(w.t.Context(), client.ObjectKeyFromObject(secret), secret)).To(Succeed())
			g.Expect(secret.OwnerReferences).To(ContainElement(owner), name)
			g.Expect(secret.Labels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, "c"), name)
		}).Should(Succeed())
		w.Expect(secrets.CheckSupplied(bundle, "c", secret)).To(Succeed(), name)
	}
}

// none checks that none of the Secrets has been written.
func (w *world) none(names ...string) {
	w.t.Helper()

	list := &corev1.SecretList{}
	w.Expect(admin.List(w.t.Context(), list, client.InNamespace(w.namespace))).To(Succeed())

	for _, secret := range list.Items {
		w.Expect(names).NotTo(ContainElement(secret.Name))
	}
}

// Two managers that both work, and many clusters at once: a bundle is minted for each by whoever comes first, once, whichever worker's
// TalosConfig is first; all its Secrets and every machine's config are of that one.
func TestTwoManagers(t *testing.T) {
	seen := &requests{}

	stop, err := startManager(context.WithoutCancel(t.Context()), seen)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	defer func() { NewWithT(t).Expect(stop()).To(Succeed()) }()

	const clusters, machines = 5, 4

	var (
		all  [clusters]*world
		busy sync.WaitGroup
	)

	for i := range all {
		all[i] = newWorldAlone(t)
		busy.Go(func() {
			all[i].cluster()
			all[i].create(clusterConfigYAML)
		})

		for j := range machines {
			busy.Go(func() { all[i].machine(fmt.Sprintf("w-%d", j), worker, "") })
		}
	}

	busy.Wait()

	for _, w := range all {
		for j := range machines {
			name := fmt.Sprintf("w-%d", j)
			secret := w.ready(name)
			w.Expect(string(secret.Data["value"])).To(ContainSubstring(w.opened().TrustdInfo.Token), name)
			w.Expect(secret.OwnerReferences).To(ConsistOf(ownerOf(w.config(name))))
		}

		w.agree()
		// Of both managers together: the cluster's own Secrets and one for each machine, none of them made twice.
		created := func() (n int) {
			for _, request := range append(traffic.in(w.namespace), seen.in(w.namespace)...) {
				if request == "POST secrets" {
					n++
				}
			}

			return n
		}

		// A Secret may be seen before the answer to the one who made it.
		w.Eventually(created).Should(Equal(len(ownSecrets) + machines))
		w.Consistently(created, "100ms").Should(Equal(len(ownSecrets) + machines))
	}
}

// ofUser is a certificate authority that a user brings.
func ofUser(w *world, options ...x509.Option) map[string]string {
	w.t.Helper()

	made, err := x509.NewSelfSignedCertificateAuthority(append([]x509.Option{
		x509.Organization("example"), x509.NotAfter(time.Now().AddDate(10, 0, 0)),
	}, options...)...)
	w.Expect(err).NotTo(HaveOccurred())

	return map[string]string{"tls.crt": string(made.CrtPEM), "tls.key": string(made.KeyPEM)}
}

// Certificate authorities that exist before the cluster's secrets are made are taken into them: a kubeconfig would be signed by an
// authority that the cluster does not trust if the bundle had another one.
func TestSuppliedAuthorities(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		name     string
		options  []x509.Option
		kind     corev1.SecretType
		labelled bool
		taken    func(*secrets.Bundle) string
	}{
		"one without a label": {
			name: "c-ca", options: []x509.Option{x509.ECDSA(true)},
			taken: func(b *secrets.Bundle) string { return string(b.Certs.K8s.Crt) + string(b.Certs.K8s.Key) },
		},
		"one with the label, of RSA": {
			name: "c-ca", options: []x509.Option{x509.RSA(true)}, labelled: true,
			taken: func(b *secrets.Bundle) string { return string(b.Certs.K8s.Crt) + string(b.Certs.K8s.Key) },
		},
		"of cert-manager's type, etcd's": {
			name: "c-etcd", options: []x509.Option{x509.ECDSA(true)}, kind: corev1.SecretTypeTLS,
			taken: func(b *secrets.Bundle) string { return string(b.Certs.Etcd.Crt) + string(b.Certs.Etcd.Key) },
		},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			theirs := ofUser(w, test.options...)
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: test.name}, Type: test.kind, StringData: theirs}

			if test.labelled {
				secret.Labels = map[string]string{clusterv1.ClusterNameLabel: "c"}
			}

			w.Expect(admin.Create(t.Context(), secret)).To(Succeed())
			w.cluster()
			w.create(clusterConfigYAML)
			w.machine("cp-1", controlPlane, "")
			w.ready("cp-1")

			w.Expect(test.taken(w.opened())).To(Equal(theirs["tls.crt"] + theirs["tls.key"]))
			w.agree()
		})
	}
}

// What a user supplies and cannot be used is named by Secret and key, and nothing is written.
func TestRefusedSecrets(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		make    func(*world)
		reason  string
		message []types.GomegaMatcher
	}{
		"an authority whose key is kept elsewhere": {
			make: func(w *world) {
				theirs := ofUser(w, x509.ECDSA(true))
				delete(theirs, "tls.key")
				w.secret("c-ca", theirs)
				w.create(clusterConfigYAML)
			},
			reason: "Invalid", message: contains("secret c-ca", `"tls.key" is missing`),
		},
		"an authority that has expired": {
			make: func(w *world) {
				w.secret("c-etcd", ofUser(w, x509.ECDSA(true), x509.NotBefore(time.Now().AddDate(-2, 0, 0)), x509.NotAfter(time.Now().AddDate(-1, 0, 0))))
				w.create(clusterConfigYAML)
			},
			reason: "Invalid", message: contains("secret c-etcd", `"tls.crt"`, "expired"),
		},
		"a user's bundle with a missing part": {
			make: func(w *world) {
				part, err := newBundle()
				w.Expect(err).NotTo(HaveOccurred())

				part.Certs.OS, part.TrustdInfo.Token = nil, ""
				w.secret("mine", map[string]string{secrets.BundleKey: encode(w, part)})
				w.create(userBundleYAML)
			},
			reason: "Invalid", message: contains("spec.secretsRef", "secret mine", "certs.os is missing", "trustdinfo.token is missing"),
		},
		"a user's bundle that is garbage": {
			make: func(w *world) {
				w.secret("mine", map[string]string{secrets.BundleKey: "{certs: [hunter2-hunter2"})
				w.create(userBundleYAML)
			},
			reason: "Invalid", message: contains("spec.secretsRef", "secret mine", `key "bundle"`),
		},
		"a user's bundle and another authority": {
			make: func(w *world) {
				w.userBundle("mine")
				w.secret("c-ca", ofUser(w, x509.ECDSA(true)))
				w.create(userBundleYAML)
			},
			reason: "Mismatch", message: contains("spec.secretsRef", "secret mine", "secret c-ca", `key "tls.crt"`),
		},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.cluster()
			test.make(w)
			w.machine("w-1", worker, "")
			w.condition("w-1", bundleOK, test.reason, test.message...)
			w.none("c-talos", "c-sa", "c-proxy", "c-talosconfig", "w-1")
		})
	}
}

// A bundle as other Talos providers leave it is taken over as it is: of a cluster born before Talos 1.3, which has an AES-CBC key alone,
// and with an RSA key for service accounts.
func TestTakenOverBundle(t *testing.T) {
	const key = "Zm9ydHktdHdvLWJ5dGVzLW9mLWEta2V5LWZvci1hZXM="

	w := newWorld(t)

	bundle, err := newBundle()
	w.Expect(err).NotTo(HaveOccurred())

	made, err := x509.NewRSAKey()
	w.Expect(err).NotTo(HaveOccurred())

	bundle.Certs.K8sServiceAccount = &x509.PEMEncodedKey{Key: made.KeyPEM}
	bundle.Secrets.SecretboxEncryptionSecret, bundle.Secrets.AESCBCEncryptionSecret = "", key
	before := encode(w, bundle)

	w.secret("c-talos", map[string]string{secrets.BundleKey: before})
	w.cluster()
	w.create(clusterConfigYAML)
	w.machine("cp-1", controlPlane, "")

	w.Expect(string(w.ready("cp-1").Data["value"])).To(ContainSubstring(key))
	w.agree()

	secret := &corev1.Secret{}
	w.get(secret, "c-talos")
	w.Expect(string(secret.Data[secrets.BundleKey])).To(Equal(before))
}
