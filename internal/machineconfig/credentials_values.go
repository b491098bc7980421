// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"

	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
)

// maxCertificates bounds certificates that are trusted, in bytes, as the schema bounds those that stand in a document: the authorities
// that all browsers trust have about as much.
const maxCertificates = 256 << 10

// checkValue checks that a value is text of a sensible size.
func checkValue(name, key, value string, most int) error {
	if err := machineconfigv1alpha1.CheckValue(value, most); err != nil {
		return fmt.Errorf("secret %q: the key %q %w", name, key, err)
	}

	return nil
}

// secretValues returns the values of the keys, which must exist, must not be empty, and must be text of at most so many bytes. One
// newline at the end is what an editor or `echo` left there, and no registry means it.
func secretValues(secrets map[string]Object, name string, most int, keys ...string) (map[string]string, error) {
	data, err := dataOf(secrets, name)
	if err != nil {
		return nil, err
	}

	values := make(map[string]string, len(keys))

	for _, key := range keys {
		value, ok := data[key]
		if !ok {
			return nil, fmt.Errorf("secret %q has no key %q: add it", name, key)
		}

		text := strings.TrimRight(string(value), "\r\n")
		if text == "" {
			return nil, fmt.Errorf("secret %q has an empty key %q: fill it", name, key)
		}

		if err := checkValue(name, key, text, most); err != nil {
			return nil, err
		}

		values[key] = text
	}

	return values, nil
}

// dataOf is what a Secret holds.
func dataOf(secrets map[string]Object, name string) (map[string][]byte, error) {
	object, ok := secrets[name]

	switch {
	case object.refused:
		return nil, refusedSecret(name)
	case !ok:
		return nil, &AbsentError{KindSecret, name}
	default:
		return object.data, nil
	}
}

// certificatesIn are the certificates under a key. The parser's own words may quote what stands there, so they are not passed on.
func certificatesIn(values map[string]string, name, key string) ([]*x509.Certificate, error) {
	certificates, err := cert.ParseCertsPEM([]byte(values[key]))
	if err != nil {
		return nil, fmt.Errorf("secret %q has no PEM certificate under the key %q: put one or more there", name, key)
	}

	return certificates, nil
}

// checkKeyPair checks the client certificate that a registry asks for. Talos takes anything here, and the pull then fails on the node.
func checkKeyPair(values map[string]string, name string) error {
	if _, err := certificatesIn(values, name, corev1.TLSCertKey); err != nil {
		return err
	}

	if !hasPrivateKey(values[corev1.TLSPrivateKeyKey]) {
		return fmt.Errorf("secret %q has no PEM private key under the key %q: put it there", name, corev1.TLSPrivateKeyKey)
	}

	if _, err := tls.X509KeyPair([]byte(values[corev1.TLSCertKey]), []byte(values[corev1.TLSPrivateKeyKey])); err != nil {
		return fmt.Errorf("secret %q: the key %q is not the private key of the first certificate under %q: put a pair there", name, corev1.TLSPrivateKeyKey, corev1.TLSCertKey)
	}

	return nil
}

func hasPrivateKey(text string) bool {
	for block, rest := pem.Decode([]byte(text)); block != nil; block, rest = pem.Decode(rest) {
		if strings.HasSuffix(block.Type, "PRIVATE KEY") {
			return true
		}
	}

	return false
}
