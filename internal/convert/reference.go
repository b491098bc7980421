// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"go.yaml.in/yaml/v4"

	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
	"github.com/maesh-dev/ichor/internal/yamlsyntax"
)

// refer moves what stands in a field into the Secret and sets the field that refers to it, where that is called for. It is false
// for a field that stays as it is.
func (w *walker) refer(out map[string]any, reference, plain reflect.StructField, node *yaml.Node, pointer string) bool {
	name, _, _ := strings.Cut(reference.Tag.Get("json"), ",")
	refused := machineconfigv1alpha1.Refusal(plain) != ""

	switch t := reference.Type; {
	case t.Kind() == reflect.Map:
		return w.referEntries(out, name, plain, node, pointer)
	case t.Kind() == reflect.Slice:
		items := make([]any, 0, len(node.Content))

		for i, item := range node.Content {
			if moved, ok := w.move(item, reference, pointer+"/"+strconv.Itoa(i)); ok {
				items = append(items, map[string]any{"secretKeyRef": moved})
			}
		}

		out[name] = items
	case !refused && w.plain[pointer] == nil:
		return false
	default:
		moved, ok := w.move(node, reference, pointer)

		switch {
		case !ok:
		case isValueSource(t):
			out[name] = map[string]any{"secretKeyRef": moved}
		default:
			out[name] = moved
		}
	}

	w.forget(pointer)

	return true
}

func isValueSource(t reflect.Type) bool {
	return t == reflect.TypeFor[*machineconfigv1alpha1.ValueSource]()
}

// referEntries moves the secrets out of a map, or out of a list of NAME=value. The rest stays.
func (w *walker) referEntries(out map[string]any, name string, plain reflect.StructField, node *yaml.Node, pointer string) bool {
	moved, rest := map[string]any{}, *node
	rest.Content = nil

	for i := 0; i < len(node.Content); i++ {
		at, key, value := pointer+"/"+strconv.Itoa(i), "", node.Content[i]

		if node.Kind == yaml.MappingNode {
			key, value = value.Value, node.Content[i+1]
			at = pointer + "/" + merge.EscapePointer(key)
			i++
		}

		if w.plain[at] == nil && !w.named[at] {
			if node.Kind == yaml.MappingNode {
				rest.Content = append(rest.Content, node.Content[i-1])
			}

			rest.Content = append(rest.Content, value)

			continue
		}

		text := value.Value
		if node.Kind == yaml.SequenceNode {
			key, text, _ = strings.Cut(text, "=")
			w.reordered = append(w.reordered, pointer)
		}

		if ref, ok := w.put(text, value.Line, pointer+"/"+merge.EscapePointer(key)); ok {
			moved[key] = map[string]any{"secretKeyRef": ref}
		}

		delete(w.plain, at)
	}

	if len(rest.Content) == len(node.Content) {
		return false
	}

	out[name] = moved

	if field, _, _ := strings.Cut(plain.Tag.Get("json"), ","); len(rest.Content) > 0 {
		out[field] = w.value(&rest, plain.Type, pointer)
	}

	return true
}

// move puts the value of a node into the Secret.
func (w *walker) move(node *yaml.Node, reference reflect.StructField, pointer string) (any, bool) {
	text := node.Value

	switch _, form, _ := machineconfigv1alpha1.Resolves(reference); form {
	case machineconfigv1alpha1.FormText:
	case machineconfigv1alpha1.FormBytes:
		decoded, ok := decodeBase64(text)
		if !ok {
			w.s.fault(pointer, node.Line, "is no base64")

			return nil, false
		}

		text = decoded
	case machineconfigv1alpha1.FormPod:
		data, err := yamlsyntax.Marshal(freeForm(node))
		if err != nil {
			w.s.fault(pointer, node.Line, "cannot be written as YAML")

			return nil, false
		}

		text = string(data)
	}

	if !isValueSource(reference.Type) && reference.Type.Kind() == reflect.Pointer {
		text = machineconfigv1alpha1.Credential(text)
		w.credentials = append(w.credentials, pointer)

		if text == "" {
			w.s.fault(pointer, node.Line, "is empty, and a credential cannot be: remove the field")

			return nil, false
		}
	}

	return w.put(text, node.Line, pointer)
}

func (w *walker) put(text string, line int, pointer string) (any, bool) {
	if !w.secret.allowed {
		w.s.fault(pointer, line, "is a secret, which belongs into a Secret that the patch refers to: name a file for its manifest with --secrets-file")

		return nil, false
	}

	key := w.secret.put(w.s.id, pointer, text)

	return map[string]any{"name": w.secret.name, "key": key}, true
}

// talosJSON is the document as Talos reads it, with what the Secret holds.
func talosJSON(made *machineconfigv1alpha1.Document, secret *vault) ([]byte, error) {
	return made.TalosJSON(func(source machineconfigv1alpha1.Source) (string, bool) {
		if source.Kind != machineconfigv1alpha1.SourceSecret || source.Name != secret.name {
			return "", false
		}

		value, ok := secret.values[source.Key]

		return value, ok
	})
}

// leaves are the values of a document by pointer. Lists whose order has changed are keyed by the names of their variables.
func (w *walker) leaves(document config.Document) map[string]string {
	out := map[string]string{}

	for _, leaf := range merge.LeavesOf(document) {
		pointer, text := leaf.Pointer, leaf.Value.Reveal()
		if pointer == "/version" || pointer == "/kind" || pointer == "/apiVersion" {
			continue // said by the kind of the document, or left to be understood
		}

		var list []string
		if slices.Contains(w.single, pointer) && yaml.Unmarshal([]byte(text), &list) == nil && len(list) == 1 {
			text = list[0]
		}

		if i := strings.LastIndexByte(pointer, '/'); i >= 0 && slices.Contains(w.reordered, pointer[:i]) {
			name, _, _ := strings.Cut(text, "=")
			pointer = pointer[:i] + "/" + merge.EscapePointer(name)
		}

		if slices.Contains(w.credentials, pointer) {
			text = strings.TrimRight(text, "\r\n")
		}

		out[pointer] = text
	}

	return out
}
