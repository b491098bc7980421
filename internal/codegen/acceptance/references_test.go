// SPDX-License-Identifier: Apache-2.0

package acceptance_test

import (
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
)

// sources are the values that documents refer to.
type sources map[machineconfigv1alpha1.Source]string

func (s sources) value(source machineconfigv1alpha1.Source) (string, bool) {
	value, ok := s[source]

	return value, ok
}

// put stores a value in a new key of a Secret.
func (s sources) put(value string) *machineconfigv1alpha1.SecretKeyReference {
	ref := &machineconfigv1alpha1.SecretKeyReference{Name: "secret", Key: "key-" + strconv.Itoa(len(s))}
	s[machineconfigv1alpha1.Source{Kind: machineconfigv1alpha1.SourceSecret, Name: ref.Name, Key: ref.Key}] = value

	return ref
}

// putPublic stores a value in a new key of a ConfigMap.
func (s sources) putPublic(value string) *machineconfigv1alpha1.ConfigMapKeyReference {
	ref := &machineconfigv1alpha1.ConfigMapKeyReference{Name: "config", Key: "key-" + strconv.Itoa(len(s))}
	s[machineconfigv1alpha1.Source{Kind: machineconfigv1alpha1.SourceConfigMap, Name: ref.Name, Key: ref.Key}] = value

	return ref
}

// byReference reads a document of Talos' as a user would write it: what can only come by reference does.
func byReference(t *testing.T, kind string, source []byte, values sources) *machineconfigv1alpha1.Document {
	t.Helper()

	var tree map[string]any

	if err := json.Unmarshal(source, &tree); err != nil {
		t.Fatalf("JSON: %v", err)
	}

	delete(tree, "apiVersion")
	delete(tree, "version")
	delete(tree, "kind")

	member, _ := reflect.TypeFor[machineconfigv1alpha1.Document]().FieldByName(kind)
	refer(t, member.Type, tree, values)

	content, err := json.Marshal(map[string]any{"kind": kind, jsonName(member): tree})
	if err != nil {
		t.Fatalf("JSON: %v", err)
	}

	doc := &machineconfigv1alpha1.Document{}
	if err := json.Unmarshal(content, doc); err != nil {
		t.Fatalf("typed: %v", err)
	}

	return doc
}

// refer moves what a document must not hold out of a tree.
func refer(t *testing.T, typ reflect.Type, tree any, values sources) {
	t.Helper()

	switch tree := tree.(type) {
	case []any:
		for _, item := range tree {
			refer(t, typ.Elem(), item, values)
		}
	case map[string]any:
		if typ.Kind() == reflect.Map {
			for _, value := range tree {
				refer(t, typ.Elem(), value, values)
			}

			return
		}

		for typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}

		if typ.Kind() != reflect.Struct {
			return
		}

		for field := range typ.Fields() {
			if _, refused := field.Tag.Lookup("refused"); refused {
				continue
			}

			if target := field.Tag.Get("resolves"); target != "" && mustRefer(typ, target) {
				referField(t, field, target, tree, values)
			} else if value, there := tree[jsonName(field)]; there {
				refer(t, field.Type, value, values)
			}
		}
	}
}

func mustRefer(typ reflect.Type, target string) bool {
	for field := range typ.Fields() {
		if _, refused := field.Tag.Lookup("refused"); refused && jsonName(field) == target {
			return true
		}
	}

	return false
}

func referField(t *testing.T, field reflect.StructField, target string, tree map[string]any, values sources) {
	t.Helper()

	value, there := tree[target]
	delete(tree, target)

	if !there || value == "" || value == nil {
		return // machinery writes some fields even if they are empty
	}

	name := jsonName(field)

	switch field.Type {
	case reflect.TypeFor[*machineconfigv1alpha1.SecretKeyReference]():
		tree[name] = values.put(text(t, field, value))
	case reflect.TypeFor[*machineconfigv1alpha1.ValueSource]():
		tree[name] = machineconfigv1alpha1.ValueSource{SecretKeyRef: values.put(text(t, field, value))}
	case reflect.TypeFor[[]machineconfigv1alpha1.ValueSource]():
		list := []any{}
		for _, item := range value.([]any) { //nolint:forcetypeassert // the field is a list
			list = append(list, machineconfigv1alpha1.ValueSource{SecretKeyRef: values.put(text(t, field, item))})
		}

		tree[name] = list
	default:
		t.Fatalf("%s: no way to refer by a %s", name, field.Type)
	}
}

