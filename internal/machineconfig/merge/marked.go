// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
)

// mark is a value that is secret because of where it came from, in a field that is none by itself. The place is the field's, without the
// position in lists: a merge moves elements about.
type mark struct{ place, text string }

// marks are the secret values of a document. Its nil value has none.
type marks map[mark]struct{}

// LoadSecret is Load for a patch of one document, of which some values are secret: those at or below the JSON Pointers. They are masked
// wherever the config shows them.
func LoadSecret(data []byte, pointers []string) (*Patch, error) {
	patch, err := Load(data)
	if err != nil || len(pointers) == 0 {
		return patch, err
	}

	for _, document := range patch.documents {
		if document.doc != nil {
			document.marks = marksOf(document.doc, pointers)
		}
	}

	return patch, nil
}

func marksOf(doc config.Document, pointers []string) marks {
	found := marks{}

	for _, leaf := range LeavesOf(doc) {
		if !leaf.Value.Secret() && within(leaf.Pointer, pointers) {
			found[mark{placeOf(leaf.Pointer), leaf.Value.Reveal()}] = struct{}{}
		}
	}

	return found
}

func within(pointer string, ancestors []string) bool {
	for _, ancestor := range ancestors {
		if pointer == ancestor || strings.HasPrefix(pointer, ancestor+"/") {
			return true
		}
	}

	return false
}

// placeOf is a pointer with every position in a list taken out.
func placeOf(pointer string) string {
	tokens := strings.Split(pointer, "/")

	for i, token := range tokens {
		if token != "" && strings.Trim(token, "0123456789") == "" {
			tokens[i] = "*"
		}
	}

	return strings.Join(tokens, "/")
}

// has says whether the value at the pointer is marked.
func (m marks) has(pointer, text string) bool {
	if len(m) == 0 {
		return false
	}

	_, ok := m[mark{placeOf(pointer), text}]

	return ok
}

// with adds marks. A set that a patch has is not changed: it may be used by many at once.
func (m marks) with(more marks) marks {
	if len(more) == 0 {
		return m
	}

	both := make(marks, len(m)+len(more))
	for each := range m {
		both[each] = struct{}{}
	}

	for each := range more {
		both[each] = struct{}{}
	}

	return both
}
