// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/siderolabs/crypto/x509"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/cluster-api/util/secret"
)

// MismatchError says that a Secret does not agree with the cluster's bundle. It tells no content of either.
type MismatchError struct {
	// Secret is the name of the Secret.
	Secret string

	// Key is the key of what differs.
	Key string

	// What differs, for example "the certificate authority".
	What string
}

// Error names the Secret, the key and what to do.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("secret %s: key %q: %s differs from that of the cluster's secrets bundle, which is never changed: delete the Secret, or restore the one that belongs to the cluster",
		e.Secret, e.Key, e.What)
}

// Adopt returns the bundle of a cluster that does not exist yet with the authorities and the service account key that a user supplies in
// Secrets of Cluster API's names (AuthorityNames). The given bundle is not changed. It is for a bundle that has not been created: an
// existing one is never changed, and CheckSupplied compares it instead.
//
// The error names Secret and key: a certificate without its key, a key of another certificate, a certificate that is none of an authority
// or has expired.
func Adopt(bundle *Bundle, cluster string, supplied ...*corev1.Secret) (*Bundle, error) {
	if bundle.Certs == nil {
		return nil, errors.New("secrets bundle: certs is missing")
	}

	certs := *bundle.Certs
	adopted := *bundle
	adopted.Certs = &certs

	var errs []error

	for _, object := range supplied {
		if pair := pairOf(&adopted, cluster, object.Name); pair != nil {
			own, err := suppliedAuthority(object, bundle.Clock)
			*pair = own

			errs = append(errs, err)
		} else if object.Name == secret.Name(cluster, secret.ServiceAccount) {
			key, err := suppliedKey(object)
			certs.K8sServiceAccount = &x509.PEMEncodedKey{Key: key}

			errs = append(errs, err)
		} else {
			errs = append(errs, fmt.Errorf("secret %s: not one of the cluster's certificate authorities", object.Name))
		}
	}

	if err := errors.Join(errs...); err != nil {
		return nil, err
	}

	return &adopted, nil
}

// CheckSupplied compares Secrets of Cluster API's names with the cluster's bundle. A difference is a *MismatchError: kubeconfigs would be
// signed by an authority that the cluster does not trust. Differences of form, such as a final newline, are none. Secrets of other names
// are overlooked.
func CheckSupplied(bundle *Bundle, cluster string, supplied ...*corev1.Secret) error {
	if bundle.Certs == nil {
		return errors.New("secrets bundle: certs is missing")
	}

	var errs []error

	for _, object := range supplied {
		if pair := pairOf(bundle, cluster, object.Name); pair != nil {
			errs = append(errs, compareAuthority(object, *pair))
		} else if object.Name == secret.Name(cluster, secret.ServiceAccount) {
			errs = append(errs, compareKey(object, bundle.Certs.K8sServiceAccount))
		}
	}

	return errors.Join(errs...)
}

// CheckSameBundle compares the bundle of a user's Secret, to which a TalosClusterConfig refers, with the cluster's. A difference is a
// *MismatchError.
func CheckSameBundle(bundle *Bundle, secretName string, supplied *Bundle) error {
	want, err := Encode(bundle)
	if err != nil {
		return err
	}

	have, err := Encode(supplied)
	if err != nil {
		return err
	}

	if !bytes.Equal(want, have) {
		return &MismatchError{Secret: secretName, Key: BundleKey, What: "the secrets bundle"}
	}

	return nil
}

// pairOf is the place in the bundle of an authority's Secret, or nil if it is none.
func pairOf(bundle *Bundle, cluster, name string) **x509.PEMEncodedCertificateAndKey {
	for _, authority := range authorities {
		if name == secret.Name(cluster, authority.purpose) {
			return authority.pair(bundle)
		}
	}

	return nil
}

func suppliedAuthority(object *corev1.Secret, clock Clock) (*x509.PEMEncodedCertificateAndKey, error) {
	pair := &x509.PEMEncodedCertificateAndKey{Crt: object.Data[secret.TLSCrtDataName], Key: object.Data[secret.TLSKeyDataName]}

	for _, key := range []string{secret.TLSCrtDataName, secret.TLSKeyDataName} {
		if len(object.Data[key]) == 0 {
			return nil, fmt.Errorf("secret %s: key %q is missing: Talos signs the cluster's certificates itself and needs certificate and key, so that an authority whose key is kept elsewhere cannot be used", object.Name, key)
		}
	}

	if err := checkAuthority(pair); err != nil {
		return nil, fmt.Errorf("secret %s: tls%w", object.Name, err)
	}

	// Nodes would refuse every certificate that it signs, from the first boot on.
	if certificate, err := parseCertificate(pair.Crt); err == nil && clock != nil && clock.Now().After(certificate.NotAfter) {
		return nil, fmt.Errorf("secret %s: key %q: the certificate has expired (%s): make a new one, or delete the Secret, and one is made",
			object.Name, secret.TLSCrtDataName, certificate.NotAfter.UTC().Format(time.DateOnly))
	}

	return pair, nil
}

func suppliedKey(object *corev1.Secret) ([]byte, error) {
	data := object.Data[secret.TLSKeyDataName]
	if len(data) == 0 {
		return nil, fmt.Errorf("secret %s: key %q is missing", object.Name, secret.TLSKeyDataName)
	}

	if _, err := parseKey(data); err != nil {
		return nil, fmt.Errorf("secret %s: key %q %w", object.Name, secret.TLSKeyDataName, err)
	}

	return data, nil
}

// compareAuthority compares certificates. A Secret without the key agrees if the certificate does: the key then is not the user's to give.
func compareAuthority(object *corev1.Secret, own *x509.PEMEncodedCertificateAndKey) error {
	mismatch := &MismatchError{Secret: object.Name, Key: secret.TLSCrtDataName, What: "the certificate authority"}

	if own == nil {
		return mismatch
	}

	theirs, err := parseCertificate(object.Data[secret.TLSCrtDataName])
	if err != nil {
		return fmt.Errorf("secret %s: key %q %w", object.Name, secret.TLSCrtDataName, err)
	}

	ours, err := parseCertificate(own.Crt)
	if err != nil {
		return fmt.Errorf("secrets bundle: certificate of secret %s %w", object.Name, err)
	}

	if !ours.Equal(theirs) {
		return mismatch
	}

	if data := object.Data[secret.TLSKeyDataName]; len(data) > 0 {
		key, err := parseKey(data)
		if err != nil {
			return fmt.Errorf("secret %s: key %q %w", object.Name, secret.TLSKeyDataName, err)
		}

		if !samePublicKey(ours.PublicKey, key.Public()) {
			mismatch.Key, mismatch.What = secret.TLSKeyDataName, "the key of the certificate authority"

			return mismatch
		}
	}

	return nil
}

func compareKey(object *corev1.Secret, own *x509.PEMEncodedKey) error {
	data, err := suppliedKey(object)
	if err != nil {
		return err
	}

	theirs, err := parseKey(data)
	if err != nil {
		return fmt.Errorf("secret %s: %w", object.Name, err)
	}

	if own != nil {
		if ours, err := parseKey(own.Key); err == nil && samePublicKey(ours.Public(), theirs.Public()) {
			return nil
		}
	}

	return &MismatchError{Secret: object.Name, Key: secret.TLSKeyDataName, What: "the key of service accounts"}
}
