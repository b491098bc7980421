// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v4"
)

// said records what a source says at one place. Next to the decoded value it
// tells an explicit zero from a field that is not mentioned.
type said struct {
	fields []saidField // of a struct, in the order of the source
	keys   []saidKey   // of a map
	items  []*said     // of a list
	// node is kept for scalars and free-form values, to find out which one does
	// not decode.
	node *yaml.Node
}

type saidField struct {
	index int // in plan.fields
	said  *said
}

type saidKey struct {
	key  string
	said *said
}

// everything stands for a value that is said as a whole.
var everything = &said{}

func (s *said) fieldSaid(p *plan, name string) bool {
	i, ok := p.byName[name]
	if !ok {
		return false
	}

	for _, f := range s.fields {
		if f.index == i {
			return true
		}
	}

	return false
}

const (
	maxNodes = 1 << 18
	maxDepth = 128
)

// reader turns YAML nodes into records of what is said.
type reader struct {
	nodes int
	depth int
}

func at(node *yaml.Node, err error) error { return &fieldError{line: node.Line, err: err} }

// enter follows aliases and bounds what they can expand to.
func (r *reader) enter(node *yaml.Node) (*yaml.Node, error) {
	for node.Kind == yaml.AliasNode && node.Alias != nil {
		node = node.Alias
	}

	r.nodes++

	if r.nodes > maxNodes || r.depth > maxDepth {
		return nil, at(node, errors.New("the document is nested too deeply, or its aliases expand to too much"))
	}

	return node, nil
}

func isNull(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null"
}

// read gives nil for a null, which says nothing.
func (r *reader) read(node *yaml.Node, p *plan) (*said, error) {
	node, err := r.enter(node)
	if err != nil {
		return nil, err
	}

	if isNull(node) {
		return nil, nil //nolint:nilnil // null says nothing, and that is no error
	}

	r.depth++
	defer func() { r.depth-- }()

	switch p.shape {
	case shapePointer:
		return r.read(node, p.elem)
	case shapeStruct:
		return r.readStruct(node, p)
	case shapeMap:
		return r.readMap(node, p)
	case shapeList:
		return r.readList(node, p)
	case shapeFreeForm:
		return r.readFreeForm(node)
	case shapeScalar:
		if !p.custom && node.Kind != yaml.ScalarNode {
			return nil, at(node, fmt.Errorf("want %s, found %s", wanted(p.typ), found(node)))
		}
	}

	return &said{node: node}, nil
}

// pairs calls visit for each key of a mapping; keys are plain strings, and
// each there once. YAML's merge key (<<) is spelled out, explicit keys first.
func (r *reader) pairs(node *yaml.Node, visit func(key, value *yaml.Node) error) error {
	seen := make(map[string]struct{}, len(node.Content)/2)

	var merged []*yaml.Node

	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]

		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}

		if key.Kind != yaml.ScalarNode {
			return at(key, errors.New("a key must be a string"))
		}

		if key.ShortTag() == "!!merge" {
			merged = append(merged, value)

			continue
		}

		if _, twice := seen[key.Value]; twice {
			return under(key.Value, at(key, fmt.Errorf("the key %q is there twice; keep one of them", key.Value)))
		}

		seen[key.Value] = struct{}{}

		if err := visit(key, value); err != nil {
			return under(key.Value, err)
		}
	}

	for _, value := range merged {
		if err := r.mergedPairs(value, seen, visit); err != nil {
			return err
		}
	}

	return nil
}

func (r *reader) mergedPairs(node *yaml.Node, seen map[string]struct{}, visit func(key, value *yaml.Node) error) error {
	node, err := r.enter(node)
	if err != nil {
		return err
	}

	r.depth++
	defer func() { r.depth-- }()

	switch node.Kind {
	case yaml.SequenceNode:
		for _, item := range node.Content {
			if err := r.mergedPairs(item, seen, visit); err != nil {
				return err
			}
		}

		return nil
	case yaml.MappingNode:
		return r.pairs(node, func(key, value *yaml.Node) error {
			if _, there := seen[key.Value]; there {
				return nil
			}

			seen[key.Value] = struct{}{}

			return visit(key, value)
		})
	default:
		return at(node, errors.New("the merge key << needs a map"))
	}
}

