// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/base64"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// ValueForm says what the value of a reference becomes in the Talos document.
type ValueForm string

// The forms.
const (
	// FormText is the text as it is.
	FormText ValueForm = ""
	// FormBytes is the text in base64.
	FormBytes ValueForm = "bytes"
	// FormPod is the object that the text holds.
	FormPod ValueForm = "pod"
)

// Resolves tells of a field of a document's struct whether it says where the value of a field beside it comes from: the JSON name of
// that field, and the form that the value gets there.
func Resolves(field reflect.StructField) (name string, form ValueForm, ok bool) {
	name, ok = field.Tag.Lookup("resolves")

	return name, ValueForm(field.Tag.Get("form")), ok
}

// found is a reference and the place in the Talos document that its value goes to.
type found struct {
	Reference
	pointer string
}

// target is a field that another field gives a value.
type target struct {
	object map[string]any // the Talos object that holds it
	name   string
	place  place
	form   ValueForm
	list   bool // entries are items of the form NAME=value
}

// resolve sets the field that a reference stands for. A fault is noted and does not end the walk.
func (e *talosEncoder) resolve(object map[string]any, owner reflect.Value, field reflect.StructField, v reflect.Value, parent place) {
	at := parent.field(jsonName(field))
	name, form, _ := Resolves(field)
	to := target{object: object, name: name, place: parent.field(name), form: form, list: isList(owner, name)}

	switch from := v.Interface().(type) {
	case *SecretKeyReference:
		e.single(to, Reference{
			Path: at.path, Field: to.place.pointer, Source: Source{Kind: SourceSecret, Name: from.Name, Key: from.Key}, Credential: true,
		})
	case *ValueSource:
		if ref, ok := e.reference(to, from, at); ok {
			e.single(to, ref)
		}
	case map[string]ValueSource:
		e.entries(to, from, at)
	case []ValueSource:
		e.items(to, from, at)
	}
}

// isList reports whether a field of a struct is a list.
func isList(owner reflect.Value, name string) bool {
	for field := range owner.Type().Fields() {
		if jsonName(field) == name {
			return field.Type.Kind() == reflect.Slice
		}
	}

	return false
}

func (e *talosEncoder) reference(to target, from *ValueSource, at place) (Reference, bool) {
	source, ok := from.source()
	ref := Reference{Path: at.path, Field: to.place.pointer, Pod: to.form == FormPod, Source: source}

	if !ok {
		e.fault(ref, "set exactly one of secretKeyRef and configMapKeyRef")
	}

	return ref, ok
}

func (e *talosEncoder) fault(ref Reference, message string) {
	e.faults = append(e.faults, ReferenceFault{Reference: ref, Message: message})
}

func (e *talosEncoder) single(to target, ref Reference) {
	if _, plain := to.object[to.name]; plain {
		e.fault(ref, to.name+" is set as well; set one of the two")

		return
	}

	if value, ok := e.take(ref, to.place, to.form); ok {
		to.object[to.name] = value
	}
}

// entries adds to a map, or to a list of NAME=value.
func (e *talosEncoder) entries(to target, from map[string]ValueSource, at place) {
	written := len(e.references)
	plain := map[string]bool{}
	list, _ := to.object[to.name].([]any)

	object, ok := to.object[to.name].(map[string]any)
	if !ok {
		object = map[string]any{}
	}

	for _, item := range list {
		name, _, _ := strings.Cut(fmt.Sprint(item), "=")
		plain[name] = true
	}

	for name := range object {
		plain[name] = true
	}

	for _, name := range slices.Sorted(maps.Keys(from)) {
		source := from[name]

		ref, ok := e.reference(to, &source, at.key(name))
		if !ok {
			continue
		}

		switch {
		case plain[name]:
			e.fault(ref, fmt.Sprintf("%s sets %s as well; set it in one of the two", to.name, name))

			continue
		case to.list && (name == "" || strings.Contains(name, "=")):
			e.fault(ref, "a variable's name is not empty and has no =")

			continue
		}

		place := to.place.key(name)
		if to.list {
			place = to.place.index(len(list))
		}

		// Without a value an entry is kept all the same, so that the places of the others are told right.
		value, _ := e.take(ref, place, to.form)
		list = append(list, fmt.Sprintf("%s=%s", name, value))
		object[name] = value
	}

	switch {
	case len(e.references) == written: // nothing is added
	case to.list:
		to.object[to.name] = list
	default:
		to.object[to.name] = object
	}
}

// items makes a list of which every element comes from elsewhere.
func (e *talosEncoder) items(to target, from []ValueSource, at place) {
	list := make([]any, 0, len(from))

	for i := range from {
		ref, ok := e.reference(to, &from[i], at.index(i))
		if !ok {
			continue
		}

		if value, ok := e.take(ref, to.place.index(i), to.form); ok {
			list = append(list, value)
		}
	}

	to.object[to.name] = list
}

// take notes a reference and gets its value in the form that Talos wants. A walk that resolves nothing gets none.
func (e *talosEncoder) take(ref Reference, to place, form ValueForm) (any, bool) {
	e.references = append(e.references, found{Reference: ref, pointer: to.pointer})

	if !e.resolving {
		return nil, false
	}

	value, ok := "", false
	if e.values != nil {
		value, ok = e.values(ref.Source)
	}

	if !ok {
		e.faults = append(e.faults, ReferenceFault{Reference: ref, Missing: true, Message: "there is no " + ref.Source.String()})

		return nil, false
	}

	most := 0
	if ref.Credential {
		value, most = Credential(value), MaxCredential
	}

	if err := CheckValue(value, most); err != nil {
		e.fault(ref, ref.Source.String()+" "+err.Error())

		return nil, false
	}

	switch {
	case ref.Credential && value == "":
		e.fault(ref, ref.Source.String()+" is empty")
	case form == FormBytes:
		return base64.StdEncoding.EncodeToString([]byte(value)), true
	case form == FormPod:
		pod, err := decodePod(value, ref.Source.Kind == SourceSecret)
		if err == nil {
			return pod, true
		}

		e.fault(ref, ref.Source.String()+" "+err.Error())
	default:
		return value, true
	}

	return nil, false
}

// Credential is the credential in the value of a Secret's key: without the newline with which many tools end a file of one line. A value
// of several lines, such as a key in PEM, is kept as it is.
func Credential(value string) string {
	line, rest, found := strings.Cut(value, "\n")
	if !found || rest != "" {
		return value
	}

	return strings.TrimSuffix(line, "\r")
}
