// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"go.yaml.in/yaml/v4"
)

// redacted are the places that Talos redacts. The test finds them by running Redact; the list is here to be read, and to
// notice what a newer machinery adds.
var redacted = map[string][]string{
	LegacyKind: {
		"cluster/aescbcEncryptionSecret",
		"cluster/aggregatorCA/key",
		"cluster/ca/key",
		"cluster/etcd/ca/key",
		"cluster/secret",
		"cluster/secretboxEncryptionSecret",
		"cluster/serviceAccount/key",
		"cluster/token",
		"machine/ca/key",
		"machine/network/interfaces/*/vip/equinixMetal/apiToken",
		"machine/network/interfaces/*/vip/hcloud/apiToken",
		"machine/network/interfaces/*/vlans/*/vip/equinixMetal/apiToken",
		"machine/network/interfaces/*/vlans/*/vip/hcloud/apiToken",
		"machine/network/interfaces/*/wireguard/privateKey",
		"machine/registries/config/*/auth/auth",
		"machine/registries/config/*/auth/identityToken",
		"machine/registries/config/*/auth/password",
		"machine/registries/config/*/tls/clientIdentity/key",
		"machine/systemDiskEncryption/ephemeral/keys/*/static/passphrase",
		"machine/systemDiskEncryption/state/keys/*/static/passphrase",
		"machine/token",
	},
	"DiscoveryIdentityConfig":  {"clusterSecret"},
	"HCloudVIPConfig":          {"apiToken"},
	"KubeAPIServerCAConfig":    {"issuingCA/key"},
	"KubeAggregatorCAConfig":   {"issuingCA/key"},
	"KubeServiceAccountConfig": {"issuer/privateKey"},
	"RawVolumeConfig":          {"encryption/keys/*/static/passphrase"},
	"RegistryAuthConfig":       {"auth", "identityToken", "password"},
	"RegistryTLSConfig":        {"clientIdentity/key"},
	"SideroLinkConfig":         {"apiUrl", "uniqueToken"},
	"SwapVolumeConfig":         {"encryption/keys/*/static/passphrase"},
	"UserVolumeConfig":         {"encryption/keys/*/static/passphrase"},
	"VolumeConfig":             {"encryption/keys/*/static/passphrase"},
	"WireguardConfig":          {"peers/*/presharedKey", "privateKey"},
}

func (n *secretNode) list(path string, out *[]string) {
	if n == nil {
		return
	}

	if n.secret {
		*out = append(*out, path)
	}

	for _, name := range slices.Sorted(maps.Keys(n.names)) {
		n.names[name].list(strings.TrimPrefix(path+"/"+name, "/"), out)
	}

	n.any.list(path+"/*", out)
}

func TestSecretsAreThoseOfTalos(t *testing.T) {
	got := map[string][]string{}

	eachKind(t, func(t *testing.T, kind string, empty config.Document) {
		n := &secretNode{}
		if !n.addRedacted(reflect.TypeOf(empty)) {
			t.Fatal("the secrets cannot be found out")
		}

		var places []string

		n.list("", &places)

		if len(places) > 0 {
			got[kind] = places
		}
	})

	if diff := cmp.Diff(redacted, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestContentSecretsExist: each further place is a field, and is treated as secret.
func TestContentSecretsExist(t *testing.T) {
	kinds := allKinds(t)

	for kind, patterns := range contentSecrets {
		empty, ok := kinds[kind]
		if !ok {
			t.Errorf("kind %s does not exist", kind)

			continue
		}

		p, err := planFor(reflect.TypeOf(empty).Elem())
		if err != nil {
			t.Fatal(err)
		}

		for _, pattern := range patterns {
			tokens, err := splitPointer(pattern)
			if err != nil {
				t.Fatal(err)
			}

			if err := checkTokens(p, tokens); err != nil {
				t.Errorf("%s %s: %v", kind, pattern, err)
			}
		}
	}
}

const secretText = "hunter2-do-not-show"

// TestNoFormShowsASecret fills every secret place of every kind, and looks for the value in all that can be printed.
func TestNoFormShowsASecret(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string, empty config.Document) {
		doc := full(t, empty, 0)

		if etcd, ok := doc.(*k8s.KubeEtcdEncryptionConfigV1Alpha1); ok {
			etcd.Config.Object = etcdEncryption(t)
		}

		secretDoc, ok := doc.(config.SecretDocument)
		if !ok {
			return
		}

		secretDoc.Redact(secretText)

		c := configOf(t, doc)

		built, err := Build(doc)
		if err != nil {
			t.Fatal(err)
		}

		var changes []Change

		mustApply(t, c, built, func(change Change) { changes = append(changes, change) })

		encoded, err := c.Encode()
		if err != nil {
			t.Fatal(err)
		}

		masked, err := c.EncodeMasked()
		if err != nil {
			t.Fatal(err)
		}

		var printed strings.Builder

		for _, leaf := range c.Leaves() {
			asJSON, err := json.Marshal(leaf)
			if err != nil {
				t.Fatal(err)
			}

			asYAML, err := yaml.Marshal(leaf)
			if err != nil {
				t.Fatal(err)
			}

			fmt.Fprintf(&printed, "%v %+v %#v %s %q %x %d %s %s\n", leaf, leaf, leaf, leaf.Value, leaf.Value, leaf.Value, leaf.Value, asJSON, asYAML)
		}

		for _, change := range changes {
			fmt.Fprintf(&printed, "%v %+v %#v %v %v\n", change, change, change, change.Old, change.New)
		}

		for what, text := range map[string]string{"masked config": string(masked), "printed leaf or change": printed.String()} {
			if strings.Contains(text, secretText) || strings.Contains(text, fmt.Sprintf("%x", secretText)) {
				t.Errorf("a %s shows a secret:\n%s", what, text)
			}
		}

		// The test would prove nothing if the value were not there. Some kinds keep it as base64.
		if !strings.Contains(string(masked), Mask) {
			t.Errorf("nothing is masked in\n%s", encoded)
		}
	})
}

