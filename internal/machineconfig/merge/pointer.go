// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"reflect"

	"github.com/siderolabs/talos/pkg/machinery/config/types/meta"
	"go.yaml.in/yaml/v4"
)

// EscapePointer makes a reference token of a JSON Pointer from a key (RFC 6901).
func EscapePointer(key string) string { return escapeToken(key) }

// ReachedPointers lists the JSON Pointers of the leaves of a document that was
// reached, of the legacy one only those that EncodeReached writes; none for one
// that the config does not have. A component's argument that is written as a list, which
// is one leaf elsewhere, is listed by its items ("/extraArgs/v/0"), and an empty
// list by a first item that it does not have: a Talos that knows arguments as
// text only can read neither.
func (c *Config) ReachedPointers(id ID) []string {
	d := c.find(id)
	if d == nil {
		return nil
	}

	root := reflect.ValueOf(d.reachedPart()).Elem()

	p, err := planFor(root.Type())
	if err != nil {
		return nil
	}

	f := flattener{id: id, items: true, leaves: make([]Leaf, 0, 16)}
	f.value(root, p, nil)

	pointers := make([]string, len(f.leaves))
	for i, leaf := range f.leaves {
		pointers[i] = leaf.Pointer
	}

	return pointers
}

// Value gives the value of one leaf. It is false for one that the config does
// not have, or that is not set.
func (c *Config) Value(id ID, pointer string) (Value, bool) {
	d := c.find(id)
	if d == nil {
		return Value{}, false
	}

	for _, leaf := range d.flat() {
		if leaf.Pointer == pointer {
			return leaf.Value, leaf.Value.text != "null"
		}
	}

	return Value{}, false
}

// argumentItems gives the number of items of an argument that is written as a
// list, and false for one that is written as text and for any other value.
func argumentItems(v reflect.Value) (int, bool) {
	argument, ok := reflect.TypeAssert[meta.ArgValue](v)
	if !ok {
		return 0, false
	}

	written, err := argument.MarshalYAML()
	if err != nil {
		return 0, false
	}

	node, ok := written.(*yaml.Node)
	if !ok || node.Kind != yaml.SequenceNode {
		return 0, false
	}

	return len(node.Content), true
}
