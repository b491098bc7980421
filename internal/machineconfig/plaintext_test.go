// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/maesh-dev/ichor/internal/machineconfig"
)

const plainValue = "hunter2-do-not-show"

func documentPatch(t *testing.T, document string) *machineconfig.Patch {
	t.Helper()

	return patch(t, "metadata: {name: p}\nspec: {layer: Cluster, clusterName: c1, documents: ["+document+"]}")
}

// inlineManifest writes the manifest, which must not have a single quote, as the legacy document has it.
func inlineManifest(manifest string) string {
	return fmt.Sprintf("{kind: Config, config: {cluster: {inlineManifests: [{name: m, contents: %q}]}}}", manifest)
}

func legacyFile(content string) string {
	return fmt.Sprintf("{kind: Config, config: {machine: {files: [{path: /var/x, op: create, permissions: 420, content: %q}]}}}", content)
}

// TestSecretsInPlainFields writes secrets where Talos does not expect them. Each is refused with document and field, and not shown.
func TestSecretsInPlainFields(t *testing.T) {
	t.Parallel()

	const volume = "{kind: UserVolumeConfig, userVolumeConfig: {name: d, provisioning: {diskSelector: {match: system_disk}, maxSize: 1GiB}, " +
		"encryption: {provider: luks2, keys: [{slot: 0, kms: {endpoint: '%s'}}]}}}"

	tests := map[string]struct {
		document string
		want     string // document and field, empty for none
	}{
		"manifest of a Secret": {
			inlineManifest("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {a: " + plainValue + "}\n"),
			"Config | /cluster/inlineManifests/0/contents",
		},
		"Secret with text, second of the manifests": {
			inlineManifest("kind: ConfigMap\ndata: {a: b}\n---\nkind: Secret\nstringData: {a: " + plainValue + "}\n"),
			"Config | /cluster/inlineManifests/0/contents",
		},
		"Secret in a list, in JSON": {
			inlineManifest(`{"kind":"List","items":[{"kind":"Secret","data":{"a":"` + plainValue + `"}}]}`),
			"Config | /cluster/inlineManifests/0/contents",
		},
		"Secret without data": {inlineManifest("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {}\n"), ""},
		"another kind":        {inlineManifest("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Secret}\ndata: {kind: Secret}\n"), ""},
		"no manifest at all":  {legacyFile("kind: Secret: ["), ""},
		"Secret in a file":    {legacyFile("kind: Secret\ndata: {a: " + plainValue + "}\n"), "Config | /machine/files/0/content"},
		"header of a login": {
			"{kind: Config, config: {cluster: {extraManifestHeaders: {authorization: 'Bearer " + plainValue + "'}}}}",
			"Config | /cluster/extraManifestHeaders/authorization",
		},
		"another header": {"{kind: Config, config: {cluster: {extraManifestHeaders: {X-Site: lab}}}}", ""},
		"legacy mirror": {
			"{kind: Config, config: {machine: {registries: {mirrors: {docker.io: {endpoints: ['https://u:" + plainValue + "@m.example.com']}}}}}}",
			"Config | /machine/registries/mirrors/docker.io/endpoints/0",
		},
		"mirror": {
			"{kind: RegistryMirrorConfig, registryMirrorConfig: {name: docker.io, endpoints: [{url: 'https://" + plainValue + "@m.example.com'}]}}",
			"RegistryMirrorConfig/docker.io | /endpoints/0/url",
		},
		"address of a manifest": {
			"{kind: Config, config: {cluster: {extraManifests: ['https://" + plainValue + "@raw.example.com/m.yaml']}}}",
			"Config | /cluster/extraManifests/0",
		},
		"key server": {fmt.Sprintf(volume, "https://u:"+plainValue+"@kms.example.com"), "UserVolumeConfig/d | /encryption/keys/0/kms/endpoint"},
		"event sink": {
			"{kind: EventSinkConfig, eventSinkConfig: {endpoint: 'u:" + plainValue + "@m.example.com:9000'}}",
			"EventSinkConfig | /endpoint",
		},
		"kernel log": {
			"{kind: KmsgLogConfig, kmsgLogConfig: {name: a, url: 'udp://u:" + plainValue + "@m.example.com:9000'}}", "KmsgLogConfig/a | /url",
		},
		"probe": {
			"{kind: HTTPProbeConfig, httpProbeConfig: {name: a, url: 'https://u:" + plainValue + "@m.example.com'}}", "HTTPProbeConfig/a | /url",
		},
		"token of a manifest": {
			"{kind: Config, config: {cluster: {extraManifests: ['https://raw.example.com/m.yaml?ref=v1&private_token=" + plainValue + "']}}}",
			"Config | /cluster/extraManifests/0",
		},
		"token of a mirror": {
			"{kind: RegistryMirrorConfig, registryMirrorConfig: {name: docker.io, endpoints: [{url: 'https://m.example.com/v2?accessToken=" + plainValue + "'}]}}",
			"RegistryMirrorConfig/docker.io | /endpoints/0/url",
		},
		"token of a key server":       {fmt.Sprintf(volume, "https://kms.example.com?token="+plainValue), "UserVolumeConfig/d | /encryption/keys/0/kms/endpoint"},
		"key server without a scheme": {fmt.Sprintf(volume, "kms.example.com:4050?token="+plainValue), "UserVolumeConfig/d | /encryption/keys/0/kms/endpoint"},
		"token of the kernel log": {
			"{kind: KmsgLogConfig, kmsgLogConfig: {name: a, url: 'tcp://m.example.com:9000/?key=" + plainValue + "'}}", "KmsgLogConfig/a | /url",
		},
		"token of legacy logging": {
			"{kind: Config, config: {machine: {logging: {destinations: [{endpoint: 'tcp://m.example.com:9000/?apikey=" + plainValue + "', format: json_lines}]}}}}",
			"Config | /machine/logging/destinations/0/endpoint",
		},
		"token of a probe": {
			"{kind: HTTPProbeConfig, httpProbeConfig: {name: a, url: 'https://m.example.com/live?token=" + plainValue + "'}}", "HTTPProbeConfig/a | /url",
		},
		"token of the discovery": {
			"{kind: Config, config: {cluster: {discovery: {registries: {service: {endpoint: 'https://d.example.com/?secret=" + plainValue + "'}}}}}}",
			"Config | /cluster/discovery/registries/service/endpoint",
		},
		"token in an argument of the kernel": {
			"{kind: Config, config: {machine: {install: {extraKernelArgs: ['siderolink.api=grpc://s.example.com?jointoken=" + plainValue + "']}}}}",
			"Config | /machine/install/extraKernelArgs/0",
		},
		"token inside a file":      {legacyFile("curl 'https://host/x?sig=" + plainValue + "'\n"), "Config | /machine/files/0/content"},
		"token that is filled in":  {legacyFile("curl https://host/x?token=$TOKEN \"https://host/y?token=\"\n"), ""},
		"query without credential": {"{kind: Config, config: {cluster: {extraManifests: ['https://raw.example.com/m.yaml?ref=v1&keyboard=de']}}}", ""},
		"proxy": {
			"{kind: Config, config: {machine: {env: {https_proxy: 'http://u:" + plainValue + "@proxy:3128'}}}}",
			"Config | /machine/env/https_proxy",
		},
		"URL inside a file":                  {legacyFile("server = https://u:" + plainValue + "@host/x\n"), "Config | /machine/files/0/content"},
		"logins that are filled in":          {legacyFile("a=postgres://$(USER):$(PASSWORD)@db/x b=https://u:${PASSWORD}@h c=https://<user>:<password>@h d=https://u:***@h\n"), ""},
		"login beside one that is filled in": {legacyFile("a=https://u:$PASSWORD@h b=https://u:" + plainValue + "@h\n"), "Config | /machine/files/0/content"},
		"variable that is filled in":         {"{kind: Config, config: {machine: {env: {https_proxy: 'http://u:$(PASSWORD)@proxy:3128'}}}}", ""},
		"Secret by its last kind": {
			inlineManifest("apiVersion: v1\nkind: ConfigMap\nkind: Secret\nmetadata: {name: a}\nstringData: {a: " + plainValue + "}\nstringData: {}\n"),
			"Config | /cluster/inlineManifests/0/contents",
		},
		"user inside a file":      {legacyFile("git clone ssh://git@host/x and https://a/b@c\n"), ""},
		"image with a digest":     {"{kind: Config, config: {machine: {kubelet: {image: 'reg.example.com:5000/k:v1@sha256:" + strings.Repeat("0a", 32) + "'}}}}", ""},
		"plain addresses":         {fmt.Sprintf(volume, "https://kms.example.com:4050/a@b"), ""},
		"at in a label":           {"{kind: KubeNodeConfig, kubeNodeConfig: {annotations: {example.com/owner: 'mailto:a@b.example.com'}}}", ""},
		"variable named a secret": {"{kind: Config, config: {machine: {env: {API_TOKEN: " + plainValue + "}}}}", ""},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			err := documentPatch(t, tc.document).Err()

			var got []string
			for _, fault := range machineconfig.Errors(err) {
				got = append(got, fault.Document+" | "+fault.Field)

				if want := "Cluster layer: TalosConfigPatch p spec.documents[0]"; fault.Source.String() != want {
					t.Errorf("source is %q, want %q", fault.Source, want)
				}
			}

			if diff := cmp.Diff(tc.want, strings.Join(got, "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s\n%v", diff, err)
			}

			if err != nil && strings.Contains(err.Error(), plainValue) {
				t.Errorf("the error shows the value: %v", err)
			}
		})
	}
}

