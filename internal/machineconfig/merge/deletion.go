// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"go.yaml.in/yaml/v4"
)

// deletion is one thing to remove from a document: what the tokens lead to, the
// whole document without tokens; with a key, the element of the list at tokens
// whose field key has the value.
type deletion struct {
	tokens     []string
	key, value string
}

func (d deletion) String() string {
	var b strings.Builder

	for _, token := range d.tokens {
		b.WriteString("/" + escapeToken(token))
	}

	if d.key != "" {
		b.WriteString("/" + escapeToken(d.key) + "=" + escapeToken(d.value))
	}

	return b.String()
}

// CheckDeletion refuses a deletion that can never find something: of a kind that
// Talos does not have, of a document without the name that its kind has or with
// one that it has not, by a path that the kind cannot have, and of what
// identifies a document. [Config.Delete] finds some of it only in a config that
// has the document. Errors are of type *Error.
func CheckDeletion(id ID, pointer string) error {
	tokens, err := splitPointer(pointer)
	if err != nil {
		return inDocument(-1, id, err)
	}

	empty, err := head{id: id, apiVersion: "v1alpha1", legacy: id.Kind == LegacyKind}.prototype()
	if err != nil {
		return inDocument(-1, id, err)
	}

	p, err := planFor(reflect.TypeOf(empty).Elem())
	if err != nil {
		return inDocument(-1, id, err)
	}

	_, named := empty.(config.NamedDocument)

	switch {
	case named && id.Name == "":
		return inDocument(-1, id, fmt.Errorf("name is missing: say which %s is meant", id.Kind))
	case !named && id.Name != "":
		return inDocument(-1, id, errors.New("documents of this kind have no name, and a config has at most one: remove name"))
	}

	d := patchDocument{id: id, plan: p}

	return inDocument(-1, id, d.checkDeletion(deletion{tokens: tokens}, empty))
}

// takeDeletions moves every `$patch: delete` of a document out of it. Maps and
// lists that have nothing left go too.
func takeDeletions(root *yaml.Node) ([]deletion, error) {
	if isDelete(root) {
		return []deletion{{}}, nil
	}

	t := deletionTaker{}
	_, err := t.walk(root, nil, false, 0)

	return t.out, err
}

type deletionTaker struct{ out []deletion }

// isDelete tells whether a mapping has `$patch: delete`.
func isDelete(node *yaml.Node) bool {
	if node.Kind != yaml.MappingNode {
		return false
	}

	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == "$patch" && node.Content[i+1].Value == "delete" {
			return true
		}
	}

	return false
}

// walk reports whether the node has nothing left and is to be dropped.
func (t *deletionTaker) walk(node *yaml.Node, path []string, inList bool, depth int) (bool, error) {
	if depth > maxDepth {
		return false, at(node, errors.New("the document is nested too deeply"))
	}

	switch node.Kind {
	case yaml.MappingNode:
		return t.walkMap(node, path, inList, depth)
	case yaml.SequenceNode:
		return t.walkList(node, path, inList, depth)
	default:
		return false, nil
	}
}

func (t *deletionTaker) walkMap(node *yaml.Node, path []string, inList bool, depth int) (bool, error) {
	before := len(node.Content)

	for i := 0; i+1 < len(node.Content); {
		key, value := node.Content[i], node.Content[i+1]

		if key.Value == "$patch" {
			return false, under("$patch", at(value, errors.New(`the only $patch is "delete"`)))
		}

		sub := append(slices.Clone(path), key.Value)

		if isDelete(value) {
			if inList {
				return false, under(key.Value, at(value, errors.New("a field inside a list element cannot be deleted; "+
					"delete the element, or use a deletion with a path")))
			}

			t.out = append(t.out, deletion{tokens: sub})
			node.Content = slices.Delete(node.Content, i, i+2)

			continue
		}

		gone, err := t.walk(value, sub, inList, depth+1)
		if err != nil {
			return false, under(key.Value, err)
		}

		if gone {
			node.Content = slices.Delete(node.Content, i, i+2)

			continue
		}

		i += 2
	}

	return before > 0 && len(node.Content) == 0, nil
}

func (t *deletionTaker) walkList(node *yaml.Node, path []string, inList bool, depth int) (bool, error) {
	before := len(node.Content)

	for i := 0; i < len(node.Content); {
		item := node.Content[i]

		if isDelete(item) {
			if inList {
				return false, under(itoa(i), at(item, errors.New("an element of a list inside a list element cannot be deleted; "+
					"use a deletion with a path")))
			}

			key, value, err := selectorOf(item)
			if err != nil {
				return false, under(itoa(i), err)
			}

			t.out = append(t.out, deletion{tokens: slices.Clone(path), key: key, value: value})
			node.Content = slices.Delete(node.Content, i, i+1)

			continue
		}

		if _, err := t.walk(item, append(slices.Clone(path), itoa(i)), true, depth+1); err != nil {
			return false, under(itoa(i), err)
		}

		i++
	}

	return before > 0 && len(node.Content) == 0, nil
}

// selectorOf gives the field by which a list element to delete is found: as in
// Talos, the first one beside $patch.
func selectorOf(node *yaml.Node) (key, value string, err error) {
	for i := 0; i+1 < len(node.Content); i += 2 {
		k, v := node.Content[i], node.Content[i+1]
		if k.Value == "$patch" {
			continue
		}

		if v.Kind == yaml.AliasNode {
			v = v.Alias
		}

		if v.Kind != yaml.ScalarNode {
			return "", "", under(k.Value, at(v, fmt.Errorf("want a value that selects the element to delete, found %s", found(v))))
		}

		return k.Value, v.Value, nil
	}

	return "", "", at(node, errors.New("say which element to delete: add the field that tells it, such as its name"))
}

// isBare tells whether a document has only what identifies it.
func isBare(node *yaml.Node) bool {
	for i := 0; i+1 < len(node.Content); i += 2 {
		switch node.Content[i].Value {
		case "kind", "apiVersion", "name", "version", "$patch":
		default:
			return isDelete(node)
		}
	}

	return true
}
