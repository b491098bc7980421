// SPDX-License-Identifier: Apache-2.0

package acceptance_test

import (
	"encoding"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	talos "github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/container"

	"github.com/maesh-dev/ichor/internal/codegen/emit"
	"github.com/maesh-dev/ichor/internal/codegen/load"
	"github.com/maesh-dev/ichor/internal/codegen/model"
	"github.com/maesh-dev/ichor/internal/codegen/tables"
)

var update = flag.Bool("update", false, "write the golden file")

// TestSecretReport pins the decision about every field that is a secret or is called like one.
func TestSecretReport(t *testing.T) {
	report := emit.SecretReport(buildModel(t))
	golden := filepath.Join("testdata", "secrets.golden")

	if *update {
		if err := os.WriteFile(golden, report, 0o644); err != nil {
			t.Fatal(err)
		}
	}

	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(string(want), string(report)); diff != "" {
		t.Errorf("look at each line that changed, then run the test with -update (-golden +report):\n%s", diff)
	}
}

// TestWhatTalosRedactsIsNoPlainField fills every field of every kind that machinery has and asks Talos what it holds to be
// secret: each such field must be refused, come from a Secret, or be of a kind that is not offered.
func TestWhatTalosRedactsIsNoPlainField(t *testing.T) {
	decisions := map[string]model.Decision{}
	for _, s := range buildModel(t).Secrets {
		decisions[s.Kind+" "+s.Path] = s.Decision
	}

	catalog, err := load.Load(t.Context(), tables.Machinery(moduleDir(t)))
	if err != nil {
		t.Fatalf("load: %v", err)
	}

	redacted := 0

	for _, kind := range catalog.Kinds {
		name := kind.Name
		if offered := offeredKind(filled(t, kind.Name)); offered != "" {
			name = offered
		}

		for _, path := range redactedPaths(t, filled(t, kind.Name)) {
			redacted++

			switch decision := decisionOn(decisions, name, path); decision {
			case model.Refused, model.Referenced, model.DeniedKind:
			default:
				t.Errorf("%s: Talos redacts %s, and the decision on it is %q", name, path, decision)
			}
		}
	}

	t.Logf("Talos redacts %d fields of %d kinds", redacted, len(catalog.Kinds))

	if redacted < 30 {
		t.Errorf("Talos redacts %d fields; documents were not filled", redacted)
	}
}

// decisionOn is the decision on a field or on what it stands in.
func decisionOn(decisions map[string]model.Decision, kind, path string) model.Decision {
	for {
		if decision, ok := decisions[kind+" "+path]; ok {
			return decision
		}

		end := strings.LastIndexAny(path, ".[{")
		if end < 0 {
			return ""
		}

		path = path[:end]
	}
}

// filled is a document of a kind with every field set that can be secret.
func filled(t *testing.T, kind string) talos.Document {
	t.Helper()

	stub := "apiVersion: v1alpha1\nkind: " + kind
	if kind == "v1alpha1" {
		stub = "version: v1alpha1\nmachine: {}"
	}

	provider, err := read([]byte(stub))
	if err != nil {
		t.Fatalf("%s: %v", kind, err)
	}

	doc := provider.Documents()[0].Clone()
	(&everything{}).fill(reflect.ValueOf(doc).Elem())

	return doc
}

// mapKey is the key in every map.
const mapKey = "MAPKEY"

// everything counts the texts that it makes up: Talos refuses a veth pair whose ends have one name.
type everything struct{ texts int }

func (e *everything) text() string {
	e.texts++

	return "text" + strconv.Itoa(e.texts)
}

// fill sets all texts, bytes and free-form content. Numbers are no secrets, and those of enums have few values.
func (e *everything) fill(v reflect.Value) {
	if !v.CanSet() {
		return
	}

	// URLs can carry secrets in their query; addresses and the like cannot.
	if text, ok := reflect.TypeAssert[encoding.TextUnmarshaler](v.Addr()); ok {
		_ = text.UnmarshalText([]byte("https://a.example.org/?jointoken=text"))

		return
	}

	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		e.fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			// What a document is must stay as it is.
			if name := v.Type().Field(i).Name; name != "Meta" && name != "ConfigVersion" {
				e.fill(v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(e.text()))

			return
		}

		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		e.fill(v.Index(0))
	case reflect.Map:
		elem := reflect.New(v.Type().Elem()).Elem()
		e.fill(elem)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf(mapKey).Convert(v.Type().Key()), elem)
	case reflect.String:
		v.SetString(e.text())
	case reflect.Interface:
		v.Set(reflect.ValueOf(e.text()))
	}
}

var index = regexp.MustCompile(`\[\d+\]`)

// redactedPaths are the paths of the leaves that Talos replaces, as the secret report writes them.
func redactedPaths(t *testing.T, doc talos.Document) []string {
	t.Helper()

	c, err := container.New(doc)
	if err != nil {
		t.Fatalf("%s: %v", doc.Kind(), err)
	}

	var out []string

	after := leaves(t, encodeJSON(t, c.RedactSecrets("REDACTED")))

	for path, value := range leaves(t, encodeJSON(t, c)) {
		if !cmp.Equal(value, after[path]) {
			out = append(out, strings.ReplaceAll(index.ReplaceAllString(path, "[]"), "."+mapKey, "{}"))
		}
	}

	return out
}
