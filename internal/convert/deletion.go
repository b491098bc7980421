// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

// removal is one `$patch: delete`.
type removal struct {
	id     merge.ID
	place  Place
	line   int
	tokens []string

	// key and value select an element of the list at tokens.
	key, value string

	made  bootstrapv1.PatchDeletion
	order int
}

func (r removal) pointer() string {
	var b strings.Builder

	for _, token := range r.tokens {
		b.WriteString("/" + merge.EscapePointer(token))
	}

	return b.String()
}

// deletion is the removal as a patch has it.
func (r removal) deletion() (bootstrapv1.PatchDeletion, error) {
	deletion := bootstrapv1.PatchDeletion{Kind: r.id.Kind, Name: r.id.Name, Path: r.pointer()}
	if r.key == "" {
		return deletion, merge.CheckDeletion(r.id, deletion.Path)
	}

	path, err := merge.ElementPointer(r.id, r.pointer(), r.key, r.value)
	deletion.Path = path

	return deletion, err
}

// setAgain finds what a document sets of what the removal deletes.
func (r removal) setAgain(s *source) (string, bool) {
	node := find(s.root, r.pointer())

	switch {
	case s.document == nil || node == nil:
		return "", false
	case r.key == "":
		return r.pointer(), true
	}

	for i, item := range node.Content {
		if _, value := child(item, r.key); value != nil && value.Value == r.value {
			return r.pointer() + "/" + strconv.Itoa(i), true
		}
	}

	return "", false
}

// taker takes every `$patch: delete` out of a document that the merge has accepted. Maps and lists that have nothing left go too.
type taker struct {
	id      merge.ID
	place   Place
	removed []removal
}

func isDelete(node *yaml.Node) bool { return textOf(node, "$patch") == "delete" }

func (t *taker) take(root *yaml.Node) {
	if isDelete(root) {
		t.add(root, nil, "", "")

		return
	}

	t.walk(root, nil)
}

func (t *taker) add(node *yaml.Node, tokens []string, key, value string) {
	t.removed = append(t.removed, removal{id: t.id, place: t.place, line: node.Line, tokens: slices.Clone(tokens), key: key, value: value})
}

// walk tells whether the node has nothing left.
func (t *taker) walk(node *yaml.Node, tokens []string) bool {
	before := len(node.Content)

	switch node.Kind { //nolint:exhaustive // the others have nothing below them
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); {
			below := append(slices.Clone(tokens), node.Content[i].Value)

			deletes := isDelete(node.Content[i+1])
			if deletes {
				t.add(node.Content[i], below, "", "")
			}

			if deletes || t.walk(node.Content[i+1], below) {
				node.Content = slices.Delete(node.Content, i, i+2)
			} else {
				i += 2
			}
		}
	case yaml.SequenceNode:
		for i := 0; i < len(node.Content); {
			if isDelete(node.Content[i]) {
				key, value := selectorOf(node.Content[i])
				t.add(node.Content[i], tokens, key, value)
				node.Content = slices.Delete(node.Content, i, i+1)

				continue
			}

			t.walk(node.Content[i], append(slices.Clone(tokens), strconv.Itoa(i)))

			i++
		}
	}

	return before > 0 && len(node.Content) == 0
}

// selectorOf gives the field by which a list element is selected: as in Talos, the first one beside $patch.
func selectorOf(node *yaml.Node) (key, value string) {
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value != "$patch" {
			return node.Content[i].Value, node.Content[i+1].Value
		}
	}

	return "", ""
}
