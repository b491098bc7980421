// SPDX-License-Identifier: Apache-2.0

package acceptance_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
)

// refusedField is a place in a document that is refused.
type refusedField struct {
	path    []string // JSON names; [] stands for a list's item, {} for a map's value
	typ     reflect.Type
	owner   reflect.Type
	message string
}

// refusedFields are those that the schema refuses.
func refusedFields() []refusedField { return taggedFields("refused") }

// taggedFields walks the types, so that no field with a tag is left out of the tests.
func taggedFields(tag string) []refusedField {
	var out []refusedField

	var walk func(t reflect.Type, path []string)

	walk = func(t reflect.Type, path []string) {
		switch t.Kind() {
		case reflect.Pointer:
			walk(t.Elem(), path)
		case reflect.Slice:
			walk(t.Elem(), append(slices.Clip(path), "[]"))
		case reflect.Map:
			walk(t.Elem(), append(slices.Clip(path), "{}"))
		case reflect.Struct:
			for f := range t.Fields() {
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				at := append(slices.Clip(path), name)

				if message, tagged := f.Tag.Lookup(tag); tagged {
					out = append(out, refusedField{path: at, typ: f.Type, owner: t, message: message})
				} else if f.IsExported() {
					walk(f.Type, at)
				}
			}
		}
	}

	walk(reflect.TypeFor[machineconfigv1alpha1.Document](), nil)

	return out
}

// secret is a value that no error may show.
const secret = "c2VjcmV0LXZhbHVl"

// values are what users might write in a refused place.
func (f refusedField) values() map[string]any {
	object := map[string]any{"crt": secret, "key": secret, "nested": map[string]any{"password": secret}}

	switch {
	case f.typ == reflect.TypeFor[*machineconfigv1alpha1.RefusedValue]():
		return map[string]any{"value": secret, "empty": ""}
	case f.typ == reflect.TypeFor[*machineconfigv1alpha1.RefusedFlag]():
		return map[string]any{"value": true, "zero": false}
	case f.typ == reflect.TypeFor[*machineconfigv1alpha1.RefusedNumber]():
		return map[string]any{"value": 4711, "zero": 0}
	case f.typ.Kind() == reflect.Slice:
		return map[string]any{"item": []any{object}, "empty item": []any{map[string]any{}}, "empty": []any{}}
	default:
		return map[string]any{"object": object, "empty": map[string]any{}}
	}
}

// document puts a value into the place, and whatever is required around it.
func (f refusedField) document(t *testing.T, value any) string {
	t.Helper()

	for i, step := range slices.Backward(f.path) {
		if i == len(f.path)-1 && f.owner == reflect.TypeFor[machineconfigv1alpha1.AuditPolicy]() {
			value = map[string]any{step: value, "apiVersion": "audit.k8s.io/v1", "kind": "Policy"}

			continue
		}

		switch step {
		case "[]":
			value = []any{value}
		case "{}":
			value = map[string]any{"key": value}
		default:
			value = map[string]any{step: value}
		}
	}

	doc := value.(map[string]any) //nolint:forcetypeassert // a path begins with a field

	member := f.path[0]

	for field := range reflect.TypeFor[machineconfigv1alpha1.Document]().Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name == member {
			doc["kind"] = field.Name

			if named, ok := field.Type.Elem().FieldByName("Name"); ok && named.Type.Kind() == reflect.String {
				doc[member].(map[string]any)["name"] = "n" //nolint:forcetypeassert // a member is an object
			}
		}
	}

	raw, err := json.Marshal(doc)
	if err != nil {
		t.Fatalf("test document: %v", err)
	}

	return string(raw)
}

