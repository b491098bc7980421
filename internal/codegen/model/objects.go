// SPDX-License-Identifier: Apache-2.0

package model

import (
	"go/types"
	"maps"
	"path"
	"slices"
	"strings"
)

// ObjectRow says that a struct which encodes itself is an object on the wire, of texts or of bytes in base64.
type ObjectRow struct {
	// Go is the type, "path.Type".
	Go string
	// Wire maps the names of its Go fields to those on the wire. It names every field.
	Wire map[string]string
	// Reason says why the type needs a row.
	Reason string
}

// objectType is the mirror of a struct that encodes itself.
func (b *builder) objectType(named *types.Named, row ObjectRow, at string) (Type, bool) {
	source := b.rows.shortType(named)

	st, ok := named.Underlying().(*types.Struct)
	if !ok {
		b.fail("%s: %s is in the object table and is no struct", at, source)

		return Type{}, false
	}

	if s, done := b.structs[source]; done {
		return Type{Shape: StructRef, Struct: s}, true
	}

	pkg := path.Base(named.Obj().Pkg().Path())
	s := &Struct{Name: goName(pkg) + named.Obj().Name(), Package: pkg, Source: source}

	b.claim(s.Name, source)
	b.structs[source] = s

	wanted := maps.Clone(row.Wire)

	for v := range st.Fields() {
		wire, named := wanted[v.Name()]
		if !named {
			b.fail("%s: the row of %s does not say what the field %s is called on the wire", at, source, v.Name())

			continue
		}

		delete(wanted, v.Name())

		s.Fields = append(s.Fields, b.withSibling(v, source+"."+v.Name(), wire, at+"."+wire)...)
	}

	for _, gone := range slices.Sorted(maps.Keys(wanted)) {
		b.fail("%s: %s has no field %s, which its row names", at, source, gone)
	}

	return Type{Shape: StructRef, Struct: s}, true
}

func (x *rowIndex) object(named *types.Named) (ObjectRow, bool) {
	return lookup[ObjectRow](x, inObjects, x.shortType(named))
}

// inObject reports whether a field belongs to such a struct.
func (x *rowIndex) inObject(field string) bool {
	_, ok := x.rows[inObjects+strings.TrimSuffix(field, path.Ext(field))]

	return ok
}
