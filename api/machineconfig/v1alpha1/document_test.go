// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
)

// decode reads a document in the form that users write.
func decode(t *testing.T, source string) *machineconfigv1alpha1.Document {
	t.Helper()

	doc := &machineconfigv1alpha1.Document{}
	if err := json.Unmarshal([]byte(source), doc); err != nil {
		t.Fatalf("test document: %v", err)
	}

	return doc
}

func asTree(t *testing.T, source string) any {
	t.Helper()

	var tree any

	if err := json.Unmarshal([]byte(source), &tree); err != nil {
		t.Fatal(err)
	}

	return tree
}

func TestTalosJSON(t *testing.T) {
	for name, tc := range map[string]struct{ document, want string }{
		"kind and version are added": {
			`{"kind":"HostnameConfig","hostnameConfig":{"auto":"off"}}`,
			`{"apiVersion":"v1alpha1","auto":"off","kind":"HostnameConfig"}`,
		},
		"the legacy document has a version and no kind": {
			`{"kind":"Config","config":{"debug":true}}`,
			`{"debug":true,"version":"v1alpha1"}`,
		},
		"a zero that was written is kept": {
			`{"kind":"KubePrismConfig","kubePrismConfig":{"port":0,"tlsServerName":""}}`,
			`{"apiVersion":"v1alpha1","kind":"KubePrismConfig","port":0,"tlsServerName":""}`,
		},
		"false is kept": {
			`{"kind":"UserVolumeConfig","userVolumeConfig":{"name":"a","provisioning":{"grow":false}}}`,
			`{"apiVersion":"v1alpha1","kind":"UserVolumeConfig","name":"a","provisioning":{"grow":false}}`,
		},
		"an empty object is kept": {
			`{"kind":"UserVolumeConfig","userVolumeConfig":{"name":"a","encryption":{"keys":[{"slot":0,"tpm":{}}]}}}`,
			`{"apiVersion":"v1alpha1","encryption":{"keys":[{"slot":0,"tpm":{}}]},"kind":"UserVolumeConfig","name":"a"}`,
		},
		"an empty list and an empty map are kept": {
			`{"kind":"KubeNodeConfig","kubeNodeConfig":{"labels":{},"nodeIP":{"validSubnets":[]}}}`,
			`{"apiVersion":"v1alpha1","kind":"KubeNodeConfig","labels":{},"nodeIP":{"validSubnets":[]}}`,
		},
		"nothing is added to an empty document": {
			`{"kind":"OOMConfig","oomConfig":{}}`,
			`{"apiVersion":"v1alpha1","kind":"OOMConfig"}`,
		},
		"one argument becomes a scalar, several stay a list": {
			`{"kind":"Config","config":{"machine":{"kubelet":{"extraArgs":{"a":["1"],"b":["1","2"],"c":[]}}}}}`,
			`{"machine":{"kubelet":{"extraArgs":{"a":"1","b":["1","2"],"c":[]}}},"version":"v1alpha1"}`,
		},
		"a number or a string stays what it is": {
			`{"kind":"NetworkRuleConfig","networkRuleConfig":{"name":"a","portSelector":{"ports":[80,"1-2"]}}}`,
			`{"apiVersion":"v1alpha1","kind":"NetworkRuleConfig","name":"a","portSelector":{"ports":[80,"1-2"]}}`,
		},
		"bytes are base64": {
			`{"kind":"Config","config":{"machine":{"registries":{"config":{"a":{"tls":{"ca":"AQID"}}}}}}}`,
			`{"machine":{"registries":{"config":{"a":{"tls":{"ca":"AQID"}}}}},"version":"v1alpha1"}`,
		},
		"a quantity stays as it was written": {
			`{"kind":"Config","config":{"cluster":{"apiServer":{"resources":{"limits":{"cpu":2,"memory":"1024Mi"}}}}}}`,
			`{"cluster":{"apiServer":{"resources":{"limits":{"cpu":2,"memory":"1024Mi"}}}},"version":"v1alpha1"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			doc := decode(t, tc.document)

			written, err := json.Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(asTree(t, tc.document), asTree(t, string(written))); diff != "" {
				t.Errorf("what the API server gets (-want +got):\n%s", diff)
			}

			got, err := doc.TalosJSON(nil)
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("TalosJSON (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTalosJSONErrors(t *testing.T) {
	for name, tc := range map[string]struct{ document, want string }{
		"no kind":       {`{"hostnameConfig":{}}`, "kind is not set"},
		"unknown kind":  {`{"kind":"Hostname","hostnameConfig":{}}`, `kind "Hostname" is not known`},
		"no content":    {`{"kind":"HostnameConfig"}`, "HostnameConfig: the field hostnameConfig is not set"},
		"other content": {`{"kind":"HostnameConfig","oomConfig":{}}`, "HostnameConfig: sets oomConfig; want hostnameConfig alone"},
		"two contents": {
			`{"kind":"HostnameConfig","hostnameConfig":{},"oomConfig":{}}`,
			"HostnameConfig: sets hostnameConfig and oomConfig; want hostnameConfig alone",
		},
		"a refused value": {
			`{"kind":"Config","config":{"machine":{"token":"hunter2"}}}`,
			"Config: machine.token: cluster secret; it comes from the secrets bundle",
		},
		"a refused object in a map and a refused list": {
			`{"kind":"Config","config":{"machine":{"acceptedCAs":[{"crt":"hunter2"}],"registries":{"config":{"ghcr.io":{"auth":{"password":"hunter2"}}}}}}}`,
			"Config: machine.acceptedCAs: trust root; use TalosClusterConfig.spec.acceptedCAsSecretRef; " +
				"machine.registries.config[ghcr.io].auth.password: a credential; use passwordSecretRef, or TalosClusterConfig.spec.registries[].authSecretRef",
		},
		"a refused object in a list": {
			`{"kind":"VolumeConfig","volumeConfig":{"name":"STATE","encryption":{"keys":[{},{"static":{"passphrase":"hunter2"}}]}}}`,
			"VolumeConfig: encryption.keys[1].static: a passphrase must not stand in a document; use nodeID, kms or tpm",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decode(t, tc.document).TalosJSON(nil)
			if err == nil {
				t.Fatal("got no error")
			}

			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBodyAndName(t *testing.T) {
	doc := decode(t, `{"kind":"UserVolumeConfig","userVolumeConfig":{"name":"data"}}`)

	kind, body, ok := doc.Body()
	if kind != "UserVolumeConfig" || body != any(doc.UserVolumeConfig) || !ok {
		t.Errorf("Body() = %q, %v, %v; want the kind, the member and true", kind, body, ok)
	}

	if got := doc.Name(); got != "data" {
		t.Errorf("Name() = %q, want data", got)
	}

	doc.Kind = machineconfigv1alpha1.KindOOMConfig

	if kind, body, ok := doc.Body(); kind != "OOMConfig" || body != nil || ok {
		t.Errorf("Body() of the wrong kind = %q, %v, %v; want OOMConfig, nil, false", kind, body, ok)
	}

	if got := doc.Name(); got != "" {
		t.Errorf("Name() of the wrong kind = %q, want none", got)
	}
}

func TestRefusedKeepsNoValueAndStaysReadable(t *testing.T) {
	doc := decode(t, `{"kind":"Config","config":{"machine":{"token":"hunter2","ca":{"key":"hunter2"},"acceptedCAs":[{"crt":"hunter2"}]}}}`)

	got, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}

	// What is written back is refused by the API server, not silently dropped.
	want := `{"kind":"Config","config":{"machine":{"token":"","ca":{},"acceptedCAs":[{}]}}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}

	_, err = doc.TalosJSON(nil)

	refused, ok := errors.AsType[*machineconfigv1alpha1.RefusedError](err)
	if !ok {
		t.Fatalf("got %v, want a RefusedError", err)
	}

	var paths []string
	for _, f := range refused.Fields {
		paths = append(paths, f.Path)
	}

	if diff := cmp.Diff([]string{"machine.token", "machine.ca", "machine.acceptedCAs"}, paths); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
}
