// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bytes"
	"fmt"
	"strconv"

	"go.yaml.in/yaml/v4"
)

// EncodeMasked is Encode with Mask in place of every secret, for showing.
func (c *Config) EncodeMasked() ([]byte, error) {
	secrets := map[ID]map[string]bool{}

	for _, leaf := range c.Leaves() {
		if !leaf.Value.Secret() {
			continue
		}

		if secrets[leaf.ID] == nil {
			secrets[leaf.ID] = map[string]bool{}
		}

		secrets[leaf.ID][leaf.Pointer] = true
	}

	var buf bytes.Buffer

	for _, d := range c.docs {
		encoded, err := d.encode()
		if err != nil {
			return nil, err
		}

		if len(secrets[d.id]) > 0 {
			if encoded, err = maskYAML(encoded, secrets[d.id]); err != nil {
				return nil, &Error{Index: -1, ID: d.id, Err: fmt.Errorf("cannot be masked: %w", err)}
			}
		}

		if buf.Len() > 0 {
			buf.WriteString("---\n")
		}

		buf.Write(encoded)
	}

	return buf.Bytes(), nil
}

func maskYAML(encoded []byte, secrets map[string]bool) ([]byte, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(encoded, &root); err != nil {
		return nil, err
	}

	maskNode(&root, "", secrets)

	var buf bytes.Buffer

	writer := yaml.NewEncoder(&buf)
	writer.SetIndent(4)

	if err := writer.Encode(&root); err != nil {
		return nil, err
	}

	return buf.Bytes(), writer.Close()
}

func maskNode(node *yaml.Node, pointer string, secrets map[string]bool) {
	if secrets[pointer] {
		*node = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: Mask}

		return
	}

	switch node.Kind {
	case yaml.DocumentNode:
		for _, child := range node.Content {
			maskNode(child, pointer, secrets)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			maskNode(node.Content[i+1], pointer+"/"+escapeToken(node.Content[i].Value), secrets)
		}
	case yaml.SequenceNode:
		for i, child := range node.Content {
			maskNode(child, pointer+"/"+strconv.Itoa(i), secrets)
		}
	case yaml.ScalarNode, yaml.AliasNode, yaml.StreamNode:
	}
}
