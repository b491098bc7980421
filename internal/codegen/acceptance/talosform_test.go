// SPDX-License-Identifier: Apache-2.0

package acceptance_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	kjson "sigs.k8s.io/json"

	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
)

// fromTalosJSON reads a document in the form in which Talos writes it. A field that is not known is an error, and one that no patch may
// set is a *RefusedError: nothing is dropped. No program reads documents so; it is the way back in the round trips.
func fromTalosJSON(data []byte) (*machineconfigv1alpha1.Document, error) {
	var object map[string]any

	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()

	if err := decoder.Decode(&object); err != nil {
		return nil, fmt.Errorf("the document is no JSON object: %w", err)
	}

	kind, modern := object["kind"].(string)
	if !modern {
		kind = string(machineconfigv1alpha1.KindConfig)
	}

	delete(object, "apiVersion")
	delete(object, "version")
	delete(object, "kind")

	member, ok := reflect.TypeFor[machineconfigv1alpha1.Document]().FieldByName(kind)
	if !ok {
		return nil, fmt.Errorf("kind %q is not offered", kind)
	}

	content, err := json.Marshal(map[string]any{"kind": kind, jsonName(member): asTexts(member.Type, object)})
	if err != nil {
		return nil, err
	}

	doc := &machineconfigv1alpha1.Document{}

	strict, err := kjson.UnmarshalStrict(content, doc)
	if err := errors.Join(append(strict, err)...); err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}

	_, err = doc.TalosJSON(nil)
	if refused, ok := errors.AsType[*machineconfigv1alpha1.RefusedError](err); ok {
		return nil, refused
	}

	return doc, nil
}

// asTexts makes texts of numbers where the API has texts: machinery writes a size as a number where no unit fits, and an
// argument may be one.
func asTexts(typ reflect.Type, tree any) any {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}

	switch value := tree.(type) {
	case json.Number:
		if typ.Kind() == reflect.String || typ.Kind() == reflect.Slice {
			return value.String()
		}
	case []any:
		if typ.Kind() == reflect.Slice {
			for i := range value {
				value[i] = asTexts(typ.Elem(), value[i])
			}
		}
	case map[string]any:
		switch typ.Kind() {
		case reflect.Map:
			for key := range value {
				value[key] = asTexts(typ.Elem(), value[key])
			}
		case reflect.Struct:
			for field := range typ.Fields() {
				if inner, there := value[jsonName(field)]; there {
					value[jsonName(field)] = asTexts(field.Type, inner)
				}
			}
		}
	}

	return tree
}
