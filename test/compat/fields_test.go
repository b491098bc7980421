// SPDX-License-Identifier: Apache-2.0

package compat_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/config/configloader"

	"github.com/maesh-dev/ichor/internal/codegen/history"
	"github.com/maesh-dev/ichor/internal/codegen/model"
	"github.com/maesh-dev/ichor/internal/codegen/tables"
	"github.com/maesh-dev/ichor/internal/version"
	"github.com/maesh-dev/ichor/test/tools"
)

// sample is a document that sets one field.
type sample struct {
	kind, pointer, value string
	json                 []byte
}

func (s sample) String() string {
	return strings.TrimSuffix(s.kind+" "+s.pointer+" "+s.value, " ")
}

// TestEveryFieldOnOlderTalos makes a document for every field of every kind, and for every value of those that are one of several.
// The version tables must let an older Talos have exactly those that its own machinery reads. Machinery tells what it cannot read
// from what it can read and finds wrong, and only the former is compared: a document with a single field is seldom a valid one.
func TestEveryFieldOnOlderTalos(t *testing.T) {
	t.Parallel()

	table, err := history.Make(t.Context(), tables.Releases(filepath.Join("..", "..")), tables.FormChanges())
	if err != nil {
		t.Fatal(err)
	}

	samples := samplesOf(t, table)

	for _, s := range samples {
		if _, err := configloader.NewFromBytes(s.json, configloader.WithNoValidation()); err != nil {
			t.Fatalf("%s: the sample is none that the newest machinery reads: %v\n%s", s, err, s.json)
		}
	}

	t.Logf("%d samples of %d kinds", len(samples), len(table.FirstKinds))

	for contract, name := range validators {
		t.Run(contract, func(t *testing.T) {
			t.Parallel()

			talos, err := version.ParseTalos(contract + ".0")
			if err != nil {
				t.Fatal(err)
			}

			known := 0

			for i, reads := range readBy(t, name, samples) {
				s := samples[i]

				refused := tableRefuses(talos, s)
				if (refused == nil) != (reads == "") {
					t.Errorf("%s: the version tables say %v, Talos %s says %q\n%s", s, refused, contract, reads, s.json)
				}

				if refused == nil {
					known++
				}
			}

			t.Logf("%d of them are known to Talos %s", known, contract)
		})
	}
}

func tableRefuses(talos version.Talos, s sample) error {
	pointer := strings.ReplaceAll(s.pointer, "*", "0")
	if err := version.CheckDocument(talos, s.kind, pointer); err != nil {
		return err
	}

	return version.CheckValues(talos, s.kind, func(at string) (string, bool) { return s.value, at == pointer })
}

// readBy asks a validator about all samples, and returns for each why it cannot be read, empty if it can.
func readBy(t *testing.T, name string, samples []sample) []string {
	t.Helper()

	validator, err := tools.Path(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}

	dir := t.TempDir()
	answers := make([]string, 0, len(samples))

	for chunk := range slices.Chunk(samples, 500) {
		var files []string

		for i, s := range chunk {
			file := filepath.Join(dir, fmt.Sprintf("%d.yaml", i))
			if err := os.WriteFile(file, s.json, 0o600); err != nil {
				t.Fatal(err)
			}

			files = append(files, file)
		}

		// The exit status only says that some are not valid.
		out, _ := exec.CommandContext(t.Context(), validator, files...).Output()
		decoder := json.NewDecoder(bytes.NewReader(out))

		for range chunk {
			var verdict struct{ Error string }
			if err := decoder.Decode(&verdict); err != nil {
				t.Fatalf("%s: %v", name, err)
			}

			if !strings.HasPrefix(verdict.Error, "load: ") {
				verdict.Error = ""
			}

			answers = append(answers, verdict.Error)
		}
	}

	return answers
}

