// SPDX-License-Identifier: Apache-2.0

package talosconfig

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
)

// What the annotations say goes into the status only as far as the CRD takes it.
func TestDescriptionOf(t *testing.T) {
	hash := strings.Repeat("0a", 32)
	good := bootstrapv1.RenderedInput{Kind: "Machine", Name: "w-1", Generation: new(int64(1)), Layer: "Base"}

	input := func(change func(*bootstrapv1.RenderedInput)) bootstrapv1.RenderedInput {
		changed := good
		change(&changed)

		return changed
	}
	encode := func(inputs ...bootstrapv1.RenderedInput) string {
		data, err := json.Marshal(inputs)
		if err != nil {
			t.Fatal(err)
		}

		return string(data)
	}

	tests := map[string]struct {
		contract, hash, inputs string
		want                   description
	}{
		"good":                    {"v1.14", hash, encode(good), description{"v1.14", hash, []bootstrapv1.RenderedInput{good}}},
		"the longest":             {"v1.14", hash, encode(input(longest)), description{"v1.14", hash, []bootstrapv1.RenderedInput{input(longest)}}},
		"nothing":                 {},
		"contract that is none":   {contract: "latest"},
		"contract that is long":   {contract: "v1.1400"},
		"hash that is short":      {hash: hash[1:]},
		"hash that is long":       {hash: hash + "0a"},
		"hash that is no hash":    {hash: strings.Repeat("x", 64)},
		"inputs that are no JSON": {inputs: "["},
		"inputs of another sort":  {inputs: `{"kind": "Machine"}`},
		"inputs that are null":    {inputs: "null"},
		"one broken among the good": {
			inputs: encode(good, input(func(i *bootstrapv1.RenderedInput) { i.Kind = "" }), good),
			want:   description{inputs: []bootstrapv1.RenderedInput{good, good}},
		},
		"of the Secret's own name": {
			inputs: encode(input(func(i *bootstrapv1.RenderedInput) { i.Name = "" })), want: description{inputs: []bootstrapv1.RenderedInput{good}},
		},
		"broken ones": {
			inputs: encode(
				input(func(i *bootstrapv1.RenderedInput) { i.Layer = "" }),
				input(func(i *bootstrapv1.RenderedInput) { longest(i); i.Kind += "x" }),
				input(func(i *bootstrapv1.RenderedInput) { longest(i); i.Name += "x" }),
				input(func(i *bootstrapv1.RenderedInput) { longest(i); i.Layer += "x" }),
				input(func(i *bootstrapv1.RenderedInput) { i.Generation = new(int64(-1)) }),
			),
			want: description{inputs: []bootstrapv1.RenderedInput{}},
		},
		"too many": {
			inputs: encode(slices.Repeat([]bootstrapv1.RenderedInput{good}, maxInputs+1)...),
			want:   description{inputs: slices.Repeat([]bootstrapv1.RenderedInput{good}, maxInputs)},
		},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := descriptionOf(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "w-1", Annotations: map[string]string{
				bootstrapv1.ConfigContractAnnotation: test.contract,
				bootstrapv1.RenderedHashAnnotation:   test.hash,
				bootstrapv1.RenderedInputsAnnotation: test.inputs,
			}}})
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(description{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Of two machines that are rendered from the same objects, the same is noted, which a cache keeps once; and each reads its own names there.
func TestDescribeNamesOthersOnly(t *testing.T) {
	noted := map[string]bool{}

	for _, name := range []string{"w-1", "w-2"} {
		inputs := []machineconfig.Source{
			{Layer: machineconfig.LayerBase, Kind: machineconfig.KindCluster, Name: "c"},
			{Layer: machineconfig.LayerBase, Kind: machineconfig.KindMachine, Name: name},
			{Layer: machineconfig.LayerSystem, Kind: machineconfig.KindTalosConfig, Name: name},
			{Layer: machineconfig.LayerPool, Kind: machineconfig.KindTalosConfigPatch, Name: "w"},
		}

		annotations, err := describe(name, machineconfig.Config{Inputs: inputs}, renderInputs{})
		if err != nil {
			t.Fatal(err)
		}

		noted[annotations[bootstrapv1.RenderedInputsAnnotation]] = true

		want := make([]bootstrapv1.RenderedInput, len(inputs))
		for i, input := range inputs {
			want[i] = bootstrapv1.RenderedInput{Kind: input.Kind, Name: input.Name, Layer: string(input.Layer)}
		}

		got := descriptionOf(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}}).inputs
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}

	if len(noted) != 1 {
		t.Errorf("the machines are told apart by what is noted: %v", noted)
	}
}

func longest(i *bootstrapv1.RenderedInput) {
	i.Kind, i.Name, i.Layer = strings.Repeat("k", maxKind), strings.Repeat("ä", maxName), strings.Repeat("l", maxLayer)
}
