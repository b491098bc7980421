// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// checkChoice checks a field whose content follows from the value of a field beside it, as the arguments of a scheduler plugin
// follow from its name: tag by names that field, and tag choices lists which fields each value has, "A:x,y;B:z,kind=K". The
// schema says the same; this holds where no API server was asked.
func checkChoice(owner reflect.Value, field reflect.StructField, content reflect.Value, at string) error {
	by, decided := field.Tag.Lookup("by")
	if !decided {
		return nil
	}

	choices := map[string][]string{}

	var known []string

	for choice := range strings.SplitSeq(field.Tag.Get("choices"), ";") {
		name, fields, _ := strings.Cut(choice, ":")
		choices[name] = strings.Split(fields, ",")
		known = append(known, name)
	}

	chosen := textField(owner, by)

	fields, ok := choices[chosen]
	if !ok {
		return fmt.Errorf("%s: has a type for %s %s only, and %s is %q", at, by, strings.Join(known, ", "), by, chosen)
	}

	for content.Kind() == reflect.Pointer {
		content = content.Elem()
	}

	for i := range content.NumField() {
		name := jsonName(content.Type().Field(i))

		switch set := !isNil(content.Field(i)); {
		case !set, name == "apiVersion", slices.Contains(fields, name):
		case name == "kind":
			if kind := textField(content, name); !slices.Contains(fields, "kind="+kind) {
				return fmt.Errorf("%s.kind: does not belong to %s %q", at, by, chosen)
			}
		default:
			return fmt.Errorf("%s.%s: does not belong to %s %q", at, name, by, chosen)
		}
	}

	return nil
}

// textField is the value of a string field by its JSON name, empty if it is not set.
func textField(v reflect.Value, name string) string {
	for i := range v.NumField() {
		if jsonName(v.Type().Field(i)) != name {
			continue
		}

		f := v.Field(i)
		if f.Kind() == reflect.Pointer && !f.IsNil() {
			f = f.Elem()
		}

		if f.Kind() == reflect.String {
			return f.String()
		}
	}

	return ""
}
