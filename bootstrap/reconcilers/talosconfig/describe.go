// SPDX-License-Identifier: Apache-2.0

package talosconfig

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/version"
)

// describe returns the annotations of the data Secret of a name that say what it holds: config contract, hash, inputs, and their fingerprint if
// there is one. An input of that name, as the Machine and its TalosConfig are, is noted without: so what the machines of a pool are rendered from
// is the same text for all, of which a cache needs one.
func describe(name string, config machineconfig.Config, in renderInputs) (map[string]string, error) {
	inputs := make([]bootstrapv1.RenderedInput, 0, len(config.Inputs))

	for _, source := range config.Inputs[:min(len(config.Inputs), maxInputs)] {
		input := bootstrapv1.RenderedInput{Kind: source.Kind, Name: source.Name, Layer: string(source.Layer)}
		if generation, ok := in.generations[machineconfig.ObjectKey{Kind: source.Kind, Name: source.Name}]; ok {
			input.Generation = &generation
		}

		if input.Name == name {
			input.Name = ""
		}

		inputs = append(inputs, input)
	}

	encoded, err := json.Marshal(inputs)
	if err != nil {
		return nil, fmt.Errorf("encode the inputs: %w", err)
	}

	annotations := map[string]string{
		bootstrapv1.ConfigContractAnnotation: config.Contract.String(),
		bootstrapv1.RenderedHashAnnotation:   config.Hash,
		bootstrapv1.RenderedInputsAnnotation: string(encoded),
	}

	if in.fingerprint != "" {
		annotations[bootstrapv1.InputsFingerprintAnnotation] = in.fingerprint
	}

	return annotations, nil
}

// description is what the annotations of a data Secret say. What a user has removed or broken is left empty: the status
// would be refused with it, and with it everything else that the status says.
type description struct {
	contract, hash string
	inputs         []bootstrapv1.RenderedInput
}

func descriptionOf(secret *corev1.Secret) description {
	d := description{
		contract: secret.Annotations[bootstrapv1.ConfigContractAnnotation],
		hash:     secret.Annotations[bootstrapv1.RenderedHashAnnotation],
	}

	if _, err := version.ParseContract(d.contract); err != nil || len(d.contract) > maxContract {
		d.contract = ""
	}

	if sum, err := hex.DecodeString(d.hash); err != nil || len(sum) != sha256.Size {
		d.hash = ""
	}

	if err := json.Unmarshal([]byte(secret.Annotations[bootstrapv1.RenderedInputsAnnotation]), &d.inputs); err != nil {
		d.inputs = nil
	}

	for i := range d.inputs {
		d.inputs[i].Name = cmp.Or(d.inputs[i].Name, secret.Name)
	}

	d.inputs = slices.DeleteFunc(d.inputs, func(input bootstrapv1.RenderedInput) bool { return !fits(input) })
	d.inputs = d.inputs[:min(len(d.inputs), maxInputs)]

	return d
}

// The limits of the status, as the CRD has them.
const (
	maxContract = 6
	maxInputs   = 512
	maxKind     = 63
	maxName     = 253
	maxLayer    = 16
)

// fits says whether the status may hold the input.
func fits(input bootstrapv1.RenderedInput) bool {
	within := func(text string, limit int) bool { return text != "" && utf8.RuneCountInString(text) <= limit }

	return within(input.Kind, maxKind) && within(input.Name, maxName) && within(input.Layer, maxLayer) && ptr.Deref(input.Generation, 0) >= 0
}
