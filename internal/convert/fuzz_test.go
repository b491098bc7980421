// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/maesh-dev/ichor/config/bootstrap/crd"
	"github.com/maesh-dev/ichor/internal/cli/admission"
	"github.com/maesh-dev/ichor/internal/convert"
	"github.com/maesh-dev/ichor/internal/yamlsyntax"
)

// planted is what stands in the place of secrets in the documents that fuzzing begins with.
const planted = "hunter2"

var rules = sync.OnceValues(func() (*admission.Rules, error) { return admission.Load(crd.Bases()) })

// FuzzConvert: whatever the documents are, nothing panics and no secret is shown; what is converted and admitted is the same once
// more when it is converted from Talos' form of it; and what is not admitted has a place in the input.
func FuzzConvert(f *testing.F) {
	for _, text := range faulty {
		f.Add(text)
	}

	for _, tc := range plainPatches {
		f.Add(tc.patch)
	}

	// Those that are wrong take long to begin with, and what is wrong is among the faulty ones.
	for _, file := range glob(f, "good") {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}

		f.Add(string(data))
	}

	f.Fuzz(func(t *testing.T, text string) {
		result, err := convert.Convert(documents(text), options())
		if err != nil {
			checkFaults(t, text, err)

			return
		}

		if onlySecret(text) && strings.Contains(string(encode(t, result.Patch)), planted) {
			t.Errorf("the patch shows a secret:\n%s", encode(t, result.Patch))
		}

		if admitted(t, result) {
			again, err := convert.Convert(documents(talosForm(t, result)), options())
			if err != nil {
				t.Fatalf("what was converted cannot be converted: %v\n%s", err, encode(t, result.Patch))
			}

			if diff := cmp.Diff(string(encode(t, []any{result.Patch, result.Secret})), string(encode(t, []any{again.Patch, again.Secret}))); diff != "" {
				t.Errorf("(-first +again):\n%s", diff)
			}
		}
	})
}

func glob(t testing.TB, sort string) []string {
	t.Helper()

	files, err := filepath.Glob(filepath.Join("testdata", "patches", sort, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}

	return files
}

func checkFaults(t *testing.T, text string, err error) {
	t.Helper()

	refused, ok := errors.AsType[*convert.Error](err)
	if !ok || len(refused.Faults) == 0 {
		t.Fatalf("got %v, want an Error with faults", err)
	}

	if onlySecret(text) && strings.Contains(err.Error(), planted) {
		t.Errorf("the error shows a secret: %v", err)
	}
}

// secretFields are those whose values no message may have.
var secretFields = []string{"privateKey", "presharedKey", "token", "secret", "passphrase", "apiToken", "password", "key"}

// onlySecret tells a text in which what was planted stands as the whole value of secret fields and nowhere else.
func onlySecret(text string) bool {
	var secret int

	for _, document := range documents(text) {
		var node yaml.Node
		if yaml.Unmarshal(document.Data, &node) != nil {
			return false
		}

		secret += countSecrets(&node)
	}

	return secret > 0 && secret == strings.Count(text, planted)
}

func countSecrets(node *yaml.Node) int {
	n := 0

	for i, item := range node.Content {
		if node.Kind == yaml.MappingNode && i%2 == 1 && item.Value == planted && slices.Contains(secretFields, node.Content[i-1].Value) {
			n++
		}

		n += countSecrets(item)
	}

	return n
}

// admitted tells whether the API server takes the patch; where it does not, that is about a place of the input.
func admitted(t *testing.T, result *convert.Result) bool {
	t.Helper()

	loaded, err := rules()
	if err != nil {
		t.Fatal(err)
	}

	patch := result.Patch.DeepCopy()
	patch.Namespace = metav1.NamespaceDefault

	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(patch)
	if err != nil {
		t.Fatal(err)
	}

	findings, err := loaded.Check(content)
	if err != nil {
		t.Fatal(err)
	}

	for _, finding := range findings {
		if _, ok := result.Find(finding.Field); !ok && finding.Field != "spec.documents" && finding.Field != "spec.deletions" {
			t.Errorf("%s: %s: has no place in the input", finding.Field, finding.Message)
		}
	}

	return len(findings) == 0
}

// talosForm writes the documents and deletions of a patch as Talos has them.
func talosForm(t *testing.T, result *convert.Result) string {
	t.Helper()

	var b strings.Builder

	for i := range result.Patch.Spec.Documents {
		data, err := result.Patch.Spec.Documents[i].TalosJSON(valuesOf(result))
		if err != nil {
			t.Fatal(err)
		}

		b.WriteString("---\n" + string(data) + "\n")
	}

	for _, deletion := range result.Patch.Spec.Deletions {
		b.WriteString("---\n" + deletionForm(t, deletion.Kind, deletion.Name, deletion.Path))
	}

	return b.String()
}

// deletionForm is a document that deletes one thing.
func deletionForm(t *testing.T, kind, name, path string) string {
	t.Helper()

	root := map[string]any{}
	if kind != "Config" {
		root["apiVersion"], root["kind"] = "v1alpha1", kind
	}

	if name != "" {
		root["name"] = name
	}

	inner := root

	tokens := strings.Split(path, "/")
	for i, token := range tokens {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)

		switch {
		case i == 0:
		case i == len(tokens)-1 && keyOf[strings.Join(tokens[:i], "/")] != "":
			inner[""] = []any{map[string]any{"$patch": "delete", keyOf[strings.Join(tokens[:i], "/")]: token}}
		case i == len(tokens)-1 && strings.Contains(token, "="):
			key, value, _ := strings.Cut(token, "=")
			inner[""] = []any{map[string]any{"$patch": "delete", key: value}}
		default:
			next := map[string]any{}
			inner[token] = next
			inner = next
		}
	}

	if _, list := inner[""]; !list {
		inner["$patch"] = "delete"
	}

	return string(encode(t, lifted(root)))
}

// keyOf is the field by which Talos finds the elements of a list.
var keyOf = map[string]string{"/machine/network/interfaces": "interface", "/cluster/apiServer/admissionControl": "name", "/cluster/inlineManifests": "name", "/configFiles": "mountPath", "/rules": "image"}

// lifted puts a list in the place of the map that holds it under an empty key.
func lifted(value any) any {
	object, ok := value.(map[string]any)
	if !ok {
		return value
	}

	if list, ok := object[""].([]any); ok {
		return list
	}

	for key, inner := range object {
		object[key] = lifted(inner)
	}

	return object
}

func encode(t *testing.T, object any) []byte {
	t.Helper()

	data, err := yamlsyntax.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}

	return data
}
