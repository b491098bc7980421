// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/maesh-dev/ichor/internal/machineconfig"
)

// wireguardKey is a private key of WireGuard, as a Secret has it: with the newline that `wg genkey` writes.
const wireguardKey = "yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk="

const tunnel = `metadata: {name: tunnel}
spec:
  layer: Cluster
  clusterName: c1
  documents:
  - {kind: SysctlConfig, sysctlConfig: {params: {vm.swappiness: '1'}}}
  - {kind: WireguardConfig, wireguardConfig: {name: wg0, privateKeySecretRef: {name: wg, key: private}, listenPort: 51820}}
`

// secretOf is a Secret with one key.
func secretOf(name, key, value string) map[machineconfig.ObjectKey]machineconfig.Object {
	return objectOf(machineconfig.KindSecret, name, key, value)
}

// objectOf is an object with one key.
func objectOf(kind, name, key, value string) map[machineconfig.ObjectKey]machineconfig.Object {
	return map[machineconfig.ObjectKey]machineconfig.Object{{Kind: kind, Name: name}: secretWith(map[string][]byte{key: []byte(value)})}
}

func TestReferences(t *testing.T) {
	t.Parallel()

	in := input(t, "v1.14", false)
	in.Patches = append(in.Patches, patch(t, tunnel), patch(t, strings.NewReplacer("tunnel", "other", "c1", "c2", "wg", "elsewhere").Replace(tunnel)))

	want := []machineconfig.ObjectKey{{Kind: machineconfig.KindSecret, Name: "wg"}}
	if diff := cmp.Diff(want, machineconfig.ReferencedObjects(in)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}

	if _, err := machineconfig.Render(in); err == nil || len(machineconfig.Errors(err)) > 0 {
		t.Errorf("nothing was resolved: got %v, want an error of the caller", err)
	}

	in.References = machineconfig.NewReferences(secretOf("wg", "private", wireguardKey+"\n"))
	in.Provenance = true

	config, err := machineconfig.Render(in)
	if err != nil {
		t.Fatal(err)
	}

	if !strings.Contains(string(config.Bytes), "privateKey: "+wireguardKey+"\n") {
		t.Errorf("the key is not in the config:\n%s", config.Bytes)
	}

	for _, input := range config.Inputs {
		if input == (machineconfig.Source{Layer: machineconfig.LayerCluster, Kind: machineconfig.KindSecret, Name: "wg"}) {
			want = nil
		}
	}

	if want != nil {
		t.Errorf("the Secret is not among the inputs: %v", config.Inputs)
	}

	masked, err := config.Masked()
	if err != nil {
		t.Fatal(err)
	}

	for _, leaf := range config.Provenance.Leaves {
		if leaf.Path == "/privateKey" && (!leaf.Secret || leaf.SetBy.String() != "Cluster layer: TalosConfigPatch tunnel spec.documents[1]") {
			t.Errorf("provenance of the key: %+v", leaf)
		}
	}

	if text := fmt.Sprintf("%s %+v %#v %+v", masked, in.References, in.References, config.Provenance); strings.Contains(text, wireguardKey) {
		t.Error("the key is shown")
	}
}

// TestMissingReferences names patch, document, field, object and key.
func TestMissingReferences(t *testing.T) {
	t.Parallel()

	const at = "Cluster layer: TalosConfigPatch tunnel spec.documents[1]: WireguardConfig: /privateKeySecretRef: "

	for name, tc := range map[string]struct {
		objects map[machineconfig.ObjectKey]machineconfig.Object
		want    string
	}{
		"no Secret": {nil, at + `secret "wg" does not exist in the namespace: create it`},
		"no key":    {secretOf("wg", "public", wireguardKey), at + `secret "wg" has no key "private": add it`},
		"empty":     {secretOf("wg", "private", "\n"), at + `key "private" of Secret "wg" is empty`},
		"a ConfigMap of the name": {
			objectOf(machineconfig.KindConfigMap, "wg", "private", wireguardKey),
			at + `secret "wg" does not exist in the namespace: create it`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			in := input(t, "v1.14", false)
			in.Patches = append(in.Patches, patch(t, tunnel))
			in.References = machineconfig.NewReferences(tc.objects)

			_, err := machineconfig.Render(in)
			if err == nil || err.Error() != tc.want {
				t.Errorf("got %v, want %q", err, tc.want)
			}

			if reason := machineconfig.ReasonOf(err); reason != machineconfig.ReasonInvalidReference {
				t.Errorf("reason is %q", reason)
			}
		})
	}
}