func etcdEncryption(t *testing.T) map[string]any {
	t.Helper()

	object, ok := decode(t, `
resources:
  - resources: [secrets]
    providers:
      - secretbox: {keys: [{name: key2, secret: abc}]}
      - aescbc: {keys: [{name: key1, secret: def}]}
      - identity: {}
`).(map[string]any)
	if !ok {
		t.Fatal("not a map")
	}

	return object
}

// TestMaskedKeepsTheRest: masking changes secret values alone.
func TestMaskedKeepsTheRest(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string, empty config.Document) {
		c := configOf(t, seeded(t, 3, true).document(empty))

		encoded, err := c.Encode()
		if err != nil {
			t.Fatal(err)
		}

		masked, err := c.EncodeMasked()
		if err != nil {
			t.Fatal(err)
		}

		secrets := map[string]bool{}
		for _, leaf := range c.Leaves() {
			secrets[leaf.Pointer] = leaf.Value.Secret()
		}

		want, got := map[string]any{}, map[string]any{}
		plainLeaves(decode(t, string(encoded)), "", secrets, want)
		plainLeaves(decode(t, string(masked)), "", secrets, got)

		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-encoded +masked)\n%s", diff)
		}
	})
}

func plainLeaves(value any, pointer string, secrets map[string]bool, out map[string]any) {
	switch value := value.(type) {
	case map[string]any:
		for key, v := range value {
			plainLeaves(v, pointer+"/"+escapeToken(key), secrets, out)
		}
	case []any:
		for i, v := range value {
			plainLeaves(v, pointer+"/"+itoa(i), secrets, out)
		}
	default:
		if secrets[pointer] {
			value = Mask
		}

		out[pointer] = value
	}
}

func TestUserInfoIsSecret(t *testing.T) {
	tests := map[string]bool{
		"https://user:pass@host/x":                  true,
		"https://user@host":                         true,
		"https://host/a@b":                          false,
		"https://host:8443/a@b":                     false,
		"https://host:/a@b":                         false,
		"https://[fd00::1]/a@b":                     false,
		"https://host":                              false,
		"see https://u:p@h and more":                true,
		"https://a and https://u:p@h":               true,
		"https://a and mail to a@b":                 false,
		"https://u:p/w@host":                        true,
		"https://u:p?w@host":                        true,
		"https://u:p#w@host":                        true,
		`{"url":"https://h","mail":"a@b"}`:          false,
		"u:S3CRET@m.example":                        true,
		"u:S3CRET@m.example:8080":                   true,
		"u:S3/CRET@m.example":                       true,
		"user@host":                                 false,
		"mailto:a@b":                                false,
		"host:8080":                                 false,
		"host:5000/name@tag":                        false,
		"name: u, mail: a@b":                        false,
		`{"a":"b@c"}`:                               false,
		"img:v1@sha256:" + strings.Repeat("0a", 32): false,
		"": false,
	}

	for text, want := range tests {
		if got := HasUserInfo(text); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

// TestUserInfoOfAnEndpointIsMasked: fields that are no URLs for Talos take user info too.
func TestUserInfoOfAnEndpointIsMasked(t *testing.T) {
	c := configFrom(t, doc("EventSinkConfig", "", "endpoint: 'u:"+secretText+"@m.example:9000'"))

	masked, err := c.EncodeMasked()
	if err != nil {
		t.Fatal(err)
	}

	if text := string(masked); strings.Contains(text, secretText) || !strings.Contains(text, Mask) {
		t.Errorf("shown:\n%s", text)
	}
}

// TestNamesThatOnlySoundSecret: a switch, and what sort of object stands below such a name, are shown.
func TestNamesThatOnlySoundSecret(t *testing.T) {
	t.Parallel()

	patch, err := Load([]byte("{apiVersion: v1alpha1, kind: KubeletConfig, config: {featureGates: {TokenRequestAudience: true}, " +
		"tokenSource: {kind: Secret, apiVersion: v1, value: hunter2}, secretWord: hunter2}}"))
	if err != nil {
		t.Fatal(err)
	}

	got := map[string]bool{}
	for _, leaf := range LeavesOf(patch.Documents()[0].Document) {
		if strings.HasPrefix(leaf.Pointer, "/config/") {
			got[leaf.Pointer] = leaf.Value.Secret()
		}
	}

	want := map[string]bool{
		"/config/featureGates/TokenRequestAudience": false,
		"/config/tokenSource/kind":                  false,
		"/config/tokenSource/apiVersion":            false,
		"/config/tokenSource/value":                 true,
		"/config/secretWord":                        true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
