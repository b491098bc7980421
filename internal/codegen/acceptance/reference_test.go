// SPDX-License-Identifier: Apache-2.0

package acceptance_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/validation"
	"sigs.k8s.io/yaml"

	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
	"github.com/maesh-dev/ichor/internal/codegen/model"
	"github.com/maesh-dev/ichor/internal/codegen/reference"
	"github.com/maesh-dev/ichor/internal/codegen/tables"
	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

// onMetal is where the examples are meant to run.
type onMetal struct{}

func (onMetal) String() string        { return "metal" }
func (onMetal) RequiresInstall() bool { return true }
func (onMetal) InContainer() bool     { return false }

// sampleValue is a value for every reference of an example.
func sampleValue(source machineconfigv1alpha1.Source) (string, bool) {
	switch {
	case source.Key == "private":
		return "GHuMwljFfqd2a7cs6BaUOmHflK23zME8VNvC5B37S3k=", true
	case strings.HasSuffix(source.Key, ".yaml"):
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: sample}\nspec: {containers: [{name: a, image: b}]}\n", true
	default:
		return "sample", true
	}
}

const image = "the image, which follows from the Machine's version and is set when the config is rendered"

// incomplete are the examples that are only a part of what Talos wants, with why.
var incomplete = map[string]string{
	"KubeAPIServerConfig":         image,
	"KubeControllerManagerConfig": image,
	"KubeSchedulerConfig":         image,
	"KubeletConfig":               image,

	"Config":             "a patch of the legacy document, which needs what the renderer puts there",
	"RegistryTLSConfig":  "its certificate is a sample that is no real one",
	"TrustedRootsConfig": "its certificate is a sample that is no real one",
}

// TestExamples proves the example of each kind: the API server admits it, machinery reads it and finds nothing wrong with it.
func TestExamples(t *testing.T) {
	server := newAPIServer(t)

	examples, err := reference.Examples()
	if err != nil {
		t.Fatal(err)
	}

	for _, kind := range offeredKinds() {
		t.Run(kind, func(t *testing.T) {
			var documents []json.RawMessage

			if err := yaml.UnmarshalStrict([]byte(examples[kind]), &documents); err != nil {
				t.Fatalf("the example is no list of documents: %v", err)
			}

			if len(documents) != 1 {
				t.Fatalf("internal/codegen/reference/examples/%s.yaml has %d documents, want one", kind, len(documents))
			}

			if errs := server.validate(t, string(documents[0])); len(errs) > 0 {
				t.Fatalf("the API server refuses the example: %v", errs.ToAggregate())
			}

			var doc machineconfigv1alpha1.Document

			if err := yaml.UnmarshalStrict(documents[0], &doc); err != nil {
				t.Fatalf("the example is no document: %v", err)
			}

			if string(doc.Kind) != kind {
				t.Fatalf("the example of %s is of kind %s", kind, doc.Kind)
			}

			source, err := doc.TalosJSON(sampleValue)
			if err != nil {
				t.Fatal(err)
			}

			validator, ok := readOne(t, source).(config.Validator)
			if !ok {
				return
			}

			if _, err := validator.Validate(onMetal{}, validation.WithLocal()); (err != nil) != (incomplete[kind] != "") {
				t.Errorf("Talos finds wrong with the example: %v (known: %q)\n%s", err, incomplete[kind], source)
			}
		})
	}
}

// referencePages renders the reference as the generator does.
func referencePages(t *testing.T, api *model.API) map[string][]byte {
	t.Helper()

	examples, err := reference.Examples()
	if err != nil {
		t.Fatal(err)
	}

	decisions := tables.Talos()

	pages, err := reference.Pages(reference.Input{
		API: api, Since: firstVersions(t), Denied: decisions.Denied, Later: decisions.Later, Wants: tables.Wants(), Examples: examples,
	})
	if err != nil {
		t.Fatal(err)
	}

	return pages
}

// tableRow is a line of a table of fields: path, form, first version, how it merges.
var tableRow = regexp.MustCompile("(?m)^\\| `([^`]+)`[^|]*\\| ((?:[^|\\\\]|\\\\.)*) \\| [0-9.]* \\| ([^|]*) \\|")

// TestMergeIsAsTheReferenceSays merges a document with every field set with a patch of one field, for every field that the reference
// has a word for. That word has to tell what came out.
func TestMergeIsAsTheReferenceSays(t *testing.T) {
	api := buildModel(t)
	pages := referencePages(t, api)
	newFiller := fillers(api)
	seen := map[string]int{}

	for _, kind := range offeredKinds() {
		t.Run(kind, func(t *testing.T) {
			f := newFiller()
			doc := &machineconfigv1alpha1.Document{Kind: machineconfigv1alpha1.DocumentKind(kind)}
			f.fill(t, reflect.ValueOf(doc).Elem().FieldByName(kind))

			full, err := doc.TalosJSON(f.sources.value)
			if err != nil {
				t.Fatal(err)
			}

			// The second turn has other values.
			f.turn++
			f.fill(t, reflect.ValueOf(doc).Elem().FieldByName(kind))

			other, err := doc.TalosJSON(f.sources.value)
			if err != nil {
				t.Fatal(err)
			}

			for _, match := range tableRow.FindAllStringSubmatch(string(pages[kind+".md"]), -1) {
				path, words := match[1], match[3]
				if words == "" || words == "names the document" || strings.Contains(path, "[") || strings.HasPrefix(words, "as the field") {
					continue
				}

				if got := mergeOf(t, full, other, strings.Split(path, ".")); got != "" && !strings.HasPrefix(words, got) {
					t.Errorf("%s: the reference says %q, the merge %q", path, words, got)
				} else if got != "" {
					seen[got]++
				}
			}
		})
	}

	t.Logf("compared: %v", seen)

	for _, words := range []string{"appends", "replaces", "merges by key", "merges by", "overwrites", "items merge", "an item replaces"} {
		if seen[words] == 0 {
			t.Errorf("nothing was found that %q", words)
		}
	}
}

