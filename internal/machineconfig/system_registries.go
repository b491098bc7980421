// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/siderolabs/talos/pkg/machinery/config/types/cri"
	"github.com/siderolabs/talos/pkg/machinery/config/types/meta"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

const (
	// anyRegistry is the entry for every host without one of its own.
	anyRegistry = "*"

	// dockerHub is the host in the names of Docker Hub's images, and dockerHubEndpoint the one that is contacted for them.
	dockerHub         = "docker.io"
	dockerHubEndpoint = "registry-1.docker.io"
)

// registries makes the documents of TalosClusterConfig.spec.registries. The kinds are known to every supported Talos, so the
// contract does not matter. Record 0027.
func (s *system) registries(config *bootstrapv1.TalosClusterConfig) error {
	var faults []error

	hosts := map[string]bool{}
	for i := range config.Spec.Registries {
		hosts[config.Spec.Registries[i].Host] = true
	}

	for i := range config.Spec.Registries {
		registry := &config.Spec.Registries[i]
		source := s.clusterConfigSource(config, fmt.Sprintf("spec.registries[%s]", registry.Host))

		faults = append(faults, s.mirror(source, registry, hosts))

		credentials := s.in.Credentials.registries[registry.Host]

		if registry.AuthSecretRef != nil {
			document := cri.NewRegistryAuthConfigV1Alpha1(registry.Host)
			document.RegistryUsername = registry.Username
			document.RegistryPassword = credentials.password
			document.RegistryAuth = credentials.auth
			document.RegistryIdentityToken = credentials.identityToken
			s.put(source, document)
		}

		s.registryTLS(source, registry, credentials)
		s.warnOfContactedHost(source, registry)
	}

	return errors.Join(faults...)
}

func (s *system) mirror(source Source, registry *bootstrapv1.Registry, hosts map[string]bool) error {
	if len(registry.Endpoints) == 0 && registry.SkipFallback == nil {
		return nil
	}

	document := cri.NewRegistryMirrorConfigV1Alpha1(registry.Host)
	document.RegistrySkipFallback = registry.SkipFallback

	var faults []error

	for i, endpoint := range registry.Endpoints {
		field := fmt.Sprintf("endpoints[%d].url", i)

		parsed, err := mirrorURL(endpoint.URL)
		if err != nil {
			faults = append(faults, &Error{Reason: ReasonRenderFailed, Source: source, Field: field, Err: err})

			continue
		}

		if !hosts[parsed.Host] {
			s.warn(source, "%s: host %s has no entry of its own in spec.registries, so it is contacted without credentials and TLS settings", field, parsed.Host)
		}

		document.RegistryEndpoints = append(document.RegistryEndpoints, cri.RegistryEndpoint{
			EndpointURL:          meta.URL{URL: parsed},
			EndpointOverridePath: endpoint.OverridePath,
		})
	}

	s.put(source, document)

	return errors.Join(faults...)
}

// mirrorURL never has the URL in an error, which may carry a password, as the parser's own words do.
func mirrorURL(text string) (*url.URL, error) {
	parsed, err := url.Parse(text)

	switch {
	case err != nil || parsed.Host == "":
		return nil, errors.New("not a URL of the form https://host[:port][/path]")
	case parsed.User != nil || merge.HasCredentialQuery(text):
		return nil, errors.New("credentials in a URL would be stored in plain text: give the mirror host its own entry with authSecretRef")
	default:
		return parsed, nil
	}
}

func (s *system) registryTLS(source Source, registry *bootstrapv1.Registry, credentials registryCredentials) {
	tls := registry.TLS
	if tls.CASecretRef == nil && tls.ClientCertificateSecretRef == nil && tls.InsecureSkipVerify == nil {
		return
	}

	document := cri.NewRegistryTLSConfigV1Alpha1(registry.Host)
	document.TLSCA = credentials.ca
	document.TLSInsecureSkipVerify = tls.InsecureSkipVerify

	if tls.ClientCertificateSecretRef != nil {
		document.TLSClientIdentity = &meta.CertificateAndKey{Cert: credentials.clientCert, Key: credentials.clientKey}
	}

	s.put(source, document)
}

// warnOfContactedHost tells of credentials for a name that no node ever contacts.
func (s *system) warnOfContactedHost(source Source, registry *bootstrapv1.Registry) {
	if registry.AuthSecretRef == nil {
		return
	}

	switch registry.Host {
	case dockerHub:
		s.warn(source, "credentials belong to the host that is contacted, which for %s is %s: give that host an entry with authSecretRef", dockerHub, dockerHubEndpoint)
	case anyRegistry:
		s.warn(source, "credentials belong to one host; an entry for every host sends them nowhere: give each host its own entry with authSecretRef")
	}
}
