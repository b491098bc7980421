// SPDX-License-Identifier: Apache-2.0

package acceptance_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/talos/pkg/machinery/config"
	talos "github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/container"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"sigs.k8s.io/yaml"

	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
)

const machineryModule = "github.com/siderolabs/talos/pkg/machinery"

// read loads documents strictly, as a node does, but accepts documents that are not valid together.
func read(source []byte) (config.Provider, error) {
	return configloader.NewFromBytes(source, configloader.WithNoValidation())
}

// canonical is a document's YAML as machinery writes it.
func canonical(t *testing.T, doc talos.Document) []byte {
	t.Helper()

	c, err := container.New(doc)
	if err != nil {
		t.Fatalf("container: %v", err)
	}

	out, err := c.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
	if err != nil {
		t.Fatalf("encode: %v", err)
	}

	return out
}

func toJSON(t *testing.T, source []byte) []byte {
	t.Helper()

	out, err := yaml.YAMLToJSON(source)
	if err != nil {
		t.Fatalf("YAML to JSON: %v", err)
	}

	return out
}

// readOne loads a single document.
func readOne(t *testing.T, source []byte) talos.Document {
	t.Helper()

	provider, err := read(source)
	if err != nil {
		t.Fatalf("machinery refuses what the typed document became: %v\n%s", err, source)
	}

	if docs := provider.Documents(); len(docs) == 1 {
		return docs[0]
	}

	t.Fatalf("got %d documents, want one", len(provider.Documents()))

	return nil
}

// offeredKind maps machinery's kind to the union's, empty for a kind that is not offered.
func offeredKind(doc talos.Document) string {
	kind := doc.Kind()
	if kind == "v1alpha1" {
		kind = string(machineconfigv1alpha1.KindConfig)
	}

	f, ok := reflect.TypeFor[machineconfigv1alpha1.Document]().FieldByName(kind)
	if !ok || f.Type.Kind() != reflect.Pointer {
		return ""
	}

	return kind
}

func offeredKinds() []string {
	var out []string

	for field := range reflect.TypeFor[machineconfigv1alpha1.Document]().Fields() {
		if field.Type.Kind() == reflect.Pointer {
			out = append(out, field.Name)
		}
	}

	return out
}

// machinerysDocuments calls f with every document in machinery's own test data.
func machinerysDocuments(t *testing.T, f func(name string, doc talos.Document)) {
	t.Helper()

	root := filepath.Join(moduleDir(t, machineryModule), "config", "types")

	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" || !strings.Contains(path, "testdata") {
			return err
		}

		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}

		provider, err := read(source)
		if err != nil {
			return nil //nolint:nilerr // some of the files are there to be refused
		}

		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}

		for i, doc := range provider.Documents() {
			f(fmt.Sprintf("%s[%d]", filepath.ToSlash(name), i), doc)
		}

		return nil
	})
	if err != nil {
		t.Fatalf("machinery's test data: %v", err)
	}
}

// withoutTestData are the kinds for which machinery has no document in a file; maximal documents cover them.
var withoutTestData = map[string]bool{"ContainerConfig": true}

// TestRoundTripOfMachinerysTestData takes machinery -> typed -> machinery. A document with refused fields must be refused by
// name; what is left of it without them must come back.
func TestRoundTripOfMachinerysTestData(t *testing.T) {
	documents, refusing := map[string]int{}, map[string]int{}

	machinerysDocuments(t, func(name string, doc talos.Document) {
		kind := offeredKind(doc)
		if kind == "" {
			return
		}

		t.Run(kind+"/"+name, func(t *testing.T) {
			source := toJSON(t, canonical(t, doc))

			if kind == string(machineconfigv1alpha1.KindConfig) {
				// A legacy patch may leave the version out; the typed document always says it.
				source = bytes.Replace(source, []byte(`"version":""`), []byte(`"version":"v1alpha1"`), 1)
				doc = readOne(t, source)
			}

			typed, err := fromTalosJSON(source)

			values := sources{}

			if _, ok := errors.AsType[*machineconfigv1alpha1.RefusedError](err); ok {
				refusing[kind]++

				typed, err = byReference(t, kind, source, values), nil

				_, stays := typed.TalosJSON(values.value)
				if refused, ok := errors.AsType[*machineconfigv1alpha1.RefusedError](stays); ok {
					source = without(t, source, refused.Fields)
					doc = readOne(t, source)
					typed = byReference(t, kind, source, values)
				}
			}

			if err != nil {
				t.Fatalf("typed: %v\n%s", err, source)
			}

			if string(typed.Kind) != kind {
				t.Fatalf("got kind %s, want %s", typed.Kind, kind)
			}

			back, err := typed.TalosJSON(values.value)
			if err != nil {
				t.Fatalf("TalosJSON: %v", err)
			}

			if diff := cmp.Diff(string(canonical(t, doc)), string(canonical(t, readOne(t, back)))); diff != "" {
				t.Errorf("the round trip changed the document (-before +after):\n%s", diff)
			}
		})

		documents[kind]++
	})

	for _, kind := range offeredKinds() {
		t.Logf("%s: %d documents, %d of them with refused fields", kind, documents[kind], refusing[kind])

		if untested := documents[kind] == 0; untested != withoutTestData[kind] {
			t.Errorf("%s: machinery has test data for it: %v, want %v", kind, !untested, !withoutTestData[kind])
		}
	}
}

var pathStep = regexp.MustCompile(`[^.\[\]]+|\[[^\]]*\]`)

// without removes fields by the paths that a RefusedError gives.
func without(t *testing.T, source []byte, fields []machineconfigv1alpha1.RefusedField) []byte {
	t.Helper()

	var tree any

	if err := json.Unmarshal(source, &tree); err != nil {
		t.Fatalf("JSON: %v", err)
	}

	for _, f := range fields {
		steps := pathStep.FindAllString(f.Path, -1)
		node := tree

		for _, step := range steps[:len(steps)-1] {
			key := strings.Trim(step, "[]")

			switch n := node.(type) {
			case map[string]any:
				node = n[key]
			case []any:
				i, err := strconv.Atoi(key)
				if err != nil {
					t.Fatalf("path %s: %s is no index", f.Path, step)
				}

				node = n[i]
			default:
				t.Fatalf("path %s does not lead to a field", f.Path)
			}
		}

		last := steps[len(steps)-1]
		if _, there := node.(map[string]any)[last]; !there {
			t.Fatalf("path %s does not lead to a field", f.Path)
		}

		delete(node.(map[string]any), last) //nolint:forcetypeassert // looked up above
	}

	out, err := json.Marshal(tree)
	if err != nil {
		t.Fatalf("JSON: %v", err)
	}

	return bytes.TrimSpace(out)
}
