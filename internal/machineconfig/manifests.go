// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"go.yaml.in/yaml/v4"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

var (
	errNoYAML     = errors.New("is not YAML, and Talos would apply no manifest at all")
	errNoManifest = errors.New("has a YAML document that is no manifest: each must have apiVersion and kind")
)

// inlineManifests visits the inline manifests of a patch, in both layouts.
func inlineManifests(patch *merge.Patch, visit func(document merge.ID, pointer, content string)) {
	for _, part := range patch.Documents() {
		switch typed := part.Document.(type) {
		case *k8s.KubeInlineManifestConfigV1Alpha1:
			visit(part.ID, "/manifest", typed.ManifestSpec)
		case *v1alpha1.Config:
			if typed.ClusterConfig == nil {
				continue
			}

			for i, manifest := range typed.ClusterConfig.ClusterInlineManifests {
				visit(part.ID, fmt.Sprintf("/cluster/inlineManifests/%d/contents", i), manifest.InlineManifestContents)
			}
		}
	}
}

// badManifests finds inline manifests that Talos cannot apply. It then applies none of the cluster's, and tries again for ever. It also
// finds those that the merge would replace by the next of the same name. No error has anything of the content.
func badManifests(patch *merge.Patch) []finding {
	var findings []finding

	inlineManifests(patch, func(document merge.ID, pointer, content string) {
		if err := manifestFault(content); err != nil {
			findings = append(findings, finding{document: document, field: pointer, err: err})
		}
	})

	for _, part := range patch.Documents() {
		typed, ok := part.Document.(*v1alpha1.Config)
		if !ok || typed.ClusterConfig == nil {
			continue
		}

		names := map[string]bool{}

		for i, manifest := range typed.ClusterConfig.ClusterInlineManifests {
			if names[manifest.InlineManifestName] {
				findings = append(findings, finding{
					document: part.ID, field: fmt.Sprintf("/cluster/inlineManifests/%d/name", i),
					err: errors.New("is the name of another manifest in this list too, which would be lost: choose another"),
				})
			}

			names[manifest.InlineManifestName] = true
		}
	}

	return findings
}

// doubledKeys finds inline manifests in which a key stands twice. Talos takes the last, which may not be the one that is meant.
func doubledKeys(patch *merge.Patch) []string {
	var notices []string

	inlineManifests(patch, func(document merge.ID, pointer, content string) {
		// What is no YAML is refused.
		_ = eachManifest(content, func(manifest *yaml.Node) bool {
			key := merge.DoubledKey(manifest)
			if key != nil {
				notices = append(notices, fmt.Sprintf("%s: %s: has a key twice in line %d, and Talos takes the last: remove the other", document, pointer, key.Line))
			}

			return key == nil
		})
	})

	return notices
}

func manifestFault(content string) error {
	var fault error

	err := eachManifest(content, func(manifest *yaml.Node) bool {
		for _, name := range []string{"apiVersion", "kind"} {
			if field := manifestField(manifest, name); field == nil || field.ShortTag() != "!!str" || field.Value == "" {
				fault = errNoManifest
			}
		}

		return fault == nil
	})
	if err != nil {
		return errNoYAML
	}

	return fault
}

// eachManifest visits the documents of a text that are not empty, until visit says to stop. An error means that the text is no YAML from
// there on.
func eachManifest(text string, visit func(*yaml.Node) bool) (err error) {
	// As where documents are read: the parser has panicked on malformed input before.
	defer func() {
		if recover() != nil {
			err = errNoYAML
		}
	}()

	decoder := yaml.NewDecoder(strings.NewReader(text))

	for {
		var node yaml.Node

		switch err := decoder.Decode(&node); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case node.Kind != yaml.DocumentNode || len(node.Content) != 1 || isEmpty(node.Content[0]):
			continue
		}

		if !visit(node.Content[0]) {
			return nil
		}
	}
}

// isEmpty tells what Talos leaves out: nothing, or nothing in braces.
func isEmpty(document *yaml.Node) bool {
	return document.ShortTag() == "!!null" || document.Kind == yaml.MappingNode && len(document.Content) == 0
}

// manifestField is the value of a field, nil when there is none. Of several Talos takes the last.
func manifestField(manifest *yaml.Node, name string) *yaml.Node {
	fields := manifestFields(manifest, name)
	if len(fields) == 0 {
		return nil
	}

	return fields[len(fields)-1]
}

// manifestFields are all the values of a field, of which there should be one.
func manifestFields(manifest *yaml.Node, name string) []*yaml.Node {
	if manifest.Kind == yaml.AliasNode {
		manifest = manifest.Alias
	}

	if manifest.Kind != yaml.MappingNode {
		return nil
	}

	var fields []*yaml.Node

	for i := 0; i+1 < len(manifest.Content); i += 2 {
		if manifest.Content[i].Value != name {
			continue
		}

		value := manifest.Content[i+1]
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}

		fields = append(fields, value)
	}

	return fields
}

// doubleManifests finds inline manifests of one name in both layouts: Talos would apply one of the two.
func doubleManifests(documents []config.Document) []finding {
	_, cluster := legacyOf(documents)

	legacy := map[string]int{}
	for i, manifest := range cluster.ClusterInlineManifests {
		legacy[manifest.InlineManifestName] = i
	}

	if len(legacy) == 0 {
		return nil
	}

	var findings []finding

	for _, document := range documents {
		manifest, ok := document.(*k8s.KubeInlineManifestConfigV1Alpha1)
		if !ok {
			continue
		}

		if i, double := legacy[manifest.MetaName]; double {
			findings = append(findings, finding{
				document: merge.ID{Kind: merge.LegacyKind}, field: fmt.Sprintf("/cluster/inlineManifests/%d/name", i),
				err: fmt.Errorf("is the name of %s too, and Talos would apply one of the two: choose another", merge.IDOf(manifest)),
			})
		}
	}

	return findings
}