// TestSecretsInPlainFieldsFailTheRender: the same fault, for the machine that the patch is for. What the system layer brings for
// registries has credentials by right.
func TestSecretsInPlainFieldsFailTheRender(t *testing.T) {
	t.Parallel()

	in := input(t, "v1.14", false)
	withRegistries(t, &in)

	if _, err := machineconfig.Render(in); err != nil {
		t.Fatalf("without the patch: %v", err)
	}

	in.Patches = append(in.Patches, documentPatch(t, "{kind: EventSinkConfig, eventSinkConfig: {endpoint: 'u:"+plainValue+"@m.example.com:9000'}}"))

	_, err := machineconfig.Render(in)

	want := "Cluster layer: TalosConfigPatch p spec.documents[0]: EventSinkConfig: /endpoint: has a user or password in a URL, which would " +
		"stand in the patch for all to read: remove it; for registries use TalosClusterConfig.spec.registries[].authSecretRef"
	if diff := cmp.Diff(want, fmt.Sprint(err)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestVariablesNamedSecret: a warning, which names the variable and not its value.
func TestVariablesNamedSecret(t *testing.T) {
	t.Parallel()

	in := input(t, "v1.13", false)
	in.Patches = append(in.Patches, documentPatch(t,
		"{kind: Config, config: {machine: {env: {API_TOKEN: "+plainValue+", KEYBOARD: de, TOKENS: a, http_proxy: 'http://p:1'}}}}"))

	config, err := machineconfig.Render(in)
	if err != nil {
		t.Fatal(err)
	}

	want := []string{
		"Cluster layer: TalosConfigPatch p spec.documents[0]: Config: /machine/env/API_TOKEN: the name of the variable API_TOKEN says that it holds a secret, which can be read in the patch " +
			"and on the machine: keep the value in a Secret and refer to its key (envFrom, environmentFrom, variablesFrom: secretKeyRef)",
	}
	if diff := cmp.Diff(want, config.Warnings); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
