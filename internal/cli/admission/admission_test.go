// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"testing"
	"testing/fstest"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/maesh-dev/ichor/config/bootstrap/crd"
	"github.com/maesh-dev/ichor/internal/cli/admission"
)

func TestCheck(t *testing.T) {
	t.Parallel()

	rules, err := admission.Load(crd.Bases())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	const patch = "apiVersion: bootstrap.ichor.maesh.dev/v1alpha1\nkind: TalosConfigPatch\nmetadata: {name: p, namespace: default}\n"

	const config = "apiVersion: bootstrap.ichor.maesh.dev/v1alpha1\nkind: TalosClusterConfig\nmetadata: {name: c, namespace: default}\n"

	for name, tc := range map[string]struct {
		in   string
		want []admission.Finding
	}{
		"a sound patch": {
			patch + "spec: {clusterName: a, layer: Cluster, documents: [{kind: SysctlConfig, sysctlConfig: {params: {vm.swappiness: '1'}}}]}", nil,
		},
		"the status is not looked at": {
			config + "spec: {clusterName: a}\nstatus: {nonsense: 1}", nil,
		},
		"a letter in the wrong case": {
			patch + "spec: {clustername: a, layer: Cluster, deletions: [{kind: Config}]}",
			[]admission.Finding{{"spec.clustername", "unknown field; did you mean clusterName?"}},
		},
		"a letter too few": {
			patch + "spec: {clusterName: a, layer: Cluster, deletion: [{kind: Config}]}",
			[]admission.Finding{
				{"spec", "at least one of documents and deletions must be set"},
				{"spec.deletion", "unknown field; did you mean deletions?"},
			},
		},
		"nothing similar is known": {
			patch + "spec: {clusterName: a, layer: Cluster, deletions: [{kind: Config, because: x}]}",
			[]admission.Finding{{"spec.deletions[0].because", "unknown field; known here: kind, name, path"}},
		},
		"a rule in CEL": {
			patch + "spec: {clusterName: a, layer: Role, deletions: [{kind: Config}]}",
			[]admission.Finding{{"spec", "role must be set with layer Role, and only then"}},
		},
		"an enum": {
			patch + "spec: {clusterName: a, layer: cluster, deletions: [{kind: Config}]}",
			[]admission.Finding{{"spec.layer", `"cluster" is not one of the supported values: "Cluster", "Role", "Pool", "Machine"`}},
		},
		"a pattern, without the value": {
			config + "spec: {clusterName: a, registries: [{host: ghcr.io, endpoints: [{url: 'https://user:hunter2@mirror'}]}]}",
			[]admission.Finding{{
				"spec.registries[0].endpoints[0].url",
				`must be a URL such as https://example.com/path, without a user; url of the mirror, with scheme, for example "https://mirror.example.com/v2/docker.io". ` +
					"Credentials in it are refused: use authSecretRef of the mirror host's own entry",
			}},
		},
		"a list with keys": {
			config + "spec: {clusterName: a, registries: [{host: ghcr.io}, {host: ghcr.io}]}",
			[]admission.Finding{{"spec.registries[1]", "stands in the list more than once"}},
		},
		"a number for text": {
			patch + "spec: {clusterName: a, layer: Cluster, documents: [{kind: SysctlConfig, sysctlConfig: {params: {vm.swappiness: 1}}}]}",
			[]admission.Finding{{"spec.documents[0].sysctlConfig.params.vm.swappiness", "must be text, and is a number: put it in quotes"}},
		},
		"a boolean for text, told once": {
			patch + "spec: {clusterName: a, layer: Cluster, documents: [{kind: HostnameConfig, hostnameConfig: {auto: off}}]}",
			[]admission.Finding{{
				"spec.documents[0].hostnameConfig.auto",
				"must be text, and is a boolean: put it in quotes (YAML reads on, off, yes and no without quotes as booleans)",
			}},
		},
		"text for a list": {
			patch + "spec: {clusterName: a, layer: Cluster, documents: [{kind: KubeletConfig, kubeletConfig: {extraArgs: {v: '4'}}}]}",
			[]admission.Finding{{
				"spec.documents[0].kubeletConfig.extraArgs.v", "must be a list, and is text: write [...] around it, for one item too",
			}},
		},
		"text for a number": {
			patch + "spec: {clusterName: a, layer: Cluster, documents: [{kind: VLANConfig, vlanConfig: {name: v, vlanID: '4'}}]}",
			[]admission.Finding{{"spec.documents[0].vlanConfig.vlanID", "must be a whole number, and is text: remove the quotes, if it has some"}},
		},
		"a list for an object": {
			patch + "spec: {clusterName: a, layer: Cluster, documents: [{kind: VLANConfig, vlanConfig: [a]}]}",
			[]admission.Finding{{"spec.documents[0].vlanConfig", "must be a map, and is a list"}},
		},
		"a required field": {
			patch + "spec: {clusterName: a, deletions: [{kind: Config}]}",
			[]admission.Finding{{"spec.layer", "must be set"}},
		},
		"a refused field, without the value": {
			patch + "spec: {clusterName: a, layer: Cluster, documents: [{kind: Config, config: {machine: {token: hunter2}}}]}",
			[]admission.Finding{{"spec.documents[0].config.machine.token", "cluster secret; it comes from the secrets bundle"}},
		},
		"a name that is none": {
			"apiVersion: bootstrap.ichor.maesh.dev/v1alpha1\nkind: TalosClusterConfig\nmetadata: {name: My_Config, namespace: default}\nspec: {clusterName: a}",
			[]admission.Finding{{
				"metadata.name",
				"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end " +
					"with an alphanumeric character (e.g. 'example.com', regex used for validation is " +
					`'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			var object map[string]any
			g.Expect(yaml.Unmarshal([]byte(tc.in), &object)).To(Succeed())

			got, err := rules.Check(object)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
		})
	}
}

func TestCheckKnowsItsKindsOnly(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)

	rules, err := admission.Load(crd.Bases())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(rules.Kinds()).To(HaveLen(5))

	_, err = rules.Check(map[string]any{"apiVersion": "v1", "kind": "Secret"})
	g.Expect(err).To(MatchError(ContainSubstring("no rules")))
}

func TestLoadNamesTheBrokenFile(t *testing.T) {
	t.Parallel()

	_, err := admission.Load(fstest.MapFS{"bad.yaml": {Data: []byte("kind: [")}})
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("bad.yaml")))
}
