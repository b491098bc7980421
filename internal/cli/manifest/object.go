// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/maesh-dev/ichor/internal/yamlsyntax"
)

// Ref names an object.
type Ref struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// String is "TalosConfigPatch default/gpu".
func (r Ref) String() string { return r.Kind + " " + r.Namespace + "/" + r.Name }

// Object is one object of a document.
type Object struct {
	Location
	Ref

	// GVK is the object's API version and kind.
	GVK schema.GroupVersionKind

	content map[string]any
	node    *yaml.Node
}

// At is the location of a field of the object, as far as it is there.
func (o *Object) At(path string) Location {
	location := o.Location
	if o.node != nil {
		location.Line = lineOf(o.node, path)
	}

	return location
}

// Syntax is nil for a document that is YAML or JSON, and else an UnreadableError that says where it is not.
func (d Document) Syntax() error {
	_, err := d.parse()

	return err
}

func (d Document) parse() (*yaml.Node, error) {
	root := &yaml.Node{}
	if err := yaml.Unmarshal(d.Data, root); err != nil {
		fault, at := yamlsyntax.Explain(d.Data, err), d.Location
		if fault.Line > 0 {
			at.Line = fault.Line
		}

		return nil, unreadable("%s: %w", at, fault)
	}

	return root, nil
}

// parse reads the objects of a document: one, or the items of a List. The namespace is for objects that name none.
func parse(document Document, namespace string) ([]*Object, error) {
	root, err := document.parse()
	if err != nil {
		return nil, err
	}

	data, err := sigsyaml.YAMLToJSONStrict(document.Data)
	if err != nil {
		return nil, unreadable("%s: not valid YAML or JSON: %w", document.Location, err)
	}

	var content map[string]any
	if err = json.Unmarshal(data, &content); err != nil || content == nil {
		return nil, unreadable("%s: want a Kubernetes object, which is a map with apiVersion and kind", document.Location)
	}

	node := root
	if node.Kind == yaml.DocumentNode && len(node.Content) == 1 {
		node = node.Content[0]
	}

	return objects(document.Location, content, node, namespace)
}

func objects(location Location, content map[string]any, node *yaml.Node, namespace string) ([]*Object, error) {
	u := unstructured.Unstructured{Object: content}

	gvk := u.GroupVersionKind()
	if gvk.Version == "" || gvk.Kind == "" {
		return nil, unreadable("%s: want a Kubernetes object: apiVersion and kind must be set", location)
	}

	items, isList := content["items"].([]any)
	if !isList || gvk.Group != "" || gvk.Kind != "List" {
		object := &Object{Location: location, GVK: gvk, content: content, node: node}
		object.Ref = Ref{Kind: gvk.Kind, Namespace: u.GetNamespace(), Name: u.GetName()}

		if object.Namespace == "" {
			object.Namespace = namespace
			u.SetNamespace(namespace)
		}

		return []*Object{object}, nil
	}

	var (
		all    []*Object
		faults []error
	)

	list, _ := child(node, "items")

	for i, item := range items {
		at, below := location, node

		if list != nil && list.Kind == yaml.SequenceNode && i < len(list.Content) {
			below = list.Content[i]
			at.Line = below.Line
		}

		itemContent, ok := item.(map[string]any)
		if !ok {
			faults = append(faults, unreadable("%s: items[%d]: want a Kubernetes object", at, i))

			continue
		}

		found, err := objects(at, itemContent, below, namespace)
		if err != nil {
			faults = append(faults, fmt.Errorf("items[%d]: %w", i, err))
		}

		all = append(all, found...)
	}

	return all, errors.Join(faults...)
}
