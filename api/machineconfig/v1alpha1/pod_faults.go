// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"
)

// incompletePod says what a pod lacks without which no kubelet runs it. Nobody tells later: Talos hands pods on as they are, and the
// kubelet only logs that it takes none.
func incompletePod(pod *corev1.Pod) error {
	var faults []error

	missing := func(field, want string) { faults = append(faults, fmt.Errorf("%s: want %s", field, want)) }

	if pod.Name == "" {
		missing("metadata.name", "a name")
	}

	if len(pod.Spec.Containers) == 0 {
		missing("spec.containers", "at least one container")
	}

	for list, containers := range map[string][]corev1.Container{"containers": pod.Spec.Containers, "initContainers": pod.Spec.InitContainers} {
		for i := range containers {
			if containers[i].Name == "" {
				missing(fmt.Sprintf("spec.%s[%d].name", list, i), "a name")
			}

			if containers[i].Image == "" {
				missing(fmt.Sprintf("spec.%s[%d].image", list, i), "an image")
			}
		}
	}

	slices.SortFunc(faults, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })

	return errors.Join(faults...)
}

// misshapen says which field of an object in JSON has a value of the wrong form, and what its type takes. It shows names of fields and
// no value. It is for what a decoder has refused.
func misshapen(data json.RawMessage, t reflect.Type, path string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}

	if kjson.UnmarshalCaseSensitivePreserveInts(data, reflect.New(t).Interface()) == nil {
		return nil
	}

	within := func(inner error, want string) error {
		if inner != nil {
			return inner
		}

		return fmt.Errorf("%s: want %s", path, want)
	}

	switch {
	case reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()):
		return within(nil, "a "+strings.ToLower(t.Name()))
	case t.Kind() == reflect.Struct:
		return within(misshapenField(data, t, path), "an object")
	case t.Kind() == reflect.Map:
		return within(misshapenEntry(data, t, path), "an object")
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		return within(misshapenItem(data, t, path), "a list")
	case t.Kind() == reflect.String:
		return within(nil, "text")
	case t.Kind() == reflect.Bool:
		return within(nil, "true or false")
	case t.Kind() == reflect.Slice:
		return within(nil, "base64")
	default:
		return within(nil, "a whole number")
	}
}

func misshapenField(data json.RawMessage, t reflect.Type, path string) error {
	values := map[string]json.RawMessage{}
	_ = json.Unmarshal(data, &values) // what is no object has no fields

	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")

		value, at := data, path // of an embedded struct, whose fields stand in the same object
		if name != "" {
			value, at = values[name], strings.TrimPrefix(path+"."+name, ".")
		}

		if value == nil {
			continue
		}

		if err := misshapen(value, field.Type, at); err != nil {
			return err
		}
	}

	return nil
}

func misshapenEntry(data json.RawMessage, t reflect.Type, path string) error {
	values := map[string]json.RawMessage{}
	_ = json.Unmarshal(data, &values) // what is no object has no fields

	for _, key := range slices.Sorted(maps.Keys(values)) {
		if err := misshapen(values[key], t.Elem(), fmt.Sprintf("%s[%s]", path, key)); err != nil {
			return err
		}
	}

	return nil
}

func misshapenItem(data json.RawMessage, t reflect.Type, path string) error {
	var values []json.RawMessage
	_ = json.Unmarshal(data, &values) // what is no list has no items

	for i, value := range values {
		if err := misshapen(value, t.Elem(), fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return err
		}
	}

	return nil
}
