// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// talosEncoder makes the tree of JSON values that Talos reads from the typed one. Presence decides what is written: a nil
// pointer, list or map is left out, everything else is kept, so an explicit zero reaches Talos and an absent field does not.
type talosEncoder struct {
	refused    []RefusedField
	references []found
	faults     []ReferenceFault

	resolving bool   // whether references become values
	values    Values // may be nil
}

// place is where in a document the encoder is: as errors show it, and as a JSON Pointer into the Talos document.
type place struct{ path, pointer string }

func (p place) field(name string) place {
	path := name
	if p.path != "" {
		path = p.path + "." + name
	}

	return place{path: path, pointer: p.pointer + "/" + escapePointer(name)}
}

func (p place) key(name string) place {
	return place{path: p.path + "[" + name + "]", pointer: p.pointer + "/" + escapePointer(name)}
}

func (p place) index(i int) place { return p.key(strconv.Itoa(i)) }

func escapePointer(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// talosValuer is implemented by types whose form in Talos differs from that in the API server.
type talosValuer interface{ talosValue() any }

func (e *talosEncoder) value(v reflect.Value, at place) (any, error) {
	if valuer, ok := reflect.TypeAssert[talosValuer](v); ok && v.Kind() != reflect.Pointer {
		return valuer.talosValue(), nil
	}

	if marshaler, ok := reflect.TypeAssert[json.Marshaler](v); ok && v.Kind() == reflect.Struct {
		raw, err := marshaler.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", at.path, err)
		}

		return json.RawMessage(raw), nil
	}

	switch v.Kind() {
	case reflect.Pointer:
		return e.value(v.Elem(), at)
	case reflect.Struct:
		return e.structValue(v, at)
	case reflect.Map:
		return e.mapValue(v, at)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return base64.StdEncoding.EncodeToString(v.Bytes()), nil
		}

		return e.listValue(v, at)
	default:
		return v.Interface(), nil
	}
}

func (e *talosEncoder) structValue(v reflect.Value, at place) (any, error) {
	out := make(map[string]any, v.NumField())

	for i := range v.NumField() {
		field, fv := v.Type().Field(i), v.Field(i)
		if isNil(fv) {
			continue
		}

		name := jsonName(field)

		if message := Refusal(field); message != "" {
			e.refused = append(e.refused, RefusedField{Path: at.field(name).path, Message: message})

			continue
		}

		if _, _, refers := Resolves(field); refers {
			// The field that it stands for comes before it.
			e.resolve(out, v, field, fv, at)

			continue
		}

		if err := checkChoice(v, field, fv, at.field(name).path); err != nil {
			return nil, err
		}

		value, err := e.value(fv, at.field(name))
		if err != nil {
			return nil, err
		}

		out[name] = value
	}

	return out, nil
}

func (e *talosEncoder) mapValue(v reflect.Value, at place) (any, error) {
	out := make(map[string]any, v.Len())
	elements := make(map[string]reflect.Value, v.Len())

	for iter := v.MapRange(); iter.Next(); {
		elements[iter.Key().String()] = iter.Value()
	}

	// Sorted, so that errors and refused fields come in a fixed order.
	for _, key := range slices.Sorted(maps.Keys(elements)) {
		value, err := e.value(elements[key], at.key(key))
		if err != nil {
			return nil, err
		}

		out[key] = value
	}

	return out, nil
}

func (e *talosEncoder) listValue(v reflect.Value, at place) (any, error) {
	out := make([]any, 0, v.Len())

	for i := range v.Len() {
		value, err := e.value(v.Index(i), at.index(i))
		if err != nil {
			return nil, err
		}

		out = append(out, value)
	}

	return out, nil
}

func isNil(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return v.IsNil()
	default:
		return false
	}
}

func jsonName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")

	return name
}