func samplesOf(t *testing.T, table *history.Table) []sample {
	t.Helper()

	examples := exampleOfType(t)

	var samples []sample

	for _, kind := range slices.Sorted(maps.Keys(table.FirstKinds)) {
		document := withItems(table.Newest().Documents[kind], table.FirstFields[kind])

		for _, pointer := range slices.Sorted(maps.Keys(document)) {
			if slices.Contains([]string{"/apiVersion", "/kind", "/version"}, pointer) {
				continue // every sample has those
			}

			field := document[pointer]

			values := field.Values
			if len(values) == 0 || field.Form == history.FormObject {
				values = []string{""}
			}

			for _, value := range values {
				s := sample{kind: kind, pointer: pointer, value: value}

				var err error
				if s.json, err = sampleJSON(document, s, examples); err != nil {
					t.Fatalf("%s: %v", s, err)
				}

				samples = append(samples, s)
			}
		}
	}

	return samples
}

// withItems adds the items that a row is about where a field can be a list as well: they have no type of their own.
func withItems(document history.Document, rows map[string]int) history.Document {
	document = maps.Clone(document)

	for pointer := range rows {
		if _, typed := document[pointer]; !typed {
			document[pointer] = history.Field{Type: "string", Form: "string"}
			document[path.Dir(pointer)] = history.Field{Type: document[path.Dir(pointer)].Type, Form: history.FormList}
		}
	}

	return document
}

// sampleJSON sets the one field, and whatever it is in.
func sampleJSON(document history.Document, s sample, examples map[string]any) ([]byte, error) {
	field := document[s.pointer]

	value, ok := examples[field.Type]

	switch {
	case s.value != "":
		value = s.value
	case ok:
	case field.Form == history.FormObject, field.Form == history.FormMap:
		value = map[string]any{}
	case field.Form == history.FormList:
		value = []any{}
	default:
		return nil, fmt.Errorf("no example for a value of type %s", field.Type)
	}

	steps := strings.Split(s.pointer, "/")[1:]

	for i, step := range slices.Backward(steps) {
		in := document["/"+strings.Join(steps[:i], "/")]

		switch {
		case step != "*":
			value = map[string]any{step: value}
		case in.Form == history.FormList:
			value = []any{value}
		default:
			value = map[string]any{"0": value}
		}
	}

	object := value.(map[string]any) //nolint:forcetypeassert // a document is an object

	if s.kind == "v1alpha1" {
		object["version"] = "v1alpha1"
	} else {
		object["apiVersion"], object["kind"] = "v1alpha1", s.kind
	}

	return json.Marshal(object)
}

// exampleOfType gives a value for each type of a leaf, from the generator's own rows where the type has a form of its own.
func exampleOfType(t *testing.T) map[string]any {
	t.Helper()

	pem := map[string]any{"crt": "LS0tCg==", "key": "LS0tCg=="}
	examples := map[string]any{
		"string": "text", "bool": true, "any": "text", "[]byte": "AQID",
		"int": 1, "int32": 1, "uint": 1, "uint8": 1, "uint16": 1, "uint32": 1, "uint64": 1,
		"os.FileMode": 0o644,
		"github.com/siderolabs/crypto/x509.PEMEncodedCertificateAndKey": pem,
		"github.com/siderolabs/crypto/x509.PEMEncodedCertificate":       map[string]any{"crt": "LS0tCg=="},
		"github.com/siderolabs/crypto/x509.PEMEncodedKey":               map[string]any{"key": "LS0tCg=="},
		// Types that no row substitutes.
		"config/types/v1alpha1.ClusterInlineManifests": []any{map[string]any{"name": "a", "contents": "b"}},
		"config/config.ContainerNetworkMode":           "host",
		"config/config.ContainerSecurityProfile":       "privileged",
		"config/types/meta.AddrPort":                   "10.0.0.1:51820",
	}

	for _, row := range tables.Talos().Scalars {
		switch {
		case len(row.Enum) > 0:
			examples[row.Go] = row.Enum[0]
		case row.Base == model.Integer, row.Base == model.Number:
			examples[row.Go] = json.Number(row.Examples[0])
		default:
			examples[row.Go] = row.Examples[0]
		}
	}

	return examples
}
