// SPDX-License-Identifier: Apache-2.0

package model

import (
	"go/types"
	"reflect"
	"strings"
)

// fields mirrors the fields of a struct, in its order; inlined structs are flattened, as they are on the wire.
func (b *builder) fields(owner *types.Named, st *types.Struct, at string) []*Field {
	if _, upstream := b.rows.upstream(pkgPath(owner)); upstream {
		return b.upstreamFields(owner, st, at)
	}

	var out []*Field

	for i := range st.NumFields() {
		v := st.Field(i)
		key := b.rows.shortType(owner) + "." + v.Name()

		tags := reflect.StructTag(st.Tag(i))
		tag, tagged := tags.Lookup("yaml")
		name, options, _ := strings.Cut(tag, ",")

		switch {
		case b.rows.identity(v.Type(), key), name == "-":
			continue
		case !tagged && !v.Exported():
			continue // the YAML encoder does not see it either
		case strings.Contains(options, "inline"):
			out = append(out, b.inlined(v, key, at)...)
		case !tagged || name == "":
			b.fail("%s: field %s has no yaml tag with a name; what it is called on the wire would be a guess", at, key)
		default:
			fields := b.withSibling(v, key, name, at+"."+name)
			if len(fields) > 0 {
				b.mergeNote(fields[0], tags.Get("merge"), key, at)
			}

			out = append(out, fields...)
		}
	}

	return out
}

// mergeNote tells how a field merges where that is not what its form suggests.
func (b *builder) mergeNote(f *Field, merge, key, at string) {
	switch {
	case merge != "" && merge != "replace":
		b.fail("%s: field %s merges by %q, which is not known", at, key, merge)
	case merge == "replace" && f.Refusal == "":
		f.Note = strings.TrimSpace(f.Note + " Replaces what earlier layers set.")

		if bound := b.rows.tables.Bounds.MaxNote; len(f.Note) > bound {
			b.fail("%s%s: %d bytes with what is said of merging, at most %d fit the schema", inNotes, key, len(f.Note), bound)
		}
	}
}

func (b *builder) inlined(v *types.Var, key, at string) []*Field {
	named, ok := types.Unalias(v.Type()).(*types.Named)
	if !ok {
		b.fail("%s: field %s is inlined and not a named struct", at, key)

		return nil
	}

	st, ok := named.Underlying().(*types.Struct)
	if !ok {
		b.fail("%s: field %s is inlined and not a struct", at, key)

		return nil
	}

	return b.fields(named, st, at)
}

func (b *builder) field(v *types.Var, key, wire, at string) *Field {
	f := &Field{source: key, goType: v.Type(), Name: goName(wire), JSON: wire}
	f.Note, f.Remark = b.rows.note(key)

	if message, refused := b.refusalOf(key, wire); refused {
		if name, _, _ := strings.Cut(message, ": "); name != wire && !strings.HasSuffix(name, "."+wire) {
			b.fail("%s: the refusal of %s does not begin with the field's name as users write it", at, key)
		}

		f.Refusal = message

		var ok bool
		if f.Type, ok = refusedType(v.Type()); !ok {
			b.fail("%s: field %s has type %s, for which there is no form that refuses everything", at, key, b.rows.shortName(v.Type()))
		}

		return f
	}

	if form, overridden := b.rows.override(key); overridden && form.Type != "" {
		if b.upstreamForm(f, form.Type, at); f.Type.Shape == 0 {
			return nil
		}
	} else if overridden {
		f.Type = b.formed(form, at)
		b.bound(f, v.Type())
	} else {
		typ, ok := b.typeOf(v.Type(), key, at)
		if !ok {
			return nil
		}

		f.Type = typ
		b.bound(f, v.Type())
	}

	b.limit(f, key, at)

	return f
}

// formed is the type that an override gives.
func (b *builder) formed(form Form, at string) Type {
	scalar := Type{Shape: ScalarRef, Scalar: b.namedScalar(form.Name, "form "+form.Name, form.Scalar, at)}
	if form.Map {
		return Type{Shape: Map, Elem: &scalar}
	}

	return scalar
}

// bound sets the bounds that follow from a field's form.
func (b *builder) bound(f *Field, t types.Type) {
	bounds := b.rows.tables.Bounds
	leaf := f.Type

	if leaf.Shape == List {
		f.MaxItems = bounds.MaxItems
		leaf = *leaf.Elem
	}

	if leaf.Shape == Map {
		f.MaxItems = bounds.MaxProperties
		leaf = *leaf.Elem
	}

	if leaf.Shape == Text || leaf.Shape == Base64 {
		// No marker bounds the values of a map; the bound on their number and the request's size do.
		if f.Type.Shape != Map {
			f.MaxLength = bounds.MaxLength
		}
	}

	if leaf.Shape == Int32 || leaf.Shape == Int64 {
		f.Minimum, f.Maximum = integerRange(t)
	}
}

func (b *builder) limit(f *Field, key, at string) {
	row, ok := b.rows.limit(key)

	// Bounds of ours would be arbitrary in other projects' types, and take the schema 9 KB.
	if b.rows.isUpstreamKey(key) {
		defer func(f *Field) { f.MaxLength, f.MaxItems = row.MaxLength, row.MaxItems }(f)
	}

	if !ok {
		return
	}

	if row.MaxLength != 0 {
		if f.MaxLength == 0 {
			b.fail("%s: the limit of %s bounds a length, but the field is no string", at, key)
		}

		f.MaxLength = row.MaxLength
	}

	if row.MaxItems != 0 {
		if f.MaxItems == 0 {
			b.fail("%s: the limit of %s bounds items, but the field is no list or map", at, key)
		}

		f.MaxItems = row.MaxItems
	}
}
