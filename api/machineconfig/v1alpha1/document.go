// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// talosVersion is the one apiVersion that Talos' documents have, and the legacy document's version.
const talosVersion = "v1alpha1"

// Body returns the content of the document: the field that kind names, as a pointer to its struct. ok is false if that field
// is not set, if kind is unknown, or if another field is set as well; the API server admits no such document.
func (d *Document) Body() (kind string, body any, ok bool) {
	populated := d.populated()
	if len(populated) != 1 || populated[0] != d.Kind {
		return string(d.Kind), nil, false
	}

	return string(d.Kind), reflect.ValueOf(d.member(d.Kind)).Elem().Interface(), true
}

// TalosJSON is the document as Talos reads it: its content with apiVersion and kind, or version for the legacy document
// (kind Config). What was written is kept, explicit zeros included, and nothing is added but the values of its references.
//
// A single newline at the end of a credential of one line is dropped, since files often end with one; other values are kept as
// they are. A pod is read strictly, in YAML or JSON.
//
// It fails if the document does not set exactly the field that kind names, with a *RefusedError if it sets fields that no patch
// may set, and with a *ReferenceError if a reference cannot be used: values is nil or does not know the source, the field that
// it stands for is set as well, or the value has not the form that Talos takes. Errors carry no value.
func (d *Document) TalosJSON(values Values) ([]byte, error) {
	kind, body, ok := d.Body()
	if !ok {
		return nil, d.unionError()
	}

	enc := talosEncoder{resolving: true, values: values}

	tree, err := enc.value(reflect.ValueOf(body), place{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}

	if len(enc.refused) > 0 {
		return nil, &RefusedError{Kind: d.Kind, Fields: enc.refused}
	}

	if len(enc.faults) > 0 {
		return nil, &ReferenceError{Kind: d.Kind, Faults: enc.faults}
	}

	object, _ := tree.(map[string]any)

	if d.Kind == KindConfig {
		object["version"] = talosVersion
	} else {
		object["apiVersion"], object["kind"] = talosVersion, d.talosKind()
	}

	out, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}

	return out, nil
}

func (d *Document) unionError() error {
	populated := d.populated()

	switch {
	case d.Kind == "":
		return errors.New("kind is not set")
	case d.member(d.Kind) == nil:
		return fmt.Errorf("kind %q is not known", d.Kind)
	case len(populated) == 0:
		return fmt.Errorf("%s: the field %s is not set", d.Kind, memberJSON(d.Kind))
	default:
		fields := make([]string, 0, len(populated))
		for _, kind := range populated {
			fields = append(fields, memberJSON(kind))
		}

		return fmt.Errorf("%s: sets %s; want %s alone", d.Kind, strings.Join(fields, " and "), memberJSON(d.Kind))
	}
}

// memberJSON is the JSON name of a kind's field.
func memberJSON(kind DocumentKind) string {
	field, _ := reflect.TypeFor[Document]().FieldByName(string(kind))

	return jsonName(field)
}

func (d *Document) talosKind() string {
	if kind, ok := talosKinds[d.Kind]; ok {
		return kind
	}

	return string(d.Kind)
}
