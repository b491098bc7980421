// SPDX-License-Identifier: Apache-2.0

package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Owner says whom it belongs to that no patch may set.
type Owner string

// The owners.
const (
	// Bundle owns what is secret in a cluster, and what its machines trust.
	Bundle Owner = "SecretsBundle"
	// Cluster owns what says which cluster and what part of it a machine is: it follows from the objects of Cluster API.
	Cluster Owner = "Cluster"
	// Another owns what hands a machine over to another manager.
	Another Owner = "AnotherManager"
)

// Owned is a field of a document that only its owner may set, so that the renderer compares it with what the owner says.
type Owned struct {
	// Kind is the union's discriminator and Pointer a JSON Pointer into the document.
	Kind, Pointer string
	Owner         Owner
}

// denied are the kinds that are never offered, in the order of their names.
func (x *rowIndex) denied() []DecidedKind {
	out := slices.Clone(x.tables.Denied)
	slices.SortFunc(out, func(a, b DecidedKind) int { return strings.Compare(a.Kind, b.Kind) })

	return out
}

// ownersKnown finds rows without one of the owners: every denied kind has one, and a refused field may.
func ownersKnown(tables Tables) error {
	var errs []error

	owners := []Owner{Bundle, Cluster, Another}

	for _, row := range tables.Denied {
		if !slices.Contains(owners, row.Owner) {
			errs = append(errs, fmt.Errorf("%s%s: the owner %q is none of %q", inDenied, row.Kind, row.Owner, owners))
		}
	}

	for _, row := range tables.Refusals {
		if row.Owner != "" && !slices.Contains(owners, row.Owner) {
			errs = append(errs, fmt.Errorf("%s%s: the owner %q is none of %q", inRefusals, row.Go, row.Owner, owners))
		}
	}

	return errors.Join(errs...)
}

// ownedFields notes the fields of a document that have an owner. There is no way to compare one within a list or map.
func (b *builder) ownedFields(kind string, s *Struct, pointer string, compares bool) {
	for _, f := range s.Fields {
		at := pointer + "/" + f.JSON

		if row, refused := lookup[Refusal](b.rows, inRefusals, f.source); refused && row.Owner != "" {
			if !compares {
				b.fail("kind %s: %s: field %s has an owner and is within a list or map; what is there cannot be compared with what the owner says", kind, at, f.source)
			}

			b.owned = append(b.owned, Owned{Kind: kind, Pointer: at, Owner: row.Owner})
		}

		t, alone := f.Type, compares
		for t.Elem != nil {
			t, alone = *t.Elem, false
		}

		if t.Shape == StructRef {
			b.ownedFields(kind, t.Struct, at, alone)
		}
	}
}
