// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
)

const (
	// maxNamedInputs is how many of the inputs of a config that is too large are named: the few that matter.
	maxNamedInputs = 3

	// small is how many times smaller than the largest an input is that does not matter.
	small = 20
)

// sizedInput is something that a config was made of.
type sizedInput struct {
	what  string
	bytes int
}

// checkSize refuses a config that no Secret can hold. Only smaller inputs help, so it names the largest, be they patches or what they
// refer to.
func (r *render) checkSize(encoded []byte) error {
	if len(encoded) <= corev1.MaxSecretSize {
		return nil
	}

	inputs := append(sizesOfPatches(r.patches, r.in.References), sizesOfCredentials(r.in)...)
	slices.SortStableFunc(inputs, func(a, b sizedInput) int { return cmp.Compare(b.bytes, a.bytes) })

	var named []string

	for _, input := range inputs[:min(len(inputs), maxNamedInputs)] {
		if input.bytes >= inputs[0].bytes/small {
			named = append(named, fmt.Sprintf("%s (%d bytes)", input.what, input.bytes))
		}
	}

	remedy := "make its inputs smaller"
	if len(named) > 0 {
		remedy = "make its largest inputs smaller: " + strings.Join(named, ", ")
	}

	return &Error{
		Reason: ReasonValidationFailed,
		Err:    fmt.Errorf("the machine config has %d bytes, and a Secret holds %d at most; %s", len(encoded), corev1.MaxSecretSize, remedy),
	}
}

// sizesOfPatches are the patches without the values of their references, and these, once for each use.
func sizesOfPatches(patches []*Patch, references References) []sizedInput {
	var inputs []sizedInput

	for _, patch := range patches {
		// What cannot be encoded was refused before.
		documents, _ := json.Marshal(patch.object.Spec.Documents)
		inputs = append(inputs, sizedInput{fmt.Sprintf("%s %s", KindTalosConfigPatch, patch.object.Name), len(documents)})

		values := map[machineconfigv1alpha1.Source]int{}

		var sources []machineconfigv1alpha1.Source

		for i := range patch.object.Spec.Documents {
			for _, reference := range patch.object.Spec.Documents[i].References() {
				if _, seen := values[reference.Source]; !seen {
					sources = append(sources, reference.Source)
				}

				value, _ := references.value(reference.Source)
				values[reference.Source] += len(value)
			}
		}

		for _, source := range sources {
			inputs = append(inputs, sizedInput{fmt.Sprintf("%s, which %s %s refers to", source, KindTalosConfigPatch, patch.object.Name), values[source]})
		}
	}

	return inputs
}

// sizesOfCredentials are what the Secrets hold that the TalosClusterConfig refers to.
func sizesOfCredentials(in *Input) []sizedInput {
	var inputs []sizedInput

	add := func(ref *corev1.LocalObjectReference, values ...string) {
		if ref != nil {
			inputs = append(inputs, sizedInput{
				fmt.Sprintf("%s %q, which %s %s refers to", KindSecret, ref.Name, KindTalosClusterConfig, in.ClusterConfig.Name), len(strings.Join(values, "")),
			})
		}
	}

	if in.ClusterConfig == nil {
		return nil
	}

	for _, registry := range in.ClusterConfig.Spec.Registries {
		credentials := in.Credentials.registries[registry.Host]

		add(registry.AuthSecretRef, credentials.password, credentials.auth, credentials.identityToken)
		add(registry.TLS.CASecretRef, credentials.ca)
		add(registry.TLS.ClientCertificateSecretRef, credentials.clientCert, credentials.clientKey)
	}

	roots := in.Credentials.acceptedCAs
	add(in.ClusterConfig.Spec.AcceptedCAsSecretRef, slices.Concat(roots.talos, roots.kubernetes, roots.aggregator)...)

	return inputs
}
