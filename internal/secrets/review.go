// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"crypto/sha256"
	stdx509 "crypto/x509"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/role"
	corev1 "k8s.io/api/core/v1"
)

// Review is what is to be done about a talosconfig Secret.
type Review struct {
	// Renew says that it must be made anew.
	Renew bool

	// Reason says why it must be, or why it cannot be used although it is not ours to replace. It names no content.
	Reason string

	// Foreign says that the talosconfig cannot be used, and that it is somebody else's: it is not written over unless the rotate
	// annotation asks for it.
	Foreign bool

	// Next is when half of the certificate's life is over. It is zero when nothing is to be done at any time: a new certificate would
	// end with the authority as this one does.
	Next time.Time
}

// ReviewTalosconfig says whether the talosconfig of a cluster must be made anew: it is empty, the rotate annotation asks for it, the Talos
// certificate authority is another than the bundle's, its client certificate is not valid yet, or half of that one's life is over.
//
// A talosconfig that is not the one that was issued last is somebody's own. It is renewed as ours is while it is an administrator's of the
// bundle's authority, as those of other Talos providers and of talosctl are; otherwise it is Foreign.
func ReviewTalosconfig(object *corev1.Secret, cluster string, bundle *Bundle, now time.Time) Review {
	ours, err := talosCertificate(bundle)
	if err != nil {
		// There is nothing to renew it with; what is wrong with the bundle is told where it is checked.
		return Review{}
	}

	data := object.Data[TalosconfigKey]

	switch {
	case len(data) == 0:
		return Review{Renew: true, Reason: "it was empty"}
	case talosconfigRotation.Asked(object):
		return Review{Renew: true, Reason: talosconfigRotation.Reason()}
	}

	certificate, issued, reason := clientCertificate(object, cluster, ours)
	if reason != "" {
		return Review{Renew: issued, Foreign: !issued, Reason: reason}
	}

	// It was made when the clock was ahead, and nobody takes it until then. What is made before the authority is valid begins with that.
	if certificate.NotBefore.After(later(now, ours.NotBefore)) {
		return Review{Renew: true, Reason: "its client certificate is not valid yet"}
	}

	// What is made now would end with the authority, too.
	if !certificate.NotAfter.Before(ours.NotAfter) {
		return Review{}
	}

	next := certificate.NotBefore.Add(certificate.NotAfter.Sub(certificate.NotBefore) / 2)
	if now.Before(next) {
		return Review{Next: next}
	}

	return Review{Renew: true, Reason: "half of its client certificate's life is over"}
}

// clientCertificate returns the certificate of a talosconfig, whether it is the one that was issued last, and what is wrong with it.
func clientCertificate(object *corev1.Secret, cluster string, ours *stdx509.Certificate) (certificate *stdx509.Certificate, issued bool, reason string) {
	parsed, name, err := readTalosconfig(object.Data[TalosconfigKey], cluster)
	if err != nil {
		return nil, false, err.Error()
	}

	authority, certificate, err := clientOf(parsed.Contexts[name])
	if err != nil {
		return nil, false, err.Error()
	}

	issued = object.Annotations[IssuedCertificateAnnotation] == fingerprint(certificate)

	theirs, err := parseCertificate(authority)

	switch {
	case err != nil || !ours.Equal(theirs) || certificate.CheckSignatureFrom(ours) != nil:
		return certificate, issued, "its Talos certificate authority is not that of the cluster's secrets bundle"
	case !slices.Contains(certificate.Subject.Organization, string(role.Admin)):
		return certificate, issued, "its client certificate is not an administrator's"
	}

	return certificate, issued, ""
}

// talosconfigRotation is how a user asks for a new talosconfig.
var talosconfigRotation = Rotation{Ask: RotateAnnotation, Answered: RotatedAnnotation}

// SetTalosconfig puts a talosconfig that has just been issued into its Secret, and the annotations that tell of it: which certificate it
// was, and which request for a rotation it answers.
func SetTalosconfig(object *corev1.Secret, cluster string, talosconfig []byte) error {
	parsed, name, err := readTalosconfig(talosconfig, cluster)
	if err != nil {
		return fmt.Errorf("talosconfig of cluster %s: %w", cluster, err)
	}

	_, certificate, err := clientOf(parsed.Contexts[name])
	if err != nil {
		return fmt.Errorf("talosconfig of cluster %s: %w", cluster, err)
	}

	if object.Data == nil {
		object.Data = map[string][]byte{}
	}

	object.Data[TalosconfigKey] = talosconfig

	if object.Annotations == nil {
		object.Annotations = map[string]string{}
	}

	object.Annotations[IssuedCertificateAnnotation] = fingerprint(certificate)
	SettleRotation(object)

	return nil
}

// SettleRotation is Rotation.Settle for a talosconfig.
func SettleRotation(object *corev1.Secret) bool { return talosconfigRotation.Settle(object) }

func talosCertificate(bundle *Bundle) (*stdx509.Certificate, error) {
	authority, err := talosAuthority(bundle)
	if err != nil {
		return nil, err
	}

	return parseCertificate(authority.Crt)
}

// fingerprint is public: it tells of a certificate, which is public, and nothing of its key.
func fingerprint(certificate *stdx509.Certificate) string {
	sum := sha256.Sum256(certificate.Raw)

	return hex.EncodeToString(sum[:])
}
