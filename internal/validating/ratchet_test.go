// SPDX-License-Identifier: Apache-2.0

package validating

import (
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

func TestAt(t *testing.T) {
	var object map[string]any

	NewWithT(t).Expect(yaml.Unmarshal([]byte(`
spec:
  documents: [{kind: A}, {kind: B}]
  registries: [{host: "r:5000"}, {host: ghcr.io, tls: {}}]
  labels: {a.b/c: d}
`), &object)).To(Succeed())

	tests := map[string]struct {
		path string
		want any
	}{
		"a field":                    {"spec.documents[1].kind", "B"},
		"an item":                    {"spec.documents[0]", map[string]any{"kind": "A"}},
		"an item by its key":         {"spec.registries[ghcr.io].host", "ghcr.io"},
		"an item by a key with dots": {"spec.registries[r:5000].host", "r:5000"},
		"a key of a map":             {"spec.labels[a.b/c]", "d"},
		"beyond the end":             {"spec.documents[2].kind", []any{map[string]any{"kind": "A"}, map[string]any{"kind": "B"}}},
		"a field that is not there":  {"spec.registries[ghcr.io].tls.caSecretRef.name", map[string]any{}},
		"below a text":               {"spec.documents[1].kind.x", "B"},
		"an item that is not there":  {"spec.registries[quay.io].host", []any{map[string]any{"host": "r:5000"}, map[string]any{"host": "ghcr.io", "tls": map[string]any{}}}},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(at(object, test.path)).To(Equal(test.want))
		})
	}
}

func TestCaps(t *testing.T) {
	g := NewWithT(t)

	many := make([]string, maxWarnings+3)
	g.Expect(capWarnings(many)).To(HaveLen(maxWarnings + 1))
	g.Expect(capWarnings(many)[maxWarnings]).To(Equal("3 more warnings are not shown"))
	g.Expect(capWarnings(many[:maxWarnings])).To(HaveLen(maxWarnings))
}

func TestCountValues(t *testing.T) {
	for text, want := range map[string]int{
		`{}`:                            1,
		`{"a":1}`:                       1,
		`{"a":1,"b":[1,2,3]}`:           4,
		`{"a":"1,2,3","b":"\",,"}`:      2,
		`{"a":"\\","b":2,"c":"\\\",,"}`: 3,
	} {
		NewWithT(t).Expect(countValues([]byte(text))).To(Equal(want), text)
	}
}
