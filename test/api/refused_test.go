// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
	"github.com/maesh-dev/ichor/test/tools"
)

// secretValue is what nobody may see again.
const secretValue = "c2VjcmV0LXZhbHVl"

// refusedPlace is a place in a document that the served schema refuses.
type refusedPlace struct {
	// path leads from the document to the place; [] stands for a list's item, {} for a map's value.
	path []string
	// parents are the schemas of the document and of every step but the last.
	parents []*apiextensionsv1.JSONSchemaProps
	schema  *apiextensionsv1.JSONSchemaProps
	message string
}

// refusedPlaces finds every place whose rule is never true, as the API server serves the schema.
func refusedPlaces(document *apiextensionsv1.JSONSchemaProps) []refusedPlace {
	var out []refusedPlace

	var walk func(at *apiextensionsv1.JSONSchemaProps, path []string, parents []*apiextensionsv1.JSONSchemaProps)

	walk = func(at *apiextensionsv1.JSONSchemaProps, path []string, parents []*apiextensionsv1.JSONSchemaProps) {
		for _, rule := range at.XValidations {
			if rule.Rule == "false" {
				out = append(out, refusedPlace{path: path, parents: parents, schema: at, message: rule.Message})

				return
			}
		}

		below := append(slices.Clip(parents), at)

		for _, name := range slices.Sorted(maps.Keys(at.Properties)) {
			child := at.Properties[name]
			walk(&child, append(slices.Clip(path), name), below)
		}

		if at.Items != nil && at.Items.Schema != nil {
			walk(at.Items.Schema, append(slices.Clip(path), "[]"), below)
		}

		if at.AdditionalProperties != nil && at.AdditionalProperties.Schema != nil {
			walk(at.AdditionalProperties.Schema, append(slices.Clip(path), "{}"), below)
		}
	}

	walk(document, nil, nil)

	return out
}

// values are what a user might write in the place, of the type that it has.
func (p refusedPlace) values() []any {
	filled := map[string]any{"crt": secretValue, "nested": map[string]any{"password": secretValue}}

	switch {
	case p.schema.XIntOrString:
		return []any{secretValue, 4711}
	case p.schema.Type == "array" && p.schema.Items.Schema.Type == "object":
		return []any{[]any{filled}, []any{map[string]any{}}, []any{}}
	case p.schema.Type == "array":
		return []any{[]any{secretValue}, []any{}}
	case p.schema.Type == "object":
		return []any{filled, map[string]any{}}
	case p.schema.Type == "boolean":
		return []any{true, false}
	case p.schema.Type == "integer":
		return []any{4711, 0}
	default:
		return []any{secretValue, ""}
	}
}

// document puts a value into the place, with what the schema requires beside it.
func (p refusedPlace) document(value any) map[string]any {
	for i, step := range slices.Backward(p.path) {
		switch step {
		case "[]":
			value = []any{value}
		case "{}":
			value = map[string]any{"key": value}
		default:
			object := required(p.parents[i])
			object[step] = value
			value = object
		}
	}

	document := value.(map[string]any) //nolint:forcetypeassert // a path begins with a field
	document["kind"] = kindOf(p.path[0])

	return document
}

// required is an object with the least that its schema demands.
func required(schema *apiextensionsv1.JSONSchemaProps) map[string]any {
	object := map[string]any{}

	for _, name := range schema.Required {
		field := schema.Properties[name]

		switch {
		case len(field.Enum) > 0:
			var value any
			_ = json.Unmarshal(field.Enum[0].Raw, &value)
			object[name] = value
		case field.Type == "object":
			object[name] = required(&field)
		case field.Type == "array":
			object[name] = []any{}
		case field.Type == "boolean":
			object[name] = true
		case field.Type == "string" && !field.XIntOrString:
			object[name] = "n"
		default:
			object[name] = 1
		}
	}

	return object
}

