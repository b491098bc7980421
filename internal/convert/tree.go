// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

const (
	// maxNodes and maxDepth bound what a document may expand to; they are those of the merge.
	maxNodes = 1 << 18
	maxDepth = 128
)

// expander copies a tree of YAML nodes, with aliases and merge keys spelled out.
type expander struct {
	nodes int
	line  int // of an error
}

var (
	errTooMuch   = errors.New("the document is nested too deeply, or its aliases expand to too much")
	errBraces    = errors.New("has braces of a template ({{ }}) where a value stands: fill the template in first, and convert what comes out")
	errKey       = errors.New("a key must be text")
	errMergeNode = errors.New("the merge key << needs a map")
)

func (e *expander) copy(node *yaml.Node, depth int) (*yaml.Node, error) {
	e.nodes++
	e.line = node.Line

	if e.nodes > maxNodes || depth > maxDepth {
		return nil, errTooMuch
	}

	if node.Kind == yaml.AliasNode {
		return e.copy(node.Alias, depth+1)
	}

	out := &yaml.Node{Kind: node.Kind, Tag: node.Tag, Value: node.Value, Style: node.Style, Line: node.Line, Column: node.Column}

	if node.Kind == yaml.MappingNode {
		return out, e.copyPairs(node, out, depth)
	}

	for _, item := range node.Content {
		copied, err := e.copy(item, depth+1)
		if err != nil {
			return nil, err
		}

		out.Content = append(out.Content, copied)
	}

	return out, nil
}

// copyPairs copies the pairs of a map; those of a merge key come last, and none that is there already.
func (e *expander) copyPairs(node, out *yaml.Node, depth int) error {
	var merged []*yaml.Node

	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}

		switch {
		case key.Kind == yaml.MappingNode && key.Style&yaml.FlowStyle != 0:
			e.line = key.Line

			return errBraces
		case key.Kind != yaml.ScalarNode:
			e.line = key.Line

			return errKey
		case key.ShortTag() == "!!merge":
			merged = append(merged, value)

			continue
		}

		copied, err := e.copy(value, depth+1)
		if err != nil {
			return err
		}

		out.Content = append(out.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: key.Tag, Value: key.Value, Style: key.Style, Line: key.Line}, copied)
	}

	for _, value := range merged {
		if err := e.mergePairs(value, out, depth+1); err != nil {
			return err
		}
	}

	return nil
}

func (e *expander) mergePairs(node, out *yaml.Node, depth int) error {
	copied, err := e.copy(node, depth)
	if err != nil {
		return err
	}

	switch copied.Kind {
	case yaml.SequenceNode:
		for _, item := range copied.Content {
			if err := e.mergePairs(item, out, depth+1); err != nil {
				return err
			}
		}

		return nil
	case yaml.MappingNode:
		for i := 0; i+1 < len(copied.Content); i += 2 {
			if _, there := child(out, copied.Content[i].Value); there == nil {
				out.Content = append(out.Content, copied.Content[i], copied.Content[i+1])
			}
		}

		return nil
	default:
		return errMergeNode
	}
}

// clone copies a tree that has no aliases, and tells for each node of the copy its pointer.
func clone(root *yaml.Node) (*yaml.Node, map[*yaml.Node]string) {
	pointers := map[*yaml.Node]string{}

	var walk func(node *yaml.Node, pointer string) *yaml.Node

	walk = func(node *yaml.Node, pointer string) *yaml.Node {
		out := *node
		out.Content = slices.Clone(node.Content)

		for i := range out.Content {
			switch {
			case node.Kind == yaml.SequenceNode:
				out.Content[i] = walk(node.Content[i], pointer+"/"+strconv.Itoa(i))
			case i%2 == 1:
				out.Content[i] = walk(node.Content[i], pointer+"/"+merge.EscapePointer(node.Content[i-1].Value))
			}
		}

		pointers[&out] = pointer

		return &out
	}

	return walk(root, ""), pointers
}

// child is a value below a node, with the node to whose line it belongs: its key, or itself in a list. Of a key that is there
// twice it is the last.
func child(node *yaml.Node, token string) (key, value *yaml.Node) {
	switch node.Kind { //nolint:exhaustive // the others have nothing below them
	case yaml.MappingNode:
		for i := len(node.Content) - 2; i >= 0; i -= 2 {
			if node.Content[i].Value == token {
				return node.Content[i], node.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(node.Content) {
			return node.Content[i], node.Content[i]
		}
	}

	return nil, nil
}

func find(node *yaml.Node, pointer string) *yaml.Node {
	for _, token := range tokensOf(pointer) {
		if _, node = child(node, token); node == nil {
			return nil
		}
	}

	return node
}

// prune takes what is at the pointer out of the tree, and tells whether it was there.
func prune(root *yaml.Node, pointer string) bool {
	tokens := tokensOf(pointer)

	parent := root
	for _, token := range tokens[:len(tokens)-1] {
		if _, parent = child(parent, token); parent == nil {
			return false
		}
	}

	key, value := child(parent, tokens[len(tokens)-1])
	if value == nil {
		return false
	}

	i := slices.Index(parent.Content, key)
	if parent.Kind == yaml.SequenceNode {
		parent.Content = slices.Delete(parent.Content, i, i+1)
	} else {
		parent.Content = slices.Delete(parent.Content, i, i+2)
	}

	return true
}

// tokensOf takes a JSON Pointer apart.
func tokensOf(pointer string) []string {
	if pointer == "" {
		return nil
	}

	tokens := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, token := range tokens {
		tokens[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
	}

	return tokens
}

// textOf is the text of a field, empty when there is none.
func textOf(node *yaml.Node, key string) string {
	if _, value := child(node, key); value != nil && value.Kind == yaml.ScalarNode && !isNull(value) {
		return value.Value
	}

	return ""
}

func isNull(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null"
}

func hasComments(node *yaml.Node) bool {
	return node.HeadComment != "" || node.LineComment != "" || node.FootComment != "" || slices.ContainsFunc(node.Content, hasComments)
}
