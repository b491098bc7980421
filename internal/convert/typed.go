// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
	kjson "sigs.k8s.io/json"

	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

// typed makes the document of the API from one that Talos takes. Presence in the file decides what is set: an explicit zero is
// kept, and nothing is added.
func (s *source) typed(secret *vault) (machineconfigv1alpha1.Document, bool) {
	var made machineconfigv1alpha1.Document

	member, ok := reflect.TypeFor[machineconfigv1alpha1.Document]().FieldByName(s.id.Kind)
	if !ok || s.id.Kind == "Kind" {
		s.fault("", 0, errNotOffered.Error())

		return made, false
	}

	w := &walker{s: s, secret: secret, plain: machineconfig.PlainSecrets(s.document), canonical: map[string]string{}, named: map[string]bool{}}
	for _, pointer := range machineconfig.NamedSecrets(s.document) {
		w.named[pointer] = true
	}

	for _, leaf := range merge.LeavesOf(s.document) {
		w.canonical[leaf.Pointer] = leaf.Value.Reveal()
	}

	content := w.root(member.Type)

	// What stands in a field without a place for a reference to it is all that is left here.
	for _, pointer := range slices.Sorted(maps.Keys(w.plain)) {
		s.fault(pointer, s.at(pointer).Line, w.plain[pointer].Error())
	}

	if len(s.faults) > 0 {
		return made, false
	}

	name, _, _ := strings.Cut(member.Tag.Get("json"), ",")

	data, err := json.Marshal(map[string]any{"kind": s.id.Kind, name: content})
	if err == nil {
		var strict []error
		if strict, err = kjson.UnmarshalStrict(data, &made); err == nil && len(strict) > 0 {
			err = strict[0]
		}
	}

	if err != nil {
		s.fault("", 0, "does not fit the fields of a TalosConfigPatch: "+err.Error())

		return made, false
	}

	w.compare(&made)

	return made, len(s.faults) == 0
}

// walker makes the JSON values of the API's types from YAML nodes.
type walker struct {
	s      *source
	secret *vault

	// plain are the secrets in so many words that have not found a place yet, by pointer.
	plain map[string]error

	// named are the variables whose names say that they hold a secret, by pointer. They move where there is a place for a reference.
	named map[string]bool

	// canonical are the values as Talos writes them, by pointer: it takes some words in any case, the API server does not.
	canonical map[string]string

	// reordered are the lists of which entries moved, and credentials the fields that did.
	reordered, credentials []string

	// single are the lists of one text that say the same as the text.
	single []string
}

// root leaves out what says which document it is.
func (w *walker) root(t reflect.Type) any {
	bare := *w.s.root
	bare.Content = nil

	identity := []string{"apiVersion", "kind"}
	if w.s.id.Kind == merge.LegacyKind {
		identity = []string{"version"}
	}

	for i := 0; i+1 < len(w.s.root.Content); i += 2 {
		key, value := w.s.root.Content[i], w.s.root.Content[i+1]

		if key.Value == "version" && w.s.id.Kind == merge.LegacyKind && value.Value != "v1alpha1" && !isNull(value) {
			w.s.fault("/version", key.Line, "is not v1alpha1, the one version that there is")
		}

		if !slices.Contains(identity, key.Value) {
			bare.Content = append(bare.Content, key, value)
		}
	}

	return w.value(&bare, t, "")
}

// value is the JSON value of a node. Where a type has its own way to be read, the text of a scalar is enough for it.
func (w *walker) value(node *yaml.Node, t reflect.Type, pointer string) any {
	t = target(t)

	if reflect.PointerTo(t).Implements(unmarshaler) {
		return w.own(node, t, pointer)
	}

	switch t.Kind() {
	case reflect.Struct:
		return w.structure(node, t, pointer)
	case reflect.Map:
		return w.entries(node, t, pointer)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return strings.Join(strings.Fields(node.Value), "")
		}

		return w.items(node, t, pointer)
	case reflect.Interface:
		return freeForm(node)
	case reflect.String:
		return w.text(node, t, pointer)
	default:
		return w.scalar(node, t, pointer)
	}
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// own is for types that read JSON themselves: quantities, numbers with names, arguments.
func (w *walker) own(node *yaml.Node, t reflect.Type, pointer string) any {
	switch {
	case node.Kind == yaml.SequenceNode && t.Kind() == reflect.Slice:
		if len(node.Content) == 1 && node.Content[0].Kind == yaml.ScalarNode {
			w.single = append(w.single, pointer)
		}

		return w.items(node, t, pointer)
	case node.Kind != yaml.ScalarNode:
		return freeForm(node)
	case isNull(node) && t.Kind() == reflect.Slice:
		return ""
	case node.ShortTag() == "!!int" && t.Kind() == reflect.Struct:
		return w.scalar(node, reflect.TypeFor[int64](), pointer)
	default:
		return w.text(node, t, pointer)
	}
}

// text is a scalar as its text. A word of the API that Talos knows under the same letters is written as Talos does.
func (w *walker) text(node *yaml.Node, t reflect.Type, pointer string) any {
	if isNull(node) {
		return ""
	}

	if known := w.canonical[pointer]; t.PkgPath() != "" && strings.EqualFold(known, node.Value) {
		return known
	}

	return node.Value
}

