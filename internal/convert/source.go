// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"go.yaml.in/yaml/v4"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
	"github.com/maesh-dev/ichor/internal/yamlsyntax"
)

// maxFaults bounds how many faults of one document are told: after so many, nobody reads on.
const maxFaults = 50

// source is one document of the input.
type source struct {
	place Place
	id    merge.ID

	// root is the document without aliases, and after load without its deletions.
	root     *yaml.Node
	comments bool

	// document is what Talos makes of it; nil when it has deletions alone.
	document config.Document
	removed  []removal

	// order is the place in the sequence of documents.
	order  int
	faults []Fault
}

func (s *source) fault(pointer string, line int, message string) {
	place := s.place
	place.Pointer = pointer

	if line > 0 {
		place.Line = line
	}

	if s.id.Kind != "" {
		place.Document = s.id.String()
	}

	if len(s.faults) < maxFaults {
		s.faults = append(s.faults, Fault{Place: place, Message: message})
	}
}

// parse reads the YAML. It is false when there is nothing to go on with; a document without content is none and no fault.
func (s *source) parse(data []byte) (ok bool) {
	// As where the merge reads documents: the parser has panicked on malformed input before.
	defer func() {
		if recover() != nil {
			s.fault("", 0, "cannot be read: the YAML parser failed on it")

			ok = false
		}
	}()

	decoder := yaml.NewDecoder(bytes.NewReader(data))

	for {
		var node yaml.Node

		err := decoder.Decode(&node)
		if errors.Is(err, io.EOF) {
			return true
		}

		if err != nil {
			broken := yamlsyntax.Explain(data, err)
			s.fault("", broken.Line, broken.Message)

			return false
		}

		s.comments = s.comments || hasComments(&node)

		if node.Kind != yaml.DocumentNode || len(node.Content) != 1 || isNull(node.Content[0]) {
			continue
		}

		if s.root != nil {
			s.fault("", node.Line, `a second document begins here: put a line with "---" before it`)

			return false
		}

		e := expander{}

		if s.root, err = e.copy(node.Content[0], 0); err != nil {
			s.fault("", e.line, err.Error())

			return false
		}

		s.place.Line = s.root.Line
	}
}

// load has Talos read the document. It is false when there are faults.
func (s *source) load(data []byte) bool {
	s.id = headOf(s.root)

	if reason := foreign(s.root); reason != "" {
		s.id = merge.ID{}
		s.fault("", 0, reason)

		return false
	}

	if reason := denied(s.id.Kind); reason != "" {
		s.fault("", 0, reason)

		return false
	}

	s.findLeftovers(s.root, "")

	patch, err := merge.Load(data)
	if err != nil {
		patch = s.tellAll(err)
	}

	if patch == nil || len(patch.Documents()) != 1 {
		return false
	}

	loaded := patch.Documents()[0]
	s.id, s.document = loaded.ID, loaded.Document

	t := taker{id: s.id, place: s.place}
	t.take(s.root)
	s.removed = t.removed

	return true
}

// tellAll tells an error of the merge, and what is wrong beside it: the merge stops at the first fault, so what is at fault is
// taken out and the rest is tried again. It gives what is left in the end, nil if that cannot be read either.
func (s *source) tellAll(err error) *merge.Patch {
	tree, pointers := clone(s.root)

	for {
		detail, ok := errors.AsType[*merge.Error](err)
		if !ok {
			s.fault("", 0, err.Error())

			return nil
		}

		pointer, line := detail.Pointer, detail.Line

		if node := find(tree, pointer); node != nil {
			pointer = pointers[node]
			line = s.at(pointer).Line
		}

		message := detail.Err.Error() + hint(s.root, s.id, detail)

		// That the form is wrong as well of what no patch can hold is of no interest.
		if above, why := refusedAt(s.id, pointer); why != "" {
			pointer, message = above, why
		}

		s.fault(pointer, line, message)

		if detail.Pointer == "" || len(s.faults) >= maxFaults || !prune(tree, detail.Pointer) {
			return nil
		}

		rest, failed := yaml.Marshal(tree)
		if failed != nil {
			return nil
		}

		patch, again := merge.Load(rest)
		if again == nil {
			s.root = tree

			return patch
		}

		err = again
	}
}

// findLeftovers finds what is no value but a place for one: braces of a template, the mask of a printed config, and the tags of other programs,
// which Talos ignores.
func (s *source) findLeftovers(node *yaml.Node, pointer string) {
	if tag := node.ShortTag(); strings.HasPrefix(tag, "!") && !strings.HasPrefix(tag, "!!") && tag != "!" {
		s.fault(pointer, node.Line, "has the tag "+tag+", which another program fills in: have it do so first, and convert what comes out")

		return
	}

	switch node.Kind { //nolint:exhaustive // aliases are gone, and a document node was taken off
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			s.findLeftovers(node.Content[i+1], pointer+"/"+merge.EscapePointer(node.Content[i].Value))
		}
	case yaml.SequenceNode:
		for i, item := range node.Content {
			s.findLeftovers(item, fmt.Sprintf("%s/%d", pointer, i))
		}
	case yaml.ScalarNode:
		switch {
		case node.Value == merge.Mask:
			s.fault(pointer, node.Line, "is masked, as a printed config has it: take the value from the config itself (render --show-secrets prints it)")
		case strings.HasPrefix(node.Value, "ENC[AES256_GCM,"):
			s.fault(pointer, node.Line, "is encrypted with SOPS: decrypt the file first (sops --decrypt FILE), and convert what comes out")
		case isTemplate(node.Value):
			s.fault(pointer, node.Line, "has braces of a template ({{ }}): fill the template in first, and convert what comes out")
		}
	}
}

// isTemplate looks at single lines: longer texts are files and manifests, in which braces may be meant.
func isTemplate(text string) bool {
	_, rest, ok := strings.Cut(text, "{{")

	return ok && strings.Contains(rest, "}}") && !strings.Contains(text, "\n")
}

// at is the place of a field in the file: of one that is not there, that of the deepest one above it that is.
func (s *source) at(pointer string) Place {
	place := s.place
	place.Document, place.Pointer = s.id.String(), pointer
	node := s.root

	for _, token := range tokensOf(pointer) {
		key, next := child(node, token)
		if next == nil {
			break
		}

		node, place.Line = next, key.Line
	}

	return place
}

// isEmpty says that a legacy document sets nothing; a null says nothing. Of other kinds, a document with a name alone can be one.
func (s *source) isEmpty() bool {
	if s.id.Kind != merge.LegacyKind {
		return false
	}

	for i := 0; i+1 < len(s.root.Content); i += 2 {
		if s.root.Content[i].Value != "version" && !isNull(s.root.Content[i+1]) {
			return false
		}
	}

	return true
}

// inOrder sorts the faults by line.
func (s *source) inOrder() []Fault {
	slices.SortStableFunc(s.faults, func(a, b Fault) int { return cmp.Compare(a.Line, b.Line) })

	return s.faults
}

// headOf tells kind and name of a document by what Talos goes by.
func headOf(root *yaml.Node) merge.ID {
	if root.Kind != yaml.MappingNode {
		return merge.ID{}
	}

	kind, name, apiVersion := textOf(root, "kind"), textOf(root, "name"), textOf(root, "apiVersion")
	if kind == "" && apiVersion == "" && slices.ContainsFunc(legacyKeys, func(key string) bool { _, value := child(root, key); return value != nil }) {
		return merge.ID{Kind: merge.LegacyKind}
	}

	return merge.ID{Kind: kind, Name: name}
}

var legacyKeys = []string{"machine", "cluster", "debug", "persist", "version"}
