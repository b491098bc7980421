// SPDX-License-Identifier: Apache-2.0

package operations_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/internal/secrets"
)

// A manager that is killed between a cluster's first Secrets leaves some of them. The next one makes what is missing of the bundle that is
// there, and every machine gets a config of that.
func TestKilledBetweenTheFirstSecrets(t *testing.T) {
	for _, last := range append([]string{secrets.BundleName("c")}, secrets.AuthorityNames("c")...) {
		t.Run(last, func(t *testing.T) {
			w := newTenant(t, "killed-after-"+last)
			w.secret("registry", map[string]string{"password": "hunter2-hunter2"})

			first := start(t, "first-"+last, managerUser, "--leader-elect=false", "--insecure-diagnostics")
			w.machine("w-1")

			key := client.ObjectKey{Namespace: w.namespace, Name: last}
			w.Eventually(func() error { return admin.Get(t.Context(), key, &corev1.Secret{}) }).WithPolling(time.Millisecond).Should(Succeed())
			w.Expect(first.Kill()).To(Succeed())

			before := &corev1.Secret{}
			w.get(before, secrets.BundleName("c"))

			bundle, _, err := secrets.FromSecret(before, nil)
			w.Expect(err).NotTo(HaveOccurred())

			second := start(t, "second-"+last, managerUser, "--leader-elect=false", "--insecure-diagnostics")
			w.Expect(string(w.ready("w-1").Data["value"])).To(ContainSubstring(bundle.TrustdInfo.Token))

			for _, name := range secrets.AuthorityNames("c") {
				secret := &corev1.Secret{}
				w.get(secret, name)
				w.Expect(secrets.CheckSupplied(bundle, "c", secret)).To(Succeed(), name)
			}

			after := &corev1.Secret{}
			w.get(after, secrets.BundleName("c"))
			w.Expect(after.UID).To(Equal(before.UID))
			w.Expect(after.Data).To(Equal(before.Data))
			w.Expect(second.Kill()).To(Succeed())
		})
	}
}