// kindOf is the kind whose content stands in a field of the document.
func kindOf(member string) string {
	for field := range reflect.TypeFor[machineconfigv1alpha1.Document]().Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name == member {
			return field.Name
		}
	}

	return ""
}

// TestRefusedFieldsAreRefused applies a patch for every refused field and every form of its value, with kubectl, both ways that it
// has: the API server refuses each with our message, and nobody sees the value.
func TestRefusedFieldsAreRefused(t *testing.T) {
	t.Parallel()

	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := api.Get(t.Context(), client.ObjectKey{Name: patchCRD}, crd); err != nil {
		t.Fatal(err)
	}

	spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	documents := spec.Properties["documents"]
	places := refusedPlaces(documents.Items.Schema)

	if len(places) < 60 {
		t.Fatalf("found %d refused places; the walk misses some", len(places))
	}

	var (
		manifests bytes.Buffer
		messages  []string
		where     []string
	)

	for _, place := range places {
		// Who asks kubectl explain is told before the field is set.
		if !strings.HasPrefix(place.schema.Description, "Refused: ") {
			t.Errorf("%s: the text is %q, want one that says why it is refused", strings.Join(place.path, "."), place.schema.Description)
		}

		for _, value := range place.values() {
			patch := object(t, "TalosConfigPatch", "refused-"+strconv.Itoa(len(messages)), "layer: Pool")
			patch.Object["spec"].(map[string]any)["documents"] = []any{place.document(value)} //nolint:forcetypeassert // made above

			write(t, &manifests, patch)

			messages = append(messages, place.message)
			where = append(where, fmt.Sprintf("%s = %v", strings.Join(place.path, "."), value))
		}
	}

	t.Logf("%d places, %d values", len(places), len(messages))

	for name, flags := range map[string][]string{"client-side apply": nil, "server-side apply": {"--server-side"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			said := kubectlApply(t, manifests.String(), flags...)

			if strings.Contains(said, secretValue) || strings.Contains(said, "4711") {
				t.Errorf("the value is shown:\n%s", said)
			}

			refusals := refusalsByName(said)

			for i, message := range messages {
				refusal := refusals["refused-"+strconv.Itoa(i)]
				if !strings.Contains(refusal, "Forbidden: "+message) {
					t.Errorf("%s: the API server says %q, want: Forbidden: %s", where[i], refusal, message)
				}
			}
		})
	}
}

func write(t *testing.T, to *bytes.Buffer, object *unstructured.Unstructured) {
	t.Helper()

	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}

	to.WriteString("---\n")
	to.Write(data)
	to.WriteString("\n")
}

// kubectlApply returns what kubectl says about manifests, of which it must accept none.
func kubectlApply(t *testing.T, manifests string, flags ...string) string {
	t.Helper()

	kubectl, err := tools.Path(t.Context(), tools.Kubectl)
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), harnessPatience)
	defer cancel()

	command := exec.CommandContext(ctx, kubectl, append([]string{"--kubeconfig", kubeconfig, "apply", "--dry-run=server", "-f", "-"}, flags...)...)
	command.Stdin = strings.NewReader(manifests)

	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr

	if err = command.Run(); err == nil {
		t.Error("kubectl is content")
	}

	if stdout.Len() > 0 {
		t.Errorf("kubectl says that it applied something:\n%s", &stdout)
	}

	return stderr.String()
}

// refusal begins what kubectl says about one object.
var refusal = regexp.MustCompile(`(?m)^.*"(refused-[0-9]+)" is invalid: `)

// refusalsByName takes apart what kubectl says about all objects.
func refusalsByName(said string) map[string]string {
	out := map[string]string{}
	found := refusal.FindAllStringSubmatchIndex(said, -1)

	for i, at := range found {
		end := len(said)
		if i+1 < len(found) {
			end = found[i+1][0]
		}

		out[said[at[2]:at[3]]] = said[at[1]:end]
	}

	return out
}
