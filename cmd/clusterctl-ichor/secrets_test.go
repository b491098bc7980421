// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"go.yaml.in/yaml/v4"
	corev1 "k8s.io/api/core/v1"
	sigsyaml "sigs.k8s.io/yaml"
)

func decodeJSON(text string, into any) error {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()

	return decoder.Decode(into)
}

// public are the parts of a secrets bundle that are no secrets.
var public = []string{"crt", "id"}

// secretValues collects every secret of the fixture cluster, in every form in which it could be printed.
func secretValues(t *testing.T) []string {
	t.Helper()
	g := NewWithT(t)

	data, err := os.ReadFile(clusterFiles + "/secrets.yaml")
	g.Expect(err).NotTo(HaveOccurred())

	var values []string

	for document := range strings.SplitSeq(string(data), "\n---\n") {
		var secret corev1.Secret
		g.Expect(sigsyaml.Unmarshal([]byte(document), &secret)).To(Succeed())

		for key, value := range secret.Data {
			secret.StringData = map[string]string{key: string(value)}
		}

		for key, value := range secret.StringData {
			switch key {
			case "bundle":
				var bundle map[string]any
				g.Expect(yaml.Unmarshal([]byte(value), &bundle)).To(Succeed())
				values = append(values, leaves("", bundle)...)
			case corev1.TLSCertKey:
			default:
				values = append(values, value)
			}
		}
	}

	var forms []string

	for _, value := range values {
		forms = append(forms, value, base64.StdEncoding.EncodeToString([]byte(value)))

		// A key may be printed in its PEM form, or with its lines apart.
		plain := value
		if decoded, err := base64.StdEncoding.DecodeString(value); err == nil {
			plain = string(decoded)
		}

		for line := range strings.Lines(plain) {
			if line = strings.TrimSpace(line); strings.Contains(plain, "PRIVATE KEY") && !strings.HasPrefix(line, "-----") {
				forms = append(forms, line)
			}
		}
	}

	return forms
}

func leaves(key string, value any) []string {
	switch value := value.(type) {
	case map[string]any:
		var all []string
		for name, below := range value {
			all = append(all, leaves(name, below)...)
		}

		return all
	case string:
		if slices.Contains(public, key) {
			return nil
		}

		return []string{value}
	default:
		return nil
	}
}

func TestNoSecretIsShown(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)

	secrets := secretValues(t)
	g.Expect(len(secrets)).To(BeNumerically(">", 25), "the fixture has less secrets than it should")

	// Everything that works with the cluster, in every format, with -v, and what it says of mistakes near a secret.
	calls := map[string][]string{}
	for name, args := range commands {
		if args[0] == "patch" {
			continue
		}

		calls[name] = args
	}

	for _, format := range []string{"text", "yaml", "json"} {
		calls["render all "+format] = []string{"render", "-f", clusterFiles, "-v", "-o", format}
		calls["validate all "+format] = []string{"validate", "-f", clusterFiles, "-f", "testdata/broken.yaml", "-v", "-o", format}

		for _, machine := range []string{"cp-1", "w-1", "gpu"} {
			calls["explain "+machine+" "+format] = []string{"explain", "-f", clusterFiles, "--machine", machine, "-v", "-o", format}
		}
	}

	for name, args := range calls {
		got := run("", args...)
		for _, secret := range secrets {
			g.Expect(strings.Contains(got.out+got.errOut, secret)).To(BeFalse(), "%s shows a secret that begins with %.4q", name, secret)
		}
	}
}

// TestSecretsAreShownWhenAsked proves that the search above could find something.
func TestSecretsAreShownWhenAsked(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)

	rendered := run("", "render", "-f", clusterFiles, "--show-secrets")
	g.Expect(rendered.code).To(BeZero())
	g.Expect(rendered.out).To(And(
		ContainSubstring("correct-horse-battery-staple"), ContainSubstring("ghp-token-of-nobody-0123456789"), ContainSubstring("BEGIN PRIVATE KEY"),
	))
	g.Expect(rendered.out).NotTo(ContainSubstring("********"))

	explained := run("", "explain", "-f", clusterFiles, "--machine", "w-1", "RegistryAuthConfig", "--show-secrets")
	g.Expect(explained.out).To(ContainSubstring("correct-horse-battery-staple"))
}

