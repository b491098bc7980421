// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Location is where something stands in the input.
type Location struct {
	// File as it was named on the command line, or found in a directory that was; "-" is standard input.
	File string `json:"file"`

	// Document is the index of the YAML or JSON document in the file, from 0.
	Document int `json:"document"`

	// Line in the file, from 1.
	Line int `json:"line"`
}

// String is "patches.yaml:12: document 1".
func (l Location) String() string {
	if l.File == "" {
		return ""
	}

	return fmt.Sprintf("%s:%d: document %d", l.File, l.Line, l.Document)
}

// lineOf finds the line of a field such as "spec.documents[0].hostnameConfig.auto" below a node. Of a field that is not there
// it is the line of the deepest one above it that is.
func lineOf(node *yaml.Node, path string) int {
	line := node.Line

	for _, token := range fieldTokens(path) {
		if node.Kind == yaml.AliasNode {
			node = node.Alias
		}

		next, at := child(node, token)
		if next == nil {
			return line
		}

		node, line = next, at
	}

	return line
}

// child is a value below a node, with the line that its key, or it itself in a list, stands in.
func child(node *yaml.Node, token string) (*yaml.Node, int) {
	switch node.Kind { //nolint:exhaustive // the others have nothing below them
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == token {
				return node.Content[i+1], node.Content[i].Line
			}
		}
	case yaml.SequenceNode:
		index, err := strconv.Atoi(token)
		if err != nil {
			return keyed(node, token)
		}

		if index >= 0 && index < len(node.Content) {
			return node.Content[index], node.Content[index].Line
		}
	}

	return nil, 0
}

// keyed finds the item of a list that a path names by its key, as in "spec.registries[docker.io]".
func keyed(list *yaml.Node, key string) (*yaml.Node, int) {
	for _, item := range list.Content {
		for _, name := range []string{"name", "host"} {
			if value, _ := child(item, name); value != nil && value.Value == key {
				return item, item.Line
			}
		}
	}

	return nil, 0
}

// fieldTokens takes "spec.sysctls[net.core.somaxconn]" apart. A dot within brackets belongs to a key.
func fieldTokens(path string) []string {
	var tokens []string

	for path != "" {
		if path[0] == '[' {
			key, rest, _ := strings.Cut(path[1:], "]")
			tokens, path = append(tokens, key), strings.TrimPrefix(rest, ".")

			continue
		}

		end := strings.IndexAny(path, ".[")
		if end < 0 {
			return append(tokens, path)
		}

		tokens = append(tokens, path[:end])
		path = strings.TrimPrefix(path[end:], ".")
	}

	return tokens
}