// mergeOf merges a field of a document with a changed one and names what happened. Empty if the document does not have the field, or
// if what it has cannot tell.
func mergeOf(t *testing.T, full, other []byte, path []string) string {
	t.Helper()

	value, there := lookup(t, full, path)
	if !there {
		return ""
	}

	switch v := value.(type) {
	case []any:
		return mergeOfList(t, full, path, v)
	case map[string]any:
		return mergeOfObject(t, full, path, v)
	default:
		return mergeOfScalar(t, full, other, path)
	}
}

func mergeOfScalar(t *testing.T, full, other []byte, path []string) string {
	t.Helper()

	value, _ := lookup(t, other, path)

	switch v := value.(type) {
	case bool:
		value = !v
	case float64:
		value = v - 1
	}

	written := func(source []byte) (any, bool) { return lookup(t, toJSON(t, canonical(t, readOne(t, source))), path) }

	before, _ := written(full)
	merged, has := lookup(t, patched(t, full, path, value), path)
	if !has && value == false {
		merged = false // one of the few booleans that Talos does not write if they are false
	}

	want := value

	if _, isText := value.(string); isText {
		text, has := written(other)
		if !has {
			return "" // Talos writes nothing for it
		}

		want = text
	}

	switch {
	case reflect.DeepEqual(merged, want) && !reflect.DeepEqual(merged, before):
		return "overwrites"
	case reflect.DeepEqual(want, before):
		return "" // there is one value only
	default:
		return "nothing known"
	}
}

func mergeOfList(t *testing.T, full []byte, path []string, list []any) string {
	t.Helper()

	merged, _ := lookup(t, patched(t, full, path, list), path)

	same, ok := merged.([]any)
	if !ok {
		return "overwrites" // an argument's values
	}

	if len(same) == 2*len(list) {
		return "appends"
	}

	item, isObject := list[0].(map[string]any)
	if !isObject {
		return "replaces"
	}

	// With another key the item is added, unless the list is replaced.
	other, keyOnly := maps.Clone(item), map[string]any{}

	for _, key := range []string{"interface", "name", "mountPath", "image"} {
		if text, isText := item[key].(string); isText {
			keyOnly[key], other[key] = text, text+"2"
		}
	}

	merged, _ = lookup(t, patched(t, full, path, []any{other}), path)
	if added, _ := merged.([]any); len(added) != 2 {
		return "replaces"
	}

	// With the same key and nothing else it loses the rest, unless it merges.
	merged, _ = lookup(t, patched(t, full, path, []any{keyOnly}), path)
	kept, _ := merged.([]any)[0].(map[string]any)
	before, _ := lookup(t, toJSON(t, canonical(t, readOne(t, full))), path)

	for field := range item {
		if _, isKey := keyOnly[field]; !isKey && reflect.DeepEqual(kept[field], before.([]any)[0].(map[string]any)[field]) {
			return "items merge"
		}
	}

	if len(item) == len(keyOnly) {
		return "" // there is nothing to lose
	}

	return "an item replaces"
}

func mergeOfObject(t *testing.T, full []byte, path []string, object map[string]any) string {
	t.Helper()

	keys := slices.Sorted(maps.Keys(object))
	if len(keys) == 0 {
		return ""
	}

	if len(keys) == 1 && keys[0] == "key" { // as the filler makes maps
		merged, _ := lookup(t, patched(t, full, path, map[string]any{"other": object["key"]}), path)
		if both, _ := merged.(map[string]any); len(both) == 2 {
			return "merges by key"
		}

		return "replaces"
	}

	if written, _ := lookup(t, toJSON(t, canonical(t, readOne(t, full))), path); len(keys) == 1 || written == nil || len(written.(map[string]any)) == 1 {
		return ""
	}

	merged, _ := lookup(t, patched(t, full, path, map[string]any{keys[0]: object[keys[0]]}), path)
	if all, _ := merged.(map[string]any); len(all) > 1 {
		return "merges by" // fields, or the keys of a map
	}

	return "replaces"
}

// patched merges a document with a patch that sets one field of it.
func patched(t *testing.T, full []byte, path []string, value any) []byte {
	t.Helper()

	provider, err := read(full)
	if err != nil {
		t.Fatal(err)
	}

	for _, step := range slices.Backward(path) {
		value = map[string]any{step: value}
	}

	patch := value.(map[string]any) //nolint:forcetypeassert // a path has a step

	for _, identity := range []string{"apiVersion", "kind", "name", "version"} {
		if id, has := lookup(t, full, []string{identity}); has {
			patch[identity] = id
		}
	}

	raw, err := json.Marshal(patch)
	if err != nil {
		t.Fatal(err)
	}

	loaded, err := merge.Load(raw)
	if err != nil {
		t.Fatalf("patch: %v\n%s", err, raw)
	}

	merged := merge.New(provider)
	if err := merged.Apply(loaded, nil); err != nil {
		t.Fatalf("apply: %v\n%s", err, raw)
	}

	out, err := merged.Encode()
	if err != nil {
		t.Fatal(err)
	}

	return toJSON(t, out)
}

func lookup(t *testing.T, document []byte, path []string) (any, bool) {
	t.Helper()

	var node any

	if err := json.Unmarshal(document, &node); err != nil {
		t.Fatal(err)
	}

	for _, step := range path {
		object, ok := node.(map[string]any)
		if !ok {
			return nil, false
		}

		if node, ok = object[step]; !ok {
			return nil, false
		}
	}

	return node, true
}