func (w *walker) scalar(node *yaml.Node, t reflect.Type, pointer string) any {
	value := reflect.New(t)
	if err := node.Decode(value.Interface()); err != nil {
		w.s.fault(pointer, node.Line, wanted(node, t.Kind()))
	}

	return value.Elem().Interface()
}

// wanted says what a plain type takes.
func wanted(node *yaml.Node, kind reflect.Kind) string {
	var (
		want  string
		plain any
	)

	switch kind {
	case reflect.Bool:
		want = "true or false"
	case reflect.Float32, reflect.Float64:
		want = "a number"
	default:
		want = "a whole number"
	}

	if yaml.Unmarshal([]byte(node.Value), &plain) == nil && node.ShortTag() == "!!str" {
		if _, text := plain.(string); !text {
			return "want " + want + ", and found text: write it without quotes"
		}
	}

	return "want " + want
}

func (w *walker) structure(node *yaml.Node, t reflect.Type, pointer string) any {
	out := map[string]any{}
	fields := fieldsOf(t)

	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if isNull(value) {
			continue // says nothing, as in Talos
		}

		at := pointer + "/" + merge.EscapePointer(key.Value)

		field, ok := fields.byName[key.Value]
		if !ok {
			w.s.fault(at, key.Line, notOffered(key.Value, fields))

			continue
		}

		if reference, ok := fields.references[key.Value]; ok && w.refer(out, reference, field, value, at) {
			continue
		}

		if why := refusal(field); why != "" {
			w.s.fault(at, key.Line, why)
			w.forget(at)

			continue
		}

		out[key.Value] = w.value(value, field.Type, at)
	}

	return out
}

// forget drops the secrets at and below a pointer that was told of already.
func (w *walker) forget(pointer string) {
	for each := range w.plain {
		if each == pointer || strings.HasPrefix(each, pointer+"/") {
			delete(w.plain, each)
		}
	}
}

func (w *walker) entries(node *yaml.Node, t reflect.Type, pointer string) any {
	out := map[string]any{}

	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i].Value
		out[key] = w.value(node.Content[i+1], t.Elem(), pointer+"/"+merge.EscapePointer(key))
	}

	return out
}

func (w *walker) items(node *yaml.Node, t reflect.Type, pointer string) any {
	out := make([]any, 0, len(node.Content))

	for i, item := range node.Content {
		out = append(out, w.value(item, t.Elem(), pointer+"/"+strconv.Itoa(i)))
	}

	return out
}

// freeForm is a value without a type: what YAML makes of it, with times as the text that was written.
func freeForm(node *yaml.Node) any {
	switch node.Kind { //nolint:exhaustive // aliases are gone
	case yaml.MappingNode:
		out := map[string]any{}
		for i := 0; i+1 < len(node.Content); i += 2 {
			out[node.Content[i].Value] = freeForm(node.Content[i+1])
		}

		return out
	case yaml.SequenceNode:
		out := make([]any, 0, len(node.Content))
		for _, item := range node.Content {
			out = append(out, freeForm(item))
		}

		return out
	}

	if node.ShortTag() == "!!timestamp" || node.ShortTag() == "!!binary" {
		return node.Value
	}

	var value any
	if node.Decode(&value) != nil {
		return node.Value
	}

	return value
}

// compare proves that Talos reads the same out of the patch as it did out of the file.
func (w *walker) compare(made *machineconfigv1alpha1.Document) {
	const other = "has a form that a TalosConfigPatch cannot keep: write it as Talos' reference does"

	data, err := talosJSON(made, w.secret)
	if unusable, ok := errors.AsType[*machineconfigv1alpha1.ReferenceError](err); ok {
		for _, each := range unusable.Faults {
			pointer := plainPointer(pathTokens(each.Reference.Path))
			w.s.fault(pointer, w.s.at(pointer).Line, aboutField(each))
		}

		return
	}

	if err != nil {
		w.s.fault("", 0, "cannot be written back: "+err.Error())

		return
	}

	patch, err := merge.Load(data)
	if err != nil || len(patch.Documents()) != 1 || patch.Documents()[0].Document == nil {
		w.s.fault("", 0, fmt.Sprintf("is not read back by Talos: %v", err))

		return
	}

	before, after := w.leaves(w.s.document), w.leaves(patch.Documents()[0].Document)

	for pointer := range after {
		if _, ok := before[pointer]; !ok {
			before[pointer] = "" // differs, or is as good as absent
		}
	}

	for _, pointer := range slices.Sorted(maps.Keys(before)) {
		if after[pointer] == before[pointer] {
			continue
		}

		message := other
		if node := find(w.s.root, pointer); node != nil && isNull(node) {
			message = "is null, which a TalosConfigPatch cannot keep: remove it, or to remove what other patches set, write {$patch: delete} instead"
		}

		w.s.fault(pointer, w.s.at(pointer).Line, message)
	}
}

func decodeBase64(text string) (string, bool) {
	decoded, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))

	return string(decoded), err == nil
}
