// SPDX-License-Identifier: Apache-2.0

package talosconfig

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
)

// maxInputs is how many inputs the status holds.
const maxInputs = 512

// objectRef names an object of the namespace.
type objectRef struct{ kind, name string }

// describe returns the annotations of a data Secret that say what it holds: config contract, hash, inputs.
func describe(config machineconfig.Config, generations map[objectRef]int64) (map[string]string, error) {
	inputs := make([]bootstrapv1.RenderedInput, 0, len(config.Inputs))

	for _, source := range config.Inputs[:min(len(config.Inputs), maxInputs)] {
		input := bootstrapv1.RenderedInput{Kind: source.Kind, Name: source.Name, Layer: string(source.Layer)}
		if generation, ok := generations[objectRef{source.Kind, source.Name}]; ok {
			input.Generation = &generation
		}

		inputs = append(inputs, input)
	}

	encoded, err := json.Marshal(inputs)
	if err != nil {
		return nil, fmt.Errorf("encode the inputs: %w", err)
	}

	return map[string]string{
		bootstrapv1.ConfigContractAnnotation: config.Contract.String(),
		bootstrapv1.RenderedHashAnnotation:   config.Hash,
		bootstrapv1.RenderedInputsAnnotation: string(encoded),
	}, nil
}

// description is what the annotations of a data Secret say. What a user has removed or broken is left empty.
type description struct {
	contract, hash string
	inputs         []bootstrapv1.RenderedInput
}

func descriptionOf(secret *corev1.Secret) description {
	d := description{
		contract: secret.Annotations[bootstrapv1.ConfigContractAnnotation],
		hash:     secret.Annotations[bootstrapv1.RenderedHashAnnotation],
	}

	if err := json.Unmarshal([]byte(secret.Annotations[bootstrapv1.RenderedInputsAnnotation]), &d.inputs); err != nil {
		d.inputs = nil
	}

	return d
}
