// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"

	bootstrapcrd "github.com/maesh-dev/ichor/config/bootstrap/crd"
)

// TestPatternsHaveWords: what users write is never refused with a pattern alone.
func TestPatternsHaveWords(t *testing.T) {
	g := NewWithT(t)

	definitions := bootstrapcrd.Bases()

	rules, err := Load(definitions)
	g.Expect(err).NotTo(HaveOccurred())

	seen := 0

	var walk func(path string, props *apiextensions.JSONSchemaProps)

	walk = func(path string, props *apiextensions.JSONSchemaProps) {
		if props.Pattern != "" && !strings.HasPrefix(path, ".status") {
			seen++

			g.Expect(forms).To(HaveKey(props.Pattern), "%s: say in words what it takes", path)
		}

		for name, property := range props.Properties {
			walk(path+"."+name, &property)
		}

		if props.Items != nil && props.Items.Schema != nil {
			walk(path+"[]", props.Items.Schema)
		}

		if props.AdditionalProperties != nil && props.AdditionalProperties.Schema != nil {
			walk(path+"[]", props.AdditionalProperties.Schema)
		}
	}

	for _, gvk := range rules.Kinds() {
		walk("", rules.kinds[gvk].props)
	}

	g.Expect(seen).To(BeNumerically(">", 100))
}