func TestRefusedFieldsAreRefused(t *testing.T) {
	server := newAPIServer(t)
	fields := refusedFields()

	if len(fields) < 30 {
		t.Fatalf("found %d refused fields; the walk misses some", len(fields))
	}

	t.Logf("%d places are refused", len(fields))

	for _, f := range fields {
		for name, value := range f.values() {
			t.Run(strings.Join(f.path, ".")+"/"+name, func(t *testing.T) {
				raw := f.document(t, value)

				// The API server says the field itself.
				_, why, _ := strings.Cut(f.message, ": ")

				errs := server.validate(t, raw)
				if len(errs) != 1 || errs[0].Type != field.ErrorTypeForbidden || errs[0].Detail != why {
					t.Errorf("the API server says %v, want exactly: forbidden: %s", errs.ToAggregate(), why)
				}

				if errs.ToAggregate() != nil && strings.Contains(errs.ToAggregate().Error(), secret) {
					t.Errorf("the API server's error shows the value: %v", errs.ToAggregate())
				}

				testClientRefuses(t, raw, f.message)
			})
		}
	}
}

// TestWrongTypesShowNoValue: who writes a secret in a form that it has not is told so, without the secret.
func TestWrongTypesShowNoValue(t *testing.T) {
	server := newAPIServer(t)

	for _, f := range refusedFields() {
		wrong := []any{secret, []any{secret}, map[string]any{"a": secret}, []any{map[string]any{"a": secret}}, 4711, true, []any{[]any{secret}}}

		for i, value := range wrong {
			t.Run(strings.Join(f.path, ".")+"/"+strconv.Itoa(i), func(t *testing.T) {
				err := server.validate(t, f.document(t, value)).ToAggregate()
				if err == nil {
					t.Fatal("accepted")
				}

				if strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "4711") {
					t.Errorf("the error shows the value: %v", err)
				}
			})
		}
	}
}

// TestURLsHaveNoUserInfo: a password in a URL is refused, and the error does not show it.
func TestURLsHaveNoUserInfo(t *testing.T) {
	server := newAPIServer(t)

	for name, document := range map[string]string{
		"mirror":             `{"kind":"RegistryMirrorConfig","registryMirrorConfig":{"name":"docker.io","endpoints":[{"url":"%s"}]}}`,
		"kernel log":         `{"kind":"KmsgLogConfig","kmsgLogConfig":{"name":"a","url":"%s"}}`,
		"probe":              `{"kind":"HTTPProbeConfig","httpProbeConfig":{"name":"a","url":"%s"}}`,
		"discovery service":  `{"kind":"DiscoveryServiceConfig","discoveryServiceConfig":{"name":"a","endpoint":"%s"}}`,
		"legacy log shipper": `{"kind":"Config","config":{"machine":{"logging":{"destinations":[{"endpoint":"%s"}]}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			if errs := server.validate(t, strings.ReplaceAll(document, "%s", "https://a.example.com:8443/b?c=%40d")); len(errs) > 0 {
				t.Errorf("a plain URL is refused: %v", errs.ToAggregate())
			}

			for _, url := range []string{"https://u:" + secret + "@a.example.com", "https://u:a/" + secret + "@a.example.com", "u:" + secret + "@a.example.com"} {
				errs := server.validate(t, strings.ReplaceAll(document, "%s", url))
				if len(errs) != 1 || errs[0].Type != field.ErrorTypeForbidden || !strings.Contains(errs[0].Detail, "user or password") {
					t.Errorf("got %v, want a refusal of user and password", errs.ToAggregate())
				}

				if len(errs) > 0 && strings.Contains(errs.ToAggregate().Error(), secret) {
					t.Errorf("the error shows the password: %v", errs.ToAggregate())
				}
			}
		})
	}
}

// testClientRefuses proves that an object which was stored before a rule existed is refused as well, and keeps no value.
func testClientRefuses(t *testing.T, raw, message string) {
	t.Helper()

	doc := machineconfigv1alpha1.Document{}
	if err := json.Unmarshal([]byte(raw), &doc); err != nil {
		t.Fatalf("an object that was stored earlier must stay readable: %v", err)
	}

	kept, err := json.Marshal(doc)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}

	if strings.Contains(string(kept), secret) {
		t.Errorf("the value is kept: %s", kept)
	}

	_, why, _ := strings.Cut(message, ": ")

	_, err = doc.TalosJSON(nil)
	if err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("TalosJSON says %v, want: %s", err, why)
	}

	if err != nil && strings.Contains(err.Error(), secret) {
		t.Errorf("TalosJSON's error shows the value: %v", err)
	}
}
