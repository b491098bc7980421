// SPDX-License-Identifier: Apache-2.0

package clustersecrets

import (
	"encoding/base64"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	machinerysecrets "github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"k8s.io/client-go/util/cert"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/internal/version"
)

// A client key written at every reconcile would never let the Secret rest: over a year and some days, with a look each day, the certificate is renewed
// twice, and when it is due is known from the start.
func TestKeepOverTime(t *testing.T) {
	d := newDesk(t, nil)
	d.bundle()

	next, err := d.keep()
	d.Expect(err).NotTo(HaveOccurred())
	d.Expect(d.writes).To(Equal(5), "the authorities, the key of service accounts and the talosconfig")
	d.Expect(next).To(BeTemporally("~", birth.Add(talosconfigLife/2), 5*time.Minute))

	d.writes = 0

	for day := range 370 {
		d.clock.SetTime(birth.AddDate(0, 0, day))

		_, err := d.keep()
		d.Expect(err).NotTo(HaveOccurred())
	}

	d.Expect(d.writes).To(Equal(2))
	d.Expect(d.events.Events).To(HaveLen(2))
	d.Expect(<-d.events.Events).To(And(HavePrefix("Normal TalosconfigRenewed"), ContainSubstring("Secret c-talosconfig")))
}

// Whatever the clock is set to, the talosconfig is one that is valid then, and is not written again and again.
func TestKeepFollowsTheClock(t *testing.T) {
	d := newDesk(t, nil)
	d.bundle()

	for _, at := range []time.Time{
		birth.AddDate(5, 0, 0), birth, birth.AddDate(0, 0, 1), birth.AddDate(9, 6, 0), birth.AddDate(0, 2, 0), birth.AddDate(0, 2, 0).Add(-time.Minute),
	} {
		d.clock.SetTime(at)

		_, err := d.keep()
		d.Expect(err).NotTo(HaveOccurred())

		config, err := clientconfig.FromBytes(d.secret("c-talosconfig").Data[secrets.TalosconfigKey])
		d.Expect(err).NotTo(HaveOccurred())

		pem, err := base64.StdEncoding.DecodeString(config.Contexts["c"].Crt)
		d.Expect(err).NotTo(HaveOccurred())

		found, err := cert.ParseCertsPEM(pem)
		d.Expect(err).NotTo(HaveOccurred())
		d.Expect(found[0].NotBefore).To(BeTemporally("<=", at))
		d.Expect(found[0].NotAfter).To(BeTemporally(">", at))

		d.writes = 0

		next, err := d.keep()
		d.Expect(err).NotTo(HaveOccurred())
		d.Expect(d.writes).To(BeZero(), at.String())
		d.Expect(next).To(Or(BeZero(), BeTemporally(">", at)))
	}
}

// The authority in the bundle has been replaced by a rotation: the client certificate follows.
func TestKeepFollowsTheAuthority(t *testing.T) {
	d := newDesk(t, nil)
	secret := d.bundle()

	_, err := d.keep()
	d.Expect(err).NotTo(HaveOccurred())

	made, _, err := secrets.FromSecret(d.secret("c-talos"), machinerysecrets.NewFixedClock(birth))
	d.Expect(err).NotTo(HaveOccurred())

	other, err := secrets.New(machinerysecrets.NewFixedClock(birth), version.Newest(), secrets.WithECDSAServiceAccountKey())
	d.Expect(err).NotTo(HaveOccurred())

	made.Certs.OS = other.Certs.OS
	secret.Data[secrets.BundleKey], err = secrets.Encode(made)
	d.Expect(err).NotTo(HaveOccurred())
	d.Expect(d.client.Update(t.Context(), secret)).To(Succeed())

	d.writes = 0
	_, err = d.keep()
	d.Expect(err).NotTo(HaveOccurred())
	d.Expect(d.writes).To(Equal(1))
	d.Expect(<-d.events.Events).To(ContainSubstring("certificate authority"))
}

// A Secret that must not be changed is not tried to be.
func TestImmutableTalosconfig(t *testing.T) {
	d := newDesk(t, nil)
	d.bundle()

	_, err := d.keep()
	d.Expect(err).NotTo(HaveOccurred())

	secret := d.secret("c-talosconfig")
	secret.Immutable = new(true)
	d.Expect(d.client.Update(t.Context(), secret)).To(Succeed())
	d.clock.SetTime(birth.Add(talosconfigLife * 3 / 4))

	d.writes = 0
	_, err = d.keep()
	d.fault(err, bootstrapv1.SecretsBundleMismatchReason, "secret c-talosconfig", "immutable", "delete it")
	d.Expect(d.writes).To(BeZero())
}

// A manager whose clock is behind that of who made the bundle makes a talosconfig that begins with its authority, once, and says why nobody takes it.
func TestKeepBeforeTheAuthority(t *testing.T) {
	d := newDesk(t, nil)
	d.bundle()
	d.clock.SetTime(birth.AddDate(0, 0, -1))

	for range 3 {
		next, err := d.keep()
		d.Expect(err).NotTo(HaveOccurred())
		d.Expect(next).To(BeTemporally("~", birth.Add(talosconfigLife/2), 5*time.Minute))
	}

	d.Expect(d.writes).To(Equal(5), "nothing is made again")

	notice, err := d.keeper.Notice(t.Context(), clusterC())
	d.Expect(err).NotTo(HaveOccurred())
	d.Expect(notice).To(And(
		HavePrefix("secret c-talos: not valid before 2026-03-01T12:00:00Z: aggregator-ca, etcd-ca, kubernetes-ca, talos-ca: "), ContainSubstring("clock")))

	d.clock.SetTime(birth)
	d.Expect(d.keeper.Notice(t.Context(), clusterC())).To(BeEmpty())
}