// TestSecretsInBrokenInput looks at what is said of files that are broken in or beside a secret.
func TestSecretsInBrokenInput(t *testing.T) {
	t.Parallel()

	const secret = "hunter2-hunter2"

	for name, document := range map[string]string{
		"a Secret without base64":       "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {password: " + secret + "}\n",
		"a Secret with a list":          "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {password: [" + secret + "]}\n",
		"a Secret with a tab":           "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData:\n\tpassword: " + secret + "\n",
		"a Secret with a broken string": "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {password: \"" + secret + "}\n",
		"a Secret with a key twice":     "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData:\n  password: " + secret + "\n  password: " + secret + "x\n",
		"a password in a URL":           clusterConfig("registries: [{host: ghcr.io, endpoints: [{url: 'https://u:" + secret + "@mirror'}]}]"),
		"a password in the wrong place": clusterConfig("registries: [{host: ghcr.io, password: " + secret + "}]"),
		"a token in a patch":            patch("documents: [{kind: Config, config: {machine: {token: " + secret + "}}}]"),
		"a key in a patch":              patch("documents: [{kind: Config, config: {cluster: {ca: {key: " + secret + "}}}}]"),
		"a bundle that is none":         "apiVersion: v1\nkind: Secret\nmetadata: {name: edge-talos}\nstringData: {bundle: 'certs: {os: {key: " + secret + "}}'}\n",
		"a bundle with a wrong field":   "apiVersion: v1\nkind: Secret\nmetadata: {name: edge-talos}\nstringData: {bundle: 'certz: {" + secret + ": {key: " + secret + "}}'}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)

			for _, command := range []string{"render", "validate"} {
				got := run(document+"---\n"+plainCluster, command, "-f", "-", "-v")
				g.Expect(got.code).NotTo(BeZero())
				g.Expect(got.out + got.errOut).NotTo(ContainSubstring("hunter2"))
			}
		})
	}
}

// TestEveryLeafIsExplained compares explain with the config that render shows.
func TestEveryLeafIsExplained(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)

	for _, machine := range []string{"cp-1", "w-1", "gpu"} {
		var explained struct {
			Values []struct {
				Document, Path string
				SetBy          struct{ Layer, Kind, Name string }
			}
		}

		g.Expect(json.Unmarshal([]byte(run("", "explain", "-f", clusterFiles, "--machine", machine, "-o", "json").out), &explained)).To(Succeed())

		got := map[string]bool{}

		for _, value := range explained.Values {
			g.Expect(value.SetBy.Layer).NotTo(BeEmpty())
			g.Expect(value.SetBy.Kind).NotTo(BeEmpty())
			g.Expect(value.SetBy.Name).NotTo(BeEmpty())

			got[value.Document+":"+value.Path] = true
		}

		want := map[string]bool{}

		decoder := yaml.NewDecoder(strings.NewReader(run("", "render", "-f", clusterFiles, "--machine", machine).out))

		for {
			var document map[string]any
			if decoder.Decode(&document) != nil {
				break
			}

			id := "Config"
			if kind, ok := document["kind"].(string); ok {
				id = kind
			}

			if name, ok := document["name"].(string); ok {
				id += "/" + name
			}

			for _, pointer := range pointers("", document) {
				want[id+":"+pointer] = true
			}
		}

		g.Expect(slices.Sorted(maps.Keys(got))).To(Equal(slices.Sorted(maps.Keys(want))), machine)
	}
}

// pointers lists the JSON Pointers of all leaves.
func pointers(at string, value any) []string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")

	var all []string

	switch value := value.(type) {
	case map[string]any:
		for key, below := range value {
			all = append(all, pointers(at+"/"+escape.Replace(key), below)...)
		}
	case []any:
		for i, below := range value {
			all = append(all, pointers(at+"/"+string(rune('0'+i)), below)...)
		}
	}

	if len(all) == 0 {
		return []string{at}
	}

	return all
}

// TestReferencesInFiles has a patch whose key is in a Secret of the files, and then in none.
func TestReferencesInFiles(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)

	const (
		key    = "yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk="
		secret = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: wg}\nstringData: {private: '" + key + "'}\n"
	)

	files := plainCluster + "---\n" + patch("documents: [{kind: WireguardConfig, wireguardConfig: {name: wg0, privateKeySecretRef: {name: wg, key: private}}}]")

	for _, args := range [][]string{{"render"}, {"render", "-o", "json"}, {"explain", "--machine", "w-1"}, {"explain", "--machine", "w-1", "-o", "yaml"}, {"validate"}} {
		got := run(files+secret, append(args, "-f", "-", "-v")...)
		g.Expect(got.code).To(BeZero(), got.errOut)
		g.Expect(got.out + got.errOut).NotTo(ContainSubstring(key))
	}

	g.Expect(run(files+secret, "render", "-f", "-", "--show-secrets").out).To(ContainSubstring("privateKey: " + key))

	rendered := run(files, "render", "-f", "-")
	g.Expect(rendered.code).NotTo(BeZero())
	g.Expect(rendered.errOut).To(And(ContainSubstring("spec.documents[0]"), ContainSubstring("WireguardConfig"), ContainSubstring(`secret "wg" does not exist`)))

	validated := run(files, "validate", "-f", "-")
	g.Expect(validated.code).To(BeZero(), validated.out)
	g.Expect(validated.out).To(ContainSubstring(`spec.documents[0]: refers to Secret "wg", which is not among the files: the document is not checked`))

	other := run(files+strings.Replace(secret, "private", "public", 1), "validate", "-f", "-")
	g.Expect(other.code).NotTo(BeZero())
	g.Expect(other.out).To(ContainSubstring(`secret "wg" has no key "private"`))
}