// text is a value as it stands in a Secret.
func text(t *testing.T, field reflect.StructField, value any) string {
	t.Helper()

	switch form := field.Tag.Get("form"); form {
	case "":
		return value.(string) //nolint:forcetypeassert // such fields are texts
	case "bytes":
		raw, err := base64.StdEncoding.DecodeString(value.(string)) //nolint:forcetypeassert // base64 is a text
		if err != nil {
			t.Fatalf("%s: %v", field.Name, err)
		}

		return string(raw)
	case "pod":
		raw, err := json.Marshal(value)
		if err != nil {
			t.Fatalf("%s: %v", field.Name, err)
		}

		return string(raw)
	default:
		t.Fatalf("%s: form %s is not known", field.Name, form)

		return ""
	}
}

const examplePod = `
apiVersion: v1
kind: Pod
metadata:
  name: example
spec:
  containers:
    - name: main
      image: registry.example.org/main:1.0
      resources: {limits: {cpu: 2, memory: 1Gi}}
`

// fillReference sets a field that says where the value of another one comes from. Where that one can be set as well, the turn
// decides which of the two is.
func (f *filler) fillReference(t *testing.T, owner reflect.Value, i int) {
	t.Helper()

	field, v := owner.Type().Field(i), owner.Field(i)
	name := field.Tag.Get("resolves")
	text := func() string {
		f.texts++

		if field.Tag.Get("form") == "pod" {
			return examplePod
		}

		return "text" + strconv.Itoa(f.texts)
	}

	switch v.Interface().(type) {
	case *machineconfigv1alpha1.SecretKeyReference:
		v.Set(reflect.ValueOf(f.sources.put(text() + "\n")))
	case map[string]machineconfigv1alpha1.ValueSource:
		v.Set(reflect.ValueOf(map[string]machineconfigv1alpha1.ValueSource{
			"A": {SecretKeyRef: f.sources.put(text())}, "B": {ConfigMapKeyRef: f.sources.putPublic(text())},
		}))
	case *machineconfigv1alpha1.ValueSource:
		if !mustRefer(owner.Type(), name) && f.turn%2 == 0 {
			return
		}

		v.Set(reflect.ValueOf(&machineconfigv1alpha1.ValueSource{SecretKeyRef: f.sources.put(text())}))

		for j, other := range reflect.VisibleFields(owner.Type()) {
			if jsonName(other) == name {
				owner.Field(j).SetZero()
			}
		}
	case []machineconfigv1alpha1.ValueSource:
		v.Set(reflect.ValueOf([]machineconfigv1alpha1.ValueSource{{SecretKeyRef: f.sources.put(text())}, {ConfigMapKeyRef: f.sources.putPublic(text())}}))
	default:
		t.Fatalf("%s: no way to refer by a %s", field.Name, field.Type)
	}
}

func jsonName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")

	return name
}

// redactsReferencesOnly proves that the document has no place for what Talos itself holds to be a secret but those that come
// from Secrets, and that every credential is such a place.
func redactsReferencesOnly(t *testing.T, doc *machineconfigv1alpha1.Document, source []byte) {
	t.Helper()

	provider, err := read(source)
	if err != nil {
		t.Fatalf("machinery refuses the document: %v", err)
	}

	redacted := map[string]bool{}
	after := leaves(t, encodeJSON(t, provider.RedactSecrets("REDACTED")))

	for path, value := range leaves(t, encodeJSON(t, provider)) {
		if !cmp.Equal(value, after[path]) {
			redacted[path] = true
		}
	}

	var tree any

	if err := json.Unmarshal(source, &tree); err != nil {
		t.Fatalf("JSON: %v", err)
	}

	for _, pointer := range doc.ResolvedSecrets() {
		path, there := pathOf(tree, pointer)
		if !there {
			t.Errorf("%s leads to nothing", pointer)
		}

		delete(redacted, path)
	}

	for path := range redacted {
		t.Errorf("Talos redacts %s, and it can be written", path)
	}
}

// pathOf turns a JSON Pointer into the form that leaves uses, and reports whether it leads to something.
func pathOf(tree any, pointer string) (string, bool) {
	path := ""

	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")

		switch node := tree.(type) {
		case map[string]any:
			tree, path = node[step], strings.TrimPrefix(path+"."+step, ".")
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(node) {
				return path, false
			}

			tree, path = node[i], path+"["+step+"]"
		default:
			return path, false
		}
	}

	return path, tree != nil
}

// TestSecretsInPlaceOfReferences: who writes a secret where a reference belongs is told so, without the secret.
func TestSecretsInPlaceOfReferences(t *testing.T) {
	server := newAPIServer(t)
	fields := taggedFields("resolves")

	if len(fields) < 30 {
		t.Fatalf("found %d references; the walk misses some", len(fields))
	}

	for _, f := range fields {
		for i, value := range []any{secret, 4711, []any{secret}, map[string]any{"secretKeyRef": secret}, map[string]any{"A": secret}, map[string]any{"name": []any{secret}}} {
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
