// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
	"github.com/maesh-dev/ichor/internal/suggest"
)

// notOffered says that a field is unknown, and which one may be meant.
func notOffered(name string, known fields) string {
	var names []string

	for each, field := range known.byName {
		if _, _, resolves := machineconfigv1alpha1.Resolves(field); !resolves && refusal(field) == "" {
			names = append(names, each)
		}
	}

	near := cmp.Or(suggest.Nearest(name, names), suggest.Longer(name, names))

	switch {
	case near != "":
		return fmt.Sprintf("unknown field; did you mean %s?", near)
	case len(names) <= maxNamed:
		return "unknown field; the fields here are " + strings.Join(slices.Sorted(slices.Values(names)), ", ")
	default:
		return "unknown field"
	}
}

// maxNamed bounds how many fields are named: a longer list helps nobody.
const maxNamed = 12

// refusal is why no patch can hold a field, empty for one that it can hold.
func refusal(field reflect.StructField) string {
	// A message begins with the field as the schema knows it; here the whole path is known.
	_, why, _ := strings.Cut(machineconfigv1alpha1.Refusal(field), ": ")
	if why != "" && !strings.Contains(why, "use ") {
		why += "; remove the field"
	}

	return why
}

// refusedAt finds a field at or above a pointer that no patch can hold, and why. It is empty when there is none.
func refusedAt(id merge.ID, pointer string) (above, why string) {
	member, ok := reflect.TypeFor[machineconfigv1alpha1.Document]().FieldByName(id.Kind)
	if !ok {
		return "", ""
	}

	t := member.Type

	for _, token := range tokensOf(pointer) {
		t = target(t)
		above += "/" + merge.EscapePointer(token)

		switch t.Kind() {
		case reflect.Struct:
			fields := fieldsOf(t)

			field, ok := fields.byName[token]
			if !ok {
				return "", ""
			}

			if _, referred := fields.references[token]; !referred && refusal(field) != "" {
				return above, refusal(field)
			}

			t = field.Type
		case reflect.Map, reflect.Slice:
			t = t.Elem()
		default:
			return "", ""
		}
	}

	return "", ""
}

// fields are those of a struct by JSON name, and by the field that each reference stands for.
type fields struct {
	byName     map[string]reflect.StructField
	references map[string]reflect.StructField
}

func fieldsOf(t reflect.Type) fields {
	out := fields{byName: map[string]reflect.StructField{}, references: map[string]reflect.StructField{}}

	for _, field := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" || name == "-" || !field.IsExported() {
			continue
		}

		out.byName[name] = field

		if plain, _, ok := machineconfigv1alpha1.Resolves(field); ok {
			out.references[plain] = field
		}
	}

	return out
}
