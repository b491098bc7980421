// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	kubeletv1 "k8s.io/kubelet/config/v1"
)

// checkCredentialProviders checks what the kubelet checks at its start.
func checkCredentialProviders(object map[string]any) []mistake {
	const group = "kubelet.config.k8s.io/"

	mistakes := checkKind(object, "CredentialProviderConfig", group+"v1", group+"v1beta1", group+"v1alpha1")

	configuration, wrong := decodeEmbedded[kubeletv1.CredentialProviderConfig](object)
	if mistakes = append(mistakes, wrong...); configuration == nil {
		return mistakes
	}

	if len(configuration.Providers) == 0 {
		return append(mistakes, mistake{"/providers", errors.New("must have a provider: the kubelet does not start without one")})
	}

	names := map[string]bool{}

	for i, provider := range configuration.Providers {
		at := fmt.Sprintf("/providers/%d", i)
		mistakes = append(mistakes, checkCredentialProvider(at, provider)...)

		if names[provider.Name] {
			mistakes = append(mistakes, mistake{at + "/name", errors.New("is the name of another provider too")})
		}

		names[provider.Name] = true
	}

	return mistakes
}

func checkCredentialProvider(at string, provider kubeletv1.CredentialProvider) []mistake {
	const group = "credentialprovider.kubelet.k8s.io/"

	var mistakes []mistake

	if name := provider.Name; name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/ ") {
		mistakes = append(mistakes, mistake{at + "/name", errors.New("must be the file name of the provider's program")})
	}

	if !slices.Contains([]string{group + "v1", group + "v1beta1", group + "v1alpha1"}, provider.APIVersion) {
		mistakes = append(mistakes, mistake{at + "/apiVersion", fmt.Errorf("must be %sv1", group)})
	}

	if len(provider.MatchImages) == 0 {
		mistakes = append(mistakes, mistake{at + "/matchImages", errors.New("must have a pattern of images")})
	}

	for i, pattern := range provider.MatchImages {
		if strings.Contains(pattern, "://") {
			mistakes = append(mistakes, mistake{fmt.Sprintf("%s/matchImages/%d", at, i), errors.New("must be a pattern of hosts and paths without a scheme")})
		}
	}

	if provider.DefaultCacheDuration == nil || provider.DefaultCacheDuration.Duration < 0 {
		mistakes = append(mistakes, mistake{at + "/defaultCacheDuration", errors.New("must be set to a duration such as 12h")})
	}

	if tokens := provider.TokenAttributes; tokens != nil {
		if tokens.ServiceAccountTokenAudience == "" {
			mistakes = append(mistakes, mistake{at + "/tokenAttributes/serviceAccountTokenAudience", errors.New("must be set")})
		}

		if tokens.RequireServiceAccount == nil {
			mistakes = append(mistakes, mistake{at + "/tokenAttributes/requireServiceAccount", errors.New("must be set")})
		}
	}

	return mistakes
}
