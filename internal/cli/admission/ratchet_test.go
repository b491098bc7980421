// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"

	. "github.com/onsi/gomega"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/maesh-dev/ichor/config/bootstrap/crd"
)

// A rule that is newer than an object leaves what the object has had alone, and lets it be mended.
func TestSharedBundleRatchets(t *testing.T) {
	t.Parallel()

	g := NewWithT(t)

	rules, err := Load(crd.Bases())
	g.Expect(err).NotTo(HaveOccurred())

	parse := func(spec string) map[string]any {
		object := map[string]any{}
		g.Expect(yaml.Unmarshal([]byte("apiVersion: bootstrap.ichor.maesh.dev/v1alpha1\nkind: TalosClusterConfig\nspec: "+spec), &object)).To(Succeed())

		return object
	}

	for name, test := range map[string]struct {
		before, after string
		refused       bool
	}{
		"it was there before":   {"{clusterSelector: {}, secretsRef: {name: s}}", "{clusterSelector: {}, secretsRef: {name: s}, certSANs: [a]}", false},
		"it is taken away":      {"{clusterSelector: {}, secretsRef: {name: s}}", "{clusterSelector: {}}", false},
		"one Cluster is named":  {"{clusterSelector: {}, secretsRef: {name: s}}", "{clusterName: a, secretsRef: {name: s}}", false},
		"it comes":              {"{clusterSelector: {}}", "{clusterSelector: {}, secretsRef: {name: s}}", true},
		"a selector comes":      {"{clusterName: a, secretsRef: {name: s}}", "{clusterSelector: {}, secretsRef: {name: s}}", true},
		"it comes to a Cluster": {"{clusterName: a}", "{clusterName: a, secretsRef: {name: s}}", false},
	} {
		before, after := parse(test.before), parse(test.after)

		for gvk, kind := range rules.kinds {
			if gvk.Kind != "TalosClusterConfig" {
				continue
			}

			g.Expect(kind.prepare()).To(Succeed())

			errs, _ := kind.rules.Validate(t.Context(), nil, kind.structural, after, before, celconfig.RuntimeCELCostBudget)
			if !test.refused {
				g.Expect(errs).To(BeEmpty(), name)

				continue
			}

			g.Expect(errs).To(HaveLen(1), name)
			g.Expect(errs[0].Error()).To(ContainSubstring("secretsRef needs clusterName"), name)
		}
	}
}
