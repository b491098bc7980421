// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"go.yaml.in/yaml/v4"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

const (
	// maxInput bounds all documents together, in bytes: parsed, they need many times as much memory.
	maxInput = 4 << 20

	// maxDocuments is how many documents a patch can hold, and as many again that do nothing but delete.
	maxDocuments = 2 * 128

	// maxEntries is how many entries the longest list of a patch can have, and maxValues how many values all documents together: to
	// convert more takes long, and comes to nothing.
	maxEntries = 1024
	maxValues  = 20000

	// maxObject bounds the patch and the Secret, in bytes of JSON. The API server takes a Secret of at most 1 MiB, and etcd a
	// request of 1.5 MiB, in which an object may stand twice.
	maxObject = 700 << 10
)

// Document is one YAML or JSON document of a file.
type Document struct {
	// File is the name by which messages call the file.
	File string

	// Index of the document in the file, from 0.
	Index int

	// Data is the document after as many line feeds as there are lines before it in its file, so that a parser's line numbers
	// are those of the file.
	Data []byte

	// Commented tells that comments stood before the document, which are not in Data.
	Commented bool
}

// Options say what patch to make.
type Options struct {
	// Name of the TalosConfigPatch, and of the Secret for what moves out of it.
	Name string

	// Namespace of both. Empty: none is written.
	Namespace string

	// Layer of the patch, and its role, which is set with layer Role and only then.
	Layer bootstrapv1.PatchLayer
	Role  bootstrapv1.MachineRole

	// Secrets says that a Secret may be made. Without, documents with credentials are refused.
	Secrets bool
}

// Result is a conversion.
type Result struct {
	// Patch is the TalosConfigPatch.
	Patch *bootstrapv1.TalosConfigPatch

	// Secret holds what moved out of the documents. It is nil when nothing did.
	Secret *corev1.Secret

	// Comments tells that the documents had comments, which are lost.
	Comments bool

	documents []*source
	deletions []removal
}

// Convert turns documents into a patch, in their order. The error is an *Error, which has everything that is wrong.
func Convert(documents []Document, options Options) (*Result, error) {
	c := &converter{options: options, secret: newVault(options)}

	size := 0
	for i := range documents {
		size += len(documents[i].Data)
	}

	if size > maxInput {
		return nil, &Error{[]Fault{{Message: fmt.Sprintf("the documents have more than %d MiB: no patch can be that large", maxInput>>20)}}}
	}

	filled := 0

	for i := range documents {
		if len(bytes.TrimSpace(documents[i].Data)) > 0 {
			filled++
		}
	}

	if filled > maxDocuments {
		return nil, &Error{[]Fault{{Message: fmt.Sprintf("there are %d documents, and a TalosConfigPatch holds 128, with as many deletions: convert them in several parts", filled)}}}
	}

	for i := range documents {
		if c.add(&documents[i]); c.values > maxValues {
			break
		}
	}

	if len(c.sources) == 0 && len(c.faults) == 0 {
		c.faults = append(c.faults, Fault{Message: "there is no Talos document among the files"})
	}

	c.checkOrder()

	if len(c.faults) > 0 {
		return nil, &Error{c.faults}
	}

	return c.result()
}

// converter is one run of Convert.
type converter struct {
	options   Options
	sources   []*source
	removals  []removal
	documents []machineconfigv1alpha1.Document
	written   []*source // for each of documents, what it was made of
	secret    *vault
	faults    []Fault
	comments  bool

	// values is how many the documents have so far.
	values int
}

// add converts one document.
func (c *converter) add(document *Document) {
	s := &source{place: Place{File: document.File, Index: document.Index, Line: 1}}

	if !s.parse(document.Data) {
		c.faults = append(c.faults, s.faults...)

		return
	}

	c.comments = c.comments || s.comments || document.Commented

	if s.root == nil {
		return
	}

	c.sources = append(c.sources, s)

	if !c.measure(s) {
		c.faults = append(c.faults, s.inOrder()...)

		return
	}

	if s.load(document.Data) {
		c.convert(s)
	}

	c.faults = append(c.faults, s.inOrder()...)
}