func (r *reader) readStruct(node *yaml.Node, p *plan) (*said, error) {
	if node.Kind != yaml.MappingNode {
		return nil, at(node, fmt.Errorf("want a map of fields, found %s", found(node)))
	}

	s := &said{node: node, fields: make([]saidField, 0, len(node.Content)/2)}

	err := r.pairs(node, func(key, value *yaml.Node) error {
		i, ok := p.byName[key.Value]
		if !ok {
			return at(key, unknownField(p, key.Value))
		}

		fs, err := r.read(value, p.fields[i].plan)
		if err != nil || fs == nil {
			return err
		}

		s.fields = append(s.fields, saidField{index: i, said: fs})

		return nil
	})

	return s, err
}

func (r *reader) readMap(node *yaml.Node, p *plan) (*said, error) {
	if node.Kind != yaml.MappingNode {
		return nil, at(node, fmt.Errorf("want a map, found %s", found(node)))
	}

	s := &said{node: node, keys: make([]saidKey, 0, len(node.Content)/2)}

	err := r.pairs(node, func(key, value *yaml.Node) error {
		ks, err := r.read(value, p.elem)
		if err != nil {
			return err
		}

		if ks == nil {
			if p.elem.shape == shapePointer {
				return at(value, errors.New("null is no value here; to remove the entry use $patch: delete"))
			}

			ks = everything
		}

		s.keys = append(s.keys, saidKey{key: key.Value, said: ks})

		return nil
	})

	return s, err
}

func (r *reader) readList(node *yaml.Node, p *plan) (*said, error) {
	if node.Kind != yaml.SequenceNode {
		return nil, at(node, fmt.Errorf("want a list, found %s", found(node)))
	}

	s := &said{node: node, items: make([]*said, 0, len(node.Content))}

	for i, item := range node.Content {
		is, err := r.read(item, p.elem)
		if err == nil && is == nil {
			if p.elem.shape == shapePointer || p.elem.shape == shapeStruct {
				err = at(item, errors.New("null is no element of this list; remove it"))
			}

			is = everything
		}

		if err != nil {
			return nil, under(itoa(i), err)
		}

		s.items = append(s.items, is)
	}

	return s, nil
}

// readFreeForm checks what machinery cannot copy: keys that are not strings,
// and timestamps, which are read as the text that the user wrote.
func (r *reader) readFreeForm(node *yaml.Node) (*said, error) {
	if node.Kind != yaml.MappingNode {
		return nil, at(node, fmt.Errorf("want a map, found %s", found(node)))
	}

	return &said{node: node}, r.checkFreeForm(node)
}

func (r *reader) checkFreeForm(node *yaml.Node) error {
	node, err := r.enter(node)
	if err != nil {
		return err
	}

	r.depth++
	defer func() { r.depth-- }()

	switch node.Kind { //nolint:exhaustive // documents and aliases cannot be here
	case yaml.MappingNode:
		return r.pairs(node, func(key, value *yaml.Node) error {
			if key.ShortTag() != "!!str" {
				return at(key, errors.New("a key must be a string; quote it"))
			}

			return r.checkFreeForm(value)
		})
	case yaml.SequenceNode:
		for i, item := range node.Content {
			if err := r.checkFreeForm(item); err != nil {
				return under(itoa(i), err)
			}
		}
	case yaml.ScalarNode:
		if node.ShortTag() == "!!timestamp" {
			node.Tag = "!!str"
		}

		if node.ShortTag() == "!!binary" {
			return at(node, errors.New("binary values are not supported here; write a string"))
		}
	}

	return nil
}
