// SPDX-License-Identifier: Apache-2.0

package version

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Document is one document of a machine config, as far as versions are concerned.
type Document struct {
	// Kind of the document. The legacy document's is "v1alpha1".
	Kind string

	// Name of the document; empty for kinds that have none. It is used in errors only.
	Name string

	// Fields are JSON Pointers of the fields that the document sets, for example "/mount/secure". Only leaves are needed: a leaf that
	// the node's Talos does not know may be so because of any field above it. List indices are numbers.
	Fields []string
}

// String names the document as errors do: kind, and name if it has one.
func (d Document) String() string {
	if d.Name == "" {
		return d.Kind
	}

	return d.Kind + "/" + d.Name
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

// CheckDocuments checks that a node knows every document kind and every field of a machine config. The node's Talos is given by its
// contract (Talos.Contract): a node refuses a whole config for one kind or field that it does not know, and machinery, which is newer,
// does not notice. The error names every offender, the Talos that it needs and the Talos that the machine runs.
func CheckDocuments(node Contract, documents []Document) error {
	if node.IsZero() {
		return errors.New("the Talos of the machine must be known to check documents against it")
	}

	var errs []error

	for _, document := range documents {
		since, known := FirstSupported(document.Kind, "")

		switch {
		case !known:
			errs = append(errs, fmt.Errorf("%s: Talos has no document kind %q", document, document.Kind))
		case node.Less(since):
			errs = append(errs, fmt.Errorf("%s: needs Talos %s or newer, and the machine runs %s: remove the document, or upgrade the machine first",
				document, since, node))
		default:
			errs = append(errs, checkFields(node, document)...)
		}
	}

	return errors.Join(errs...)
}

// checkFields reports each field once that is too new for the node, however many leaves are below it, in the order of the fields.
func checkFields(node Contract, document Document) []error {
	rows := firstMinorOfField[document.Kind]
	if len(rows) == 0 {
		return nil
	}

	var tooNew []string

	for field, since := range rows {
		if node.AtLeast(since) {
			continue
		}

		depth := strings.Count(field, "/")

		for _, pointer := range document.Fields {
			if contains(field, pointer) {
				tooNew = append(tooNew, prefix(pointer, depth))
			}
		}
	}

	slices.Sort(tooNew)

	errs := make([]error, 0, len(tooNew))

	for _, pointer := range slices.Compact(tooNew) {
		since, _ := FirstSupported(document.Kind, pointer)
		errs = append(errs, fmt.Errorf("%s: field %s needs Talos %s or newer, and the machine runs %s: remove the field, or upgrade the machine first",
			document, pointer, since, node))
	}

	return errs
}

// prefix returns the first segments of a JSON Pointer.
func prefix(pointer string, segments int) string {
	return strings.Join(strings.Split(pointer, "/")[:segments+1], "/")
}