// measure counts the values of a document. It is false, with a fault, for what no patch can hold.
func (c *converter) measure(s *source) bool {
	var count func(node *yaml.Node, pointer string, line int) bool

	count = func(node *yaml.Node, pointer string, line int) bool {
		step := 1

		switch node.Kind {
		case yaml.MappingNode:
			step = 2
		case yaml.SequenceNode:
		default:
			c.values++

			return true
		}

		if entries := len(node.Content) / step; entries > maxEntries {
			s.fault(pointer, line, fmt.Sprintf("has %d entries, and no list or map of a TalosConfigPatch can have more than %d", entries, maxEntries))

			return false
		}

		for i := 0; i < len(node.Content); i += step {
			below, value := strconv.Itoa(i), node.Content[i]
			if step == 2 {
				below, value = merge.EscapePointer(value.Value), node.Content[i+1]
			}

			if !count(value, pointer+"/"+below, node.Content[i].Line) {
				return false
			}
		}

		return true
	}

	s.id = headOf(s.root)

	if !count(s.root, "", 0) {
		return false
	}

	if c.values > maxValues {
		s.fault("", 0, fmt.Sprintf("with this document there are more than %d values, too many for one patch: convert the documents in several parts", maxValues))

		return false
	}

	return true
}

// convert makes what the patch holds of a document that Talos takes.
func (c *converter) convert(s *source) {
	for _, each := range s.removed {
		deletion, err := each.deletion()
		if err != nil {
			s.fault(each.pointer(), each.line, err.Error())

			continue
		}

		each.made, each.order = deletion, len(c.sources)
		c.removals = append(c.removals, each)
	}

	if s.document == nil || s.isEmpty() {
		return
	}

	s.order = len(c.sources)

	if made, ok := s.typed(c.secret); ok {
		c.documents = append(c.documents, made)
		c.written = append(c.written, s)
	}
}

func (c *converter) result() (*Result, error) {
	result := &Result{
		Patch: &bootstrapv1.TalosConfigPatch{
			TypeMeta:   metav1.TypeMeta{APIVersion: bootstrapv1.GroupVersion.String(), Kind: "TalosConfigPatch"},
			ObjectMeta: metav1.ObjectMeta{Name: c.options.Name, Namespace: c.options.Namespace},
			Spec:       bootstrapv1.TalosConfigPatchSpec{Layer: c.options.Layer, Role: c.options.Role, Documents: c.documents},
		},
		Secret: c.secret.object(), Comments: c.comments, documents: c.written,
	}

	// Said twice it is the same deletion.
	seen := map[bootstrapv1.PatchDeletion]bool{}

	for _, each := range c.removals {
		if !seen[each.made] {
			seen[each.made] = true
			result.Patch.Spec.Deletions = append(result.Patch.Spec.Deletions, each.made)
			result.deletions = append(result.deletions, each)
		}
	}

	if len(c.documents)+len(c.removals) == 0 {
		return nil, &Error{[]Fault{{Place: c.sources[0].place, Message: "the documents set nothing and delete nothing"}}}
	}

	return result, result.checkSize()
}

func (r *Result) checkSize() error {
	for what, object := range map[string]any{"patch": r.Patch, "Secret": r.Secret} {
		data, err := json.Marshal(object)
		if err != nil {
			return &Error{[]Fault{{Message: fmt.Sprintf("the %s cannot be encoded", what)}}}
		}

		if len(data) > maxObject {
			return &Error{[]Fault{{Message: fmt.Sprintf("the %s would have %d KiB, and %d KiB are safe for the API server: convert the documents in several parts",
				what, len(data)>>10, maxObject>>10)}}}
		}
	}

	return nil
}

// checkOrder finds deletions of what a document sets afterwards: in Talos a document's deletions come before its own settings
// and those of the documents after it, in a TalosConfigPatch after all documents.
func (c *converter) checkOrder() {
	for _, each := range c.removals {
		for _, s := range c.written {
			if s.order < each.order || s.id != each.id {
				continue
			}

			if pointer, ok := each.setAgain(s); ok {
				c.faults = append(c.faults, Fault{
					Place: Place{File: each.place.File, Index: each.place.Index, Line: each.line, Document: each.id.String(), Pointer: each.pointer()},
					Message: fmt.Sprintf("is deleted here and set again (%s): a TalosConfigPatch deletes after its documents are merged, so this needs two patches: "+
						"convert the deletion and what follows it apart, and give the second patch a higher priority", s.at(pointer)),
				})

				break
			}
		}
	}
}
