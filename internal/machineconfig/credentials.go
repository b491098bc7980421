// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
)

// Credentials are the values of the Secrets that a TalosClusterConfig refers to. They exist in memory only, and their
// text form shows none of them.
type Credentials struct {
	registries  map[string]registryCredentials
	acceptedCAs acceptedCAs
	resolved    bool
}

// acceptedCAs are trust roots beside the cluster's own, one PEM certificate each.
type acceptedCAs struct {
	source                        Source
	talos, kubernetes, aggregator []string
}

type registryCredentials struct {
	password, auth, identityToken string
	ca, clientCert, clientKey     string
}

// String hides the values from every format verb.
func (Credentials) String() string { return "credentials(hidden)" }

// GoString hides the values from %#v.
func (Credentials) GoString() string { return "credentials(hidden)" }

// secretUse is a reference of a TalosClusterConfig to a Secret.
type secretUse struct {
	source Source
	field  string
	name   string
}

func (u secretUse) fault(err error) error {
	return &Error{Reason: ReasonInvalidReference, Source: u.source, Field: u.field, Err: err}
}

// secretUses are all references that a config needs from a TalosClusterConfig, but for the one to the bundle.
func secretUses(config *bootstrapv1.TalosClusterConfig) []secretUse {
	var uses []secretUse

	add := func(layer Layer, path, field string, ref *corev1.LocalObjectReference) {
		if ref != nil {
			uses = append(uses, secretUse{Source{Layer: layer, Kind: KindTalosClusterConfig, Name: config.Name, Path: path}, field, ref.Name})
		}
	}

	for i := range config.Spec.Registries {
		registry := &config.Spec.Registries[i]
		path := fmt.Sprintf("spec.registries[%s]", registry.Host)

		add(LayerSystem, path, "authSecretRef", registry.AuthSecretRef)
		add(LayerSystem, path, "tls.caSecretRef", registry.TLS.CASecretRef)
		add(LayerSystem, path, "tls.clientCertificateSecretRef", registry.TLS.ClientCertificateSecretRef)
	}

	add(LayerBase, "spec.acceptedCAsSecretRef", "", config.Spec.AcceptedCAsSecretRef)

	return uses
}

// SecretNames returns the names of the Secrets that a config needs from a TalosClusterConfig, sorted. They are read in its namespace.
func SecretNames(config *bootstrapv1.TalosClusterConfig) []string {
	if config == nil {
		return nil
	}

	var names []string
	for _, use := range secretUses(config) {
		names = append(names, use.name)
	}

	slices.Sort(names)

	return slices.Compact(names)
}

// reservedUses finds references to Secrets that are the cluster's own by their names.
func reservedUses(config *bootstrapv1.TalosClusterConfig) error {
	reserved := reservedNames(config.Spec.ClusterName, config)

	var faults []error

	for _, use := range secretUses(config) {
		if slices.Contains(reserved, use.name) {
			faults = append(faults, use.fault(refusedSecret(use.name)))
		}
	}

	return errors.Join(faults...)
}

// ResolveCredentials takes from Secrets, by name, what a TalosClusterConfig refers to. A Secret that does not exist is
// left out of the map. A Secret that is missing or a cluster's own, and a missing, empty or doubled key, are Errors that name Secret and key, and
// never a value; all of them are reported at once.
func ResolveCredentials(config *bootstrapv1.TalosClusterConfig, secrets map[string]Object) (Credentials, error) {
	credentials := Credentials{registries: map[string]registryCredentials{}, resolved: true}

	if config == nil {
		return credentials, nil
	}

	if secrets = maps.Clone(secrets); secrets == nil {
		secrets = map[string]Object{}
	}

	for _, name := range reservedNames(config.Spec.ClusterName, config) {
		secrets[name] = Object{refused: true}
	}

	var faults []error

	for i := range config.Spec.Registries {
		registry := &config.Spec.Registries[i]

		resolved, errs := resolveRegistry(registry, secrets)
		for _, err := range errs {
			faults = append(faults, &Error{
				Reason: ReasonInvalidReference,
				Source: Source{
					Layer: LayerSystem, Kind: KindTalosClusterConfig, Name: config.Name,
					Path: fmt.Sprintf("spec.registries[%s]", registry.Host),
				},
				Field: err.field,
				Err:   err.err,
			})
		}

		credentials.registries[registry.Host] = resolved
	}

	if ref := config.Spec.AcceptedCAsSecretRef; ref != nil {
		source := Source{Layer: LayerBase, Kind: KindTalosClusterConfig, Name: config.Name, Path: "spec.acceptedCAsSecretRef"}
		credentials.acceptedCAs.source = source

		if err := credentials.acceptedCAs.resolve(ref.Name, secrets); err != nil {
			faults = append(faults, &Error{Reason: ReasonInvalidReference, Source: source, Err: err})
		}
	}

	return credentials, errors.Join(faults...)
}

