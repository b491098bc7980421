// SPDX-License-Identifier: Apache-2.0

package version

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// TooNewError says that a document kind, a field of one, or a value of a field came with a newer Talos than the one that the machine runs.
type TooNewError struct {
	// Kind of the document.
	Kind string

	// Field is the JSON Pointer of the field. Empty when the node does not know the whole kind.
	Field string

	// Value says in words which value of the field is meant. Empty when the node does not know the whole field.
	Value string

	// Since is the contract of the first Talos that knows it.
	Since Contract

	// Talos is what the machine runs.
	Talos Talos
}

// Error names what is too new, the Talos that it needs and the Talos that the machine runs.
func (e *TooNewError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("document kind %s needs Talos %s or newer, and the machine runs %s: remove the document, or upgrade the machine first",
			e.Kind, e.Since, e.Talos)
	}

	if e.Value != "" {
		return fmt.Sprintf("field %s of %s: %s needs Talos %s or newer, and the machine runs %s: set another value, or upgrade the machine first",
			e.Field, e.Kind, e.Value, e.Since, e.Talos)
	}

	return fmt.Sprintf("field %s of %s needs Talos %s or newer, and the machine runs %s: remove the field, or upgrade the machine first",
		e.Field, e.Kind, e.Since, e.Talos)
}

// Kinds lists every document kind of machinery's registry, sorted. The legacy document's is "v1alpha1".
func Kinds() []string {
	return slices.Sorted(maps.Keys(firstMinorOfKind))
}

// FirstSupported returns the contract of the first Talos that knows the field of the document kind; an empty pointer asks for the kind
// itself. Contracts older than the oldest Talos that nodes may run are not told apart. It is false for a kind that machinery does not
// have. Fields are not checked for existence: a field that no Talos ever had is as old as its kind.
func FirstSupported(kind, pointer string) (Contract, bool) {
	minor, known := firstMinorOfKind[kind]
	if !known {
		return Contract{}, false
	}

	for field, since := range firstMinorOfField[kind] {
		if since > minor && contains(field, pointer) {
			minor = since
		}
	}

	return Contract{major: talosMajor, minor: minor}, true
}

// contains reports whether the pointer is the field, in which "*" matches one segment, or something below it.
func contains(field, pointer string) bool {
	want, have := strings.Split(field, "/"), strings.Split(pointer, "/")
	if len(have) < len(want) {
		return false
	}

	for i, segment := range want {
		if segment != "*" && segment != have[i] {
			return false
		}
	}

	return true
}

// CheckDocument checks that a node knows a document kind and the given fields of it. A node refuses a whole config for one kind or field
// that it does not know, and machinery, which is newer, does not notice. Fields are JSON Pointers with list indices as numbers; leaves
// are enough, since whatever is above a leaf is looked at too. The legacy document has the kind "v1alpha1".
//
// The error holds a *TooNewError for the kind, or for each field that is too new, in order, each once however many leaves are below it.
func CheckDocument(talos Talos, kind string, fields ...string) error {
	if talos.IsZero() {
		return errors.New("the Talos of the machine must be known to check documents against it")
	}

	since, known := FirstSupported(kind, "")
	if !known {
		return fmt.Errorf("talos has no document kind %q", kind)
	}

	if talos.Contract().Less(since) {
		return &TooNewError{Kind: kind, Since: since, Talos: talos}
	}

	errs := []error{}

	for _, pointer := range tooNew(talos.Contract(), kind, fields) {
		since, _ := FirstSupported(kind, pointer)
		errs = append(errs, &TooNewError{Kind: kind, Field: pointer, Since: since, Talos: talos})
	}

	return errors.Join(errs...)
}

// tooNew lists the fields that the node does not know, above or at the given ones.
func tooNew(node Contract, kind string, fields []string) []string {
	var found []string

	for field, since := range firstMinorOfField[kind] {
		if node.AtLeast(since) {
			continue
		}

		depth := strings.Count(field, "/")

		for _, pointer := range fields {
			if contains(field, pointer) {
				found = append(found, prefix(pointer, depth))
			}
		}
	}

	slices.Sort(found)

	return outermost(slices.Compact(found))
}

// outermost leaves out what is below another field of the sorted list.
func outermost(sorted []string) []string {
	kept := sorted[:0]

	for _, pointer := range sorted {
		if len(kept) == 0 || !strings.HasPrefix(pointer, kept[len(kept)-1]+"/") {
			kept = append(kept, pointer)
		}
	}

	return kept
}

// prefix returns the first segments of a JSON Pointer.
func prefix(pointer string, segments int) string {
	return strings.Join(strings.Split(pointer, "/")[:segments+1], "/")
}
