// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"sync"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"go.yaml.in/yaml/v4"

	"github.com/maesh-dev/ichor/internal/yamlsyntax"
)

// Load parses a patch: one or more Talos documents in YAML or JSON, the modern
// kinds and the legacy document. It is strict: unknown kinds and fields, wrong
// types and doubled keys are errors of type *Error, which name the document and
// the field. `$patch: delete` is taken in all of Talos' forms. An empty patch
// (no document at all) is an error.
func Load(data []byte) (_ *Patch, err error) {
	// Talos guards its own loader in the same way: the parser has panicked on
	// malformed input before, and a panic here would stop a controller.
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("the patch cannot be read: the YAML parser failed on it")
		}
	}()

	decoder := yaml.NewDecoder(bytes.NewReader(data))
	patch := &Patch{}

	for index := 0; ; index++ {
		var node yaml.Node

		if err := decoder.Decode(&node); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			broken := yamlsyntax.Explain(data, err)

			return nil, &Error{Index: index, Line: broken.Line, Err: broken}
		}

		if node.Kind != yaml.DocumentNode || len(node.Content) != 1 || isNull(node.Content[0]) {
			continue
		}

		doc, err := readDocument(node.Content[0], index)
		if err != nil {
			return nil, err
		}

		patch.documents = append(patch.documents, doc)
	}

	if len(patch.documents) == 0 {
		return nil, errors.New("the patch is empty: want at least one Talos document")
	}

	return patch, nil
}

// readDocument reads one document of a patch.
func readDocument(node *yaml.Node, index int) (*patchDocument, error) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}

	if node.Kind == yaml.SequenceNode {
		return nil, &Error{Index: index, Line: node.Line, Err: errors.New(
			"a list is no Talos document; JSON patches (RFC 6902) are not supported, write the fields to change as a document")}
	}

	if node.Kind != yaml.MappingNode {
		return nil, &Error{Index: index, Line: node.Line, Err: fmt.Errorf("want a Talos document, found %s", found(node))}
	}

	head := readHead(node)

	empty, err := head.prototype()
	if err != nil {
		return nil, &Error{Index: index, ID: head.id, Line: node.Line, Err: err}
	}

	p, err := planFor(reflect.TypeOf(empty).Elem())
	if err != nil {
		return nil, &Error{Index: index, ID: head.id, Err: err}
	}

	if _, named := empty.(config.NamedDocument); !named {
		head.id.Name = ""
	}

	doc := &patchDocument{index: index, id: head.id, plan: p}

	if err := doc.read(node, empty); err != nil {
		return nil, inDocument(index, head.id, err)
	}

	return doc, nil
}

func (d *patchDocument) read(node *yaml.Node, empty config.Document) error {
	var err error

	if d.deletions, err = takeDeletions(node); err != nil {
		return err
	}

	for _, deletion := range d.deletions {
		if err := d.checkDeletion(deletion, empty); err != nil {
			return err
		}
	}

	if len(d.deletions) > 0 && isBare(node) {
		return nil
	}

	var r reader

	if d.said, err = r.read(node, d.plan); err != nil {
		return err
	}

	target := empty.Clone()

	if err := CheckKeys(node); err != nil {
		return err
	}

	if err := node.Load(target, yaml.WithUniqueKeys(false)); err != nil {
		return d.blame(target)
	}

	d.doc = target

	return nil
}

// head is what tells a document's type.
type head struct {
	id         ID
	apiVersion string
	legacy     bool
}

func readHead(node *yaml.Node) head {
	var h head

	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i].Value, node.Content[i+1]
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}

		switch key {
		case "kind":
			h.id.Kind = value.Value
		case "apiVersion":
			h.apiVersion = value.Value
		case "name":
			h.id.Name = value.Value
		case "machine", "cluster", "debug", "persist", "version":
			h.legacy = true
		}
	}

	// A document of deletions alone may have nothing left that tells legacy.
	if h.id.Kind == "" && h.apiVersion == "" && h.legacy {
		h.id = ID{Kind: LegacyKind}
	} else {
		h.legacy = false
	}

	return h
}

var kindName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{0,62}$`)

// prototypes holds an empty document per kind that was asked for; only kinds
// that exist get in.
var prototypes sync.Map

// prototype gives an empty document of the kind. Machinery's registry of kinds
// is internal, so it is asked through its loader, once per kind.
func (h head) prototype() (config.Document, error) {
	switch {
	case h.legacy:
		return &v1alpha1.Config{}, nil
	case h.id.Kind == "":
		return nil, errors.New("kind is missing; set apiVersion and kind, or machine/cluster for the legacy document")
	case h.apiVersion == "":
		return nil, errors.New("apiVersion is missing; set it to v1alpha1")
	case h.apiVersion != "v1alpha1":
		return nil, errors.New("unknown apiVersion; set it to v1alpha1")
	case !kindName.MatchString(h.id.Kind):
		return nil, errors.New("unknown kind")
	}

	if known, ok := prototypes.Load(h.id.Kind); ok {
		return known.(config.Document), nil //nolint:forcetypeassert // only documents are stored
	}

	stub := "apiVersion: v1alpha1\nkind: " + h.id.Kind + "\n"

	provider, err := configloader.NewFromBytes([]byte(stub), configloader.WithNoValidation())
	if err != nil || len(provider.Documents()) != 1 {
		return nil, unknownKind(h.id.Kind)
	}

	doc := provider.Documents()[0]
	prototypes.Store(h.id.Kind, doc)

	return doc, nil
}
