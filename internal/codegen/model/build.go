// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"errors"
	"fmt"
	"go/types"
	"path"
	"slices"
	"strings"

	"github.com/maesh-dev/ichor/internal/codegen/load"
)

// Build applies the tables to the kinds that were loaded. All errors that it finds are returned together.
func Build(catalog *load.Catalog, tables Tables) (*API, error) {
	rows, err := indexTables(tables)
	if err != nil {
		return nil, err
	}

	b := &builder{
		rows:    rows,
		catalog: catalog,
		structs: map[string]*Struct{},
		scalars: map[string]*Scalar{},
		names:   map[string]string{},
		walking: map[string]bool{},
	}

	api := &API{Module: catalog.Module, Version: catalog.Version}

	for _, kind := range catalog.Kinds {
		offered, decided := rows.kind(kind.Name)

		switch {
		case offered != nil:
			if doc := b.document(kind, *offered); doc != nil {
				api.Documents = append(api.Documents, doc)
				b.secretsOf(doc)
				b.ownedFields(doc.Kind, doc.Struct, "", true)
			}
		case !decided:
			b.fail("kind %s (%s): in no table; offer it, deny it with a reason, or say what it waits for", kind.Name, rows.shortType(kind.Type))
		default:
			b.deniedSecrets(kind)
		}
	}

	for _, row := range rows.unused() {
		b.fail("%s: the row matches nothing that is offered; remove it or correct it", row)
	}

	for _, s := range b.structs {
		api.Structs = append(api.Structs, s)
	}

	for _, s := range b.scalars {
		api.Scalars = append(api.Scalars, s)
	}

	api.Secrets, api.Denied, api.Owned = b.secrets, rows.denied(), b.owned

	slices.SortStableFunc(api.Owned, func(x, y Owned) int { return cmp.Compare(x.Kind, y.Kind) })
	slices.SortFunc(api.Documents, func(x, y *Document) int { return cmp.Compare(x.Kind, y.Kind) })
	slices.SortFunc(api.Structs, func(x, y *Struct) int { return cmp.Compare(x.Name, y.Name) })
	slices.SortFunc(api.Scalars, func(x, y *Scalar) int { return cmp.Compare(x.Name, y.Name) })

	if err := errors.Join(b.errs...); err != nil {
		return nil, err
	}

	return api, nil
}

type builder struct {
	rows    *rowIndex
	catalog *load.Catalog
	structs map[string]*Struct
	scalars map[string]*Scalar
	names   map[string]string // Go name -> what it mirrors
	walking map[string]bool   // structs whose fields are being walked, to find recursion
	secrets []Secret
	owned   []Owned
	errs    []error
}

func (b *builder) fail(format string, args ...any) {
	b.errs = append(b.errs, fmt.Errorf(format, args...))
}

// claim reserves a Go name, which two different things must not share.
func (b *builder) claim(name, source string) {
	if first, taken := b.names[name]; taken && first != source {
		b.fail("name %s: wanted for %s and for %s", name, first, source)
	}

	b.names[name] = source
}

func (b *builder) document(kind load.Kind, row OfferedKind) *Document {
	name := cmp.Or(row.As, row.Kind)

	st, ok := kind.Type.Underlying().(*types.Struct)
	if !ok {
		b.fail("kind %s: %s is not a struct", kind.Name, b.rows.shortType(kind.Type))

		return nil
	}

	if row.Doc == "" {
		b.fail("kind %s: offered without a sentence that says what it does", kind.Name)
	}

	page := strings.ToLower(name)
	pkg := path.Base(kind.Type.Obj().Pkg().Path())

	doc := &Document{
		Kind:      name,
		TalosKind: kind.Name,
		JSON:      cmp.Or(row.Member, memberName(name)),
		Named:     isNamed(kind.Type),
		Doc:       row.Doc + "\nSee " + referenceAddress + pkg + "/" + page,
	}

	doc.Struct = b.structType(kind.Type, st, name, "kind "+name)
	doc.Struct.Doc = doc.Doc

	if doc.Named {
		b.requireName(doc)
	}

	return doc
}

// referenceAddress is where Talos documents its kinds: <address><package>/<kind in lower case>.
const referenceAddress = "https://docs.siderolabs.com/talos/v1.14/reference/configuration/"

// isNamed reports whether machinery keys documents of a type by their name: it does if the type has the method Name() string.
func isNamed(named *types.Named) bool {
	obj, _, _ := types.LookupFieldOrMethod(types.NewPointer(named), true, named.Obj().Pkg(), "Name")

	fn, ok := obj.(*types.Func)
	if !ok {
		return false
	}

	sig := fn.Signature()

	return sig.Params().Len() == 0 && sig.Results().Len() == 1 &&
		types.Identical(sig.Results().At(0).Type(), types.Typ[types.String])
}

func (b *builder) requireName(doc *Document) {
	for _, f := range doc.Struct.Fields {
		if f.JSON == "name" && f.Type.Shape == Text {
			f.Required = true

			return
		}
	}

	b.fail("kind %s: documents are keyed by name, but %s has no string field that is called name", doc.TalosKind, doc.Struct.Source)
}

// structType returns the mirror of a struct and makes it if need be. The empty name stands for <Package><Type>.
func (b *builder) structType(named *types.Named, st *types.Struct, name, at string) *Struct {
	source := b.rows.shortType(named)

	if b.walking[source] {
		b.fail("%s: type %s contains itself; a CRD schema cannot say that", at, source)

		return &Struct{Name: source}
	}

	if s, done := b.structs[source]; done {
		return s
	}

	_, pkg := b.packageName(named)
	s := &Struct{
		Name:    cmp.Or(name, b.mirrorName(named)),
		Package: pkg,
		Source:  source,
	}

	b.claim(s.Name, source)
	b.structs[source] = s
	b.walking[source] = true
	s.Fields = b.fields(named, st, at)
	b.walking[source] = false

	taken := map[string]string{}

	for _, f := range s.Fields {
		for _, key := range []string{"field " + f.Name, "wire name " + f.JSON} {
			if first, dup := taken[key]; dup {
				b.fail("%s: %s is wanted for %q and for %q", source, key, first, f.JSON)
			}

			taken[key] = f.JSON
		}
	}

	return s
}