// TestErrorsHideReferences has a value that Talos refuses: its words must not show it.
func TestErrorsHideReferences(t *testing.T) {
	t.Parallel()

	for name, value := range map[string]string{
		"a text":     "correct-horse-battery-staple",
		"a template": `"quoted" and {braced: [}`,
		"lines":      "-----BEGIN PRIVATE KEY-----\ncorrect-horse-battery-staple\n-----END PRIVATE KEY-----\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			in := input(t, "v1.14", false)
			in.Patches = append(in.Patches, patch(t, tunnel))
			in.References = machineconfig.NewReferences(secretOf("wg", "private", value))

			_, err := machineconfig.Render(in)
			if err == nil {
				t.Fatal("rendered with a key that is none")
			}

			for line := range strings.Lines(value) {
				if line = strings.TrimSpace(line); strings.Contains(err.Error(), line) {
					t.Errorf("the error shows the value: %v", err)
				}
			}

			faults := machineconfig.Errors(err)
			if len(faults) == 0 || faults[0].Document != "WireguardConfig/wg0" {
				t.Errorf("the error does not name the document: %v", err)
			}
		})
	}
}

// TestWithout leaves out what cannot be had, and nothing else.
func TestWithout(t *testing.T) {
	t.Parallel()

	in := input(t, "v1.14", false)

	left, paths := patch(t, tunnel).Without(machineconfig.ObjectKey{Kind: machineconfig.KindSecret, Name: "wg"})
	if diff := cmp.Diff([]string{"spec.documents[1]"}, paths); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}

	in.Patches = append(in.Patches, left)

	config, err := machineconfig.Render(in)
	if err != nil {
		t.Fatal(err)
	}

	if text := string(config.Bytes); strings.Contains(text, "WireguardConfig") || !strings.Contains(text, "vm.swappiness") {
		t.Errorf("the config has\n%s", text)
	}
}

