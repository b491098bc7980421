// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"errors"
	"fmt"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
)

// Patch is an ordered list of documents and deletions, each with the record of
// what its source says. It does not change after it was made, and any number of
// goroutines may apply it at once.
type Patch struct {
	documents []*patchDocument
}

// patchDocument is one document of a patch: deletions first, then the merge.
type patchDocument struct {
	index     int
	id        ID
	plan      *plan
	deletions []deletion
	doc       config.Document // nil when there are only deletions
	said      *said
	marks     marks
}

// PatchDocument describes one document of a patch.
type PatchDocument struct {
	// Index is its position in the source, from 0; empty YAML documents count.
	Index int
	ID    ID
	// Document is what is merged, nil for a document of deletions only. It is
	// shared and must not be changed.
	Document config.Document
	// Deletions are JSON pointers, "" for the whole document; an element of a
	// list that is selected by a key is written /path/key=value.
	Deletions []string
}

// Documents lists what the patch consists of, in order.
func (p *Patch) Documents() []PatchDocument {
	out := make([]PatchDocument, 0, len(p.documents))

	for _, d := range p.documents {
		pd := PatchDocument{Index: d.index, ID: d.id, Document: d.doc}
		for _, deletion := range d.deletions {
			pd.Deletions = append(pd.Deletions, deletion.String())
		}

		out = append(out, pd)
	}

	return out
}

func (d *patchDocument) checkDeletion(del deletion, empty config.Document) error {
	_, named := empty.(config.NamedDocument)

	switch {
	case len(del.tokens) > 0:
		return checkPath(d.plan, del.tokens, isIdentity(d.id, named))
	case d.id.Kind == LegacyKind:
		return errors.New("the legacy document cannot be deleted as a whole; delete fields of it")
	case named && d.id.Name == "":
		return fmt.Errorf("name is missing: say which %s to delete", d.id.Kind)
	}

	return nil
}

// isIdentity tells which top-level fields of a document say what it is.
func isIdentity(id ID, named bool) func(string) bool {
	if id.Kind == LegacyKind {
		return func(name string) bool { return name == "version" }
	}

	return func(name string) bool {
		return name == "kind" || name == "apiVersion" || (named && name == "name")
	}
}
