// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"

	"go.yaml.in/yaml/v4"
)

// CheckKeys refuses a node in which a key stands twice. The YAML library compares each key with every other one, and takes minutes for a
// map with as many keys as an object may have; so it is told not to, where this was asked before.
func CheckKeys(node *yaml.Node) error {
	if key := DoubledKey(node); key != nil {
		return at(key, fmt.Errorf("the key %q is there twice; keep one of them", key.Value))
	}

	return nil
}

// DoubledKey is the first key of a node that stands in its map for the second time, nil when there is none.
func DoubledKey(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.MappingNode {
		seen := make(map[string]struct{}, len(node.Content)/2)

		for i := 0; i+1 < len(node.Content); i += 2 {
			key := node.Content[i]
			if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
				continue
			}

			if _, twice := seen[key.Value]; twice {
				return key
			}

			seen[key.Value] = struct{}{}
		}
	}

	// What an alias stands for is looked at where it is written.
	for _, child := range node.Content {
		if key := DoubledKey(child); key != nil {
			return key
		}
	}

	return nil
}