// TestReferencedContent has free-form content from Secrets and ConfigMaps, with what no plain field may have.
func TestReferencedContent(t *testing.T) {
	t.Parallel()

	const (
		secretManifest = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: correct-horse-battery-staple}\n"
		pod            = "apiVersion: v1\nkind: Pod\nmetadata: {name: agent-of-nobody, namespace: kube-system}\nspec: {containers: [{name: a, image: hidden.example.com/agent}]}\n"
		head           = "metadata: {name: p}\nspec: {layer: Cluster, clusterName: c1, documents: ["
		at             = "Cluster layer: TalosConfigPatch p spec.documents[0]: "
	)

	for name, tc := range map[string]struct {
		document, kind, value string
		hidden                string // what no output may show; empty when nothing is a secret
		want                  string // the error, or a part of the config
		fails                 bool
	}{
		"manifest of a Secret": {
			document: "{kind: KubeInlineManifestConfig, kubeInlineManifestConfig: {name: m, manifestFrom: {secretKeyRef: {name: o, key: k}}}}",
			kind:     machineconfig.KindSecret, value: secretManifest, hidden: "correct-horse", want: "correct-horse-battery-staple",
		},
		"manifest of a Secret in a ConfigMap": {
			document: "{kind: KubeInlineManifestConfig, kubeInlineManifestConfig: {name: m, manifestFrom: {configMapKeyRef: {name: o, key: k}}}}",
			kind:     machineconfig.KindConfigMap, value: secretManifest, hidden: "correct-horse", fails: true,
			want: at + "KubeInlineManifestConfig/m: /manifest: has a manifest of kind Secret with data",
		},
		"manifest that is none": {
			document: "{kind: KubeInlineManifestConfig, kubeInlineManifestConfig: {name: m, manifestFrom: {secretKeyRef: {name: o, key: k}}}}",
			kind:     machineconfig.KindSecret, value: "correct-horse: [", hidden: "correct-horse", fails: true,
			want: at + "KubeInlineManifestConfig/m: /manifest: is not YAML",
		},
		"login to a server of manifests": {
			document: "{kind: KubeExternalManifestConfig, kubeExternalManifestConfig: {name: m, url: 'https://example.com/m.yaml', headersFrom: {Authorization: {secretKeyRef: {name: o, key: k}}}}}",
			kind:     machineconfig.KindSecret, value: "Bearer correct-horse", hidden: "correct-horse", want: "Authorization: Bearer correct-horse",
		},
		"variable of the API server": {
			document: "{kind: KubeAPIServerConfig, kubeAPIServerConfig: {envFrom: {API_TOKEN: {secretKeyRef: {name: o, key: k}}}}}",
			kind:     machineconfig.KindSecret, value: "correct-horse", hidden: "correct-horse", want: "API_TOKEN: correct-horse",
		},
		"file": {
			document: "{kind: Config, config: {machine: {files: [{path: /var/a, op: create, permissions: 384, contentFrom: {configMapKeyRef: {name: o, key: k}}}]}}}",
			kind:     machineconfig.KindConfigMap, value: "just a text\n", want: "just a text",
		},
		"pod": {
			document: "{kind: KubeStaticPodConfig, kubeStaticPodConfig: {name: a, podFrom: {secretKeyRef: {name: o, key: k}}}}",
			kind:     machineconfig.KindSecret, value: pod, hidden: "hidden.example.com", want: "image: hidden.example.com/agent",
		},
		"pod in a ConfigMap": {
			document: "{kind: KubeStaticPodConfig, kubeStaticPodConfig: {name: a, podFrom: {configMapKeyRef: {name: o, key: k}}}}",
			kind:     machineconfig.KindConfigMap, value: pod, want: "image: hidden.example.com/agent",
		},
		"no ConfigMap": {
			document: "{kind: KubeStaticPodConfig, kubeStaticPodConfig: {name: a, podFrom: {configMapKeyRef: {name: x, key: k}}}}",
			kind:     machineconfig.KindConfigMap, value: pod, fails: true,
			want: at + `KubeStaticPodConfig: /podFrom: ConfigMap "x" does not exist in the namespace: create it`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			in := input(t, "v1.14", true)
			in.Provenance = true
			in.Patches = append(in.Patches, patch(t, head+tc.document+"]}"))
			in.References = machineconfig.NewReferences(objectOf(tc.kind, "o", "k", tc.value))

			config, err := machineconfig.Render(in)

			if tc.fails {
				if err == nil || !strings.HasPrefix(err.Error(), tc.want) || tc.hidden != "" && strings.Contains(err.Error(), tc.hidden) {
					t.Errorf("got %v, want %q", err, tc.want)
				}

				return
			}

			if err != nil {
				t.Fatal(err)
			}

			if !strings.Contains(string(config.Bytes), tc.want) {
				t.Errorf("want %q in the config", tc.want)
			}

			masked, err := config.Masked()
			if err != nil {
				t.Fatal(err)
			}

			text := fmt.Sprintf("%s %+v %v", masked, config.Provenance, config.Warnings)
			if tc.hidden != "" && strings.Contains(text, tc.hidden) {
				t.Error("the value is shown")
			}

			if len(config.Warnings) > 0 {
				t.Errorf("warns: %v", config.Warnings)
			}
		})
	}
}