type referenceFault struct {
	field string
	err   error
}

func resolveRegistry(registry *bootstrapv1.Registry, secrets map[string]Object) (registryCredentials, []referenceFault) {
	var (
		resolved registryCredentials
		faults   []referenceFault
	)

	if ref := registry.AuthSecretRef; ref != nil {
		if err := resolved.setAuth(registry.Username, ref.Name, secrets); err != nil {
			faults = append(faults, referenceFault{"authSecretRef", err})
		}
	}

	if ref := registry.TLS.CASecretRef; ref != nil {
		values, err := secretValues(secrets, ref.Name, maxCertificates, bootstrapv1.CACertificateKey)
		if err == nil {
			_, err = certificatesIn(values, ref.Name, bootstrapv1.CACertificateKey)
		}

		if err != nil {
			faults = append(faults, referenceFault{"tls.caSecretRef", err})
		}

		resolved.ca = values[bootstrapv1.CACertificateKey]
	}

	if ref := registry.TLS.ClientCertificateSecretRef; ref != nil {
		values, err := secretValues(secrets, ref.Name, machineconfigv1alpha1.MaxCredential, corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
		if err == nil {
			err = checkKeyPair(values, ref.Name)
		}

		if err != nil {
			faults = append(faults, referenceFault{"tls.clientCertificateSecretRef", err})
		}

		resolved.clientCert, resolved.clientKey = values[corev1.TLSCertKey], values[corev1.TLSPrivateKeyKey]
	}

	return resolved, faults
}

func (c *registryCredentials) setAuth(username, name string, secrets map[string]Object) error {
	data, err := dataOf(secrets, name)
	if err != nil {
		return err
	}

	forms := []string{bootstrapv1.RegistryPasswordKey, bootstrapv1.RegistryAuthKey, bootstrapv1.RegistryIdentityTokenKey}

	var present []string

	for _, key := range forms {
		if _, ok := data[key]; ok {
			present = append(present, key)
		}
	}

	switch {
	case len(present) == 0:
		return fmt.Errorf("secret %q has none of the keys %s: set exactly one", name, quoted(forms))
	case len(present) > 1:
		return fmt.Errorf("secret %q has the keys %s: exactly one is allowed, remove the others", name, quoted(present))
	}

	key := present[0]

	values, err := secretValues(secrets, name, machineconfigv1alpha1.MaxCredential, key)
	if err != nil {
		return err
	}

	switch {
	case key == bootstrapv1.RegistryPasswordKey && username == "":
		return fmt.Errorf("secret %q has the key %q, which goes with a username: set username beside authSecretRef", name, key)
	case key != bootstrapv1.RegistryPasswordKey && username != "":
		return fmt.Errorf("username is set, but secret %q has the key %q: a username goes only with the key %q", name, key, bootstrapv1.RegistryPasswordKey)
	}

	switch key {
	case bootstrapv1.RegistryPasswordKey:
		c.password = values[key]
	case bootstrapv1.RegistryAuthKey:
		c.auth = values[key]
	case bootstrapv1.RegistryIdentityTokenKey:
		c.identityToken = values[key]
	}

	return nil
}

func (a *acceptedCAs) resolve(name string, secrets map[string]Object) error {
	data, err := dataOf(secrets, name)
	if err != nil {
		return err
	}

	targets := []struct {
		key    string
		values *[]string
	}{
		{bootstrapv1.TalosCAKey, &a.talos},
		{bootstrapv1.KubernetesCAKey, &a.kubernetes},
		{bootstrapv1.AggregatorCAKey, &a.aggregator},
	}

	var keys []string

	for _, target := range targets {
		keys = append(keys, target.key)

		value, ok := data[target.key]
		if !ok {
			continue
		}

		if err := checkValue(name, target.key, string(value), maxCertificates); err != nil {
			return err
		}

		certificates, err := certificatesIn(map[string]string{target.key: string(value)}, name, target.key)
		if err != nil {
			return err
		}

		for _, certificate := range certificates {
			block := pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: certificate.Raw})
			*target.values = append(*target.values, string(block))
		}
	}

	if len(a.talos)+len(a.kubernetes)+len(a.aggregator) == 0 {
		return fmt.Errorf("secret %q has none of the keys %s: set at least one", name, quoted(keys))
	}

	return nil
}

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

func quoted(items []string) string {
	out := make([]string, len(items))
	for i, item := range items {
		out[i] = fmt.Sprintf("%q", item)
	}

	return strings.Join(out, ", ")
}
