// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
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

func quoted(items []string) string {
	out := make([]string, len(items))
	for i, item := range items {
		out[i] = fmt.Sprintf("%q", item)
	}

	return strings.Join(out, ", ")
}
