// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"reflect"
	"strings"
)

// RefusedValue stands in the place of a scalar that no patch may set. The schema refuses every value of it. It reads anything,
// so that an object that was stored before a rule existed does not stop a client, and keeps nothing but that it was there.
//
// ---
// +kubebuilder:validation:Type=string
type RefusedValue struct{}

// UnmarshalJSON accepts and forgets any value.
func (*RefusedValue) UnmarshalJSON([]byte) error { return nil }

// MarshalJSON writes an empty value, which the API server refuses like any other.
func (RefusedValue) MarshalJSON() ([]byte, error) { return []byte(`""`), nil }

// RefusedObject stands in the place of an object that no patch may set, like RefusedValue. Its inner fields are preserved in
// the schema only so that they cannot hide the message.
//
// ---
// +kubebuilder:validation:Type=object
// +kubebuilder:pruning:PreserveUnknownFields
type RefusedObject struct{}

// UnmarshalJSON accepts and forgets any value.
func (*RefusedObject) UnmarshalJSON([]byte) error { return nil }

// MarshalJSON writes an empty object, which the API server refuses like any other.
func (RefusedObject) MarshalJSON() ([]byte, error) { return []byte(`{}`), nil }

// RefusedFlag stands in the place of a boolean that no patch may set, like RefusedValue.
//
// ---
// +kubebuilder:validation:Type=boolean
type RefusedFlag struct{}

// UnmarshalJSON accepts and forgets any value.
func (*RefusedFlag) UnmarshalJSON([]byte) error { return nil }

// MarshalJSON writes false, which the API server refuses like any other.
func (RefusedFlag) MarshalJSON() ([]byte, error) { return []byte(`false`), nil }

// RefusedNumber stands in the place of an integer that no patch may set, like RefusedValue.
//
// ---
// +kubebuilder:validation:Type=integer
type RefusedNumber struct{}

// UnmarshalJSON accepts and forgets any value.
func (*RefusedNumber) UnmarshalJSON([]byte) error { return nil }

// MarshalJSON writes a zero, which the API server refuses like any other.
func (RefusedNumber) MarshalJSON() ([]byte, error) { return []byte(`0`), nil }

// Refusal is the message that refuses a field of a document's struct, empty for one that a patch may set. It begins with the field as the
// schema knows it, and ": ".
func Refusal(field reflect.StructField) string { return field.Tag.Get("refused") }

// RefusedField is a field that a document sets and no patch may set.
type RefusedField struct {
	// Path leads to the field within the document's content: machine.registries.config[ghcr.io].auth.
	Path string
	// Message says why, and what to use instead.
	Message string
}

// RefusedError tells which fields of a document are refused. It carries no value.
type RefusedError struct {
	Kind   DocumentKind
	Fields []RefusedField
}

// Error names each field once.
func (e *RefusedError) Error() string {
	lines := make([]string, 0, len(e.Fields))

	for _, f := range e.Fields {
		// A message begins with the field as the schema knows it; here the whole path is known.
		_, why, _ := strings.Cut(f.Message, ": ")
		lines = append(lines, f.Path+": "+why)
	}

	return fmt.Sprintf("%s: %s", e.Kind, strings.Join(lines, "; "))
}
