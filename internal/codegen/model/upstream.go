// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"go/types"
	"path"
	"reflect"
	"slices"
	"strings"
)

// UpstreamPackage is a package of another project whose types stand in for what is free-form in machinery. Its fields are
// called by their json tags.
type UpstreamPackage struct {
	// Path is the import path.
	Path string
	// As begins the Go names of what is mirrored, and names the file. A type's own name that begins so is left as it is.
	As string
}

// TypeMetaRow says which apiVersion and kind a mirrored object has.
type TypeMetaRow struct {
	// Go is the type that embeds TypeMeta, "path.Type".
	Go string
	// APIVersions and Kind are what is accepted.
	APIVersions []string
	Kind        string
	// Demanded is set where whoever reads the object takes it for broken without them.
	Demanded bool
	// Refused tells why neither may be set.
	Refused string
	// Reason says who reads the object.
	Reason string
}

// MergedRow makes one struct of several upstream ones, for a field whose content follows from the field beside it.
type MergedRow struct {
	// Name is the Go name of the struct.
	Name string
	// As is the package's name, as in UpstreamPackage.
	As string
	// By is the wire name of the field that decides.
	By string
	// Of are the types, with the values of that field that they belong to.
	Of []MergedType
	// Message tells what is wrong where a value has another type's fields, or no type. It begins with the field's name.
	Message string
}

// MergedType is a part of a merged struct.
type MergedType struct {
	Go  string
	For []string
}

// Choice says which fields of a merged struct belong to which value of the field beside it.
type Choice struct {
	By      string
	Of      []ChosenFields
	Message string
}

// ChosenFields are the fields that go with some values. Kind is empty where there is none.
type ChosenFields struct {
	For    []string
	Kind   string
	Fields []string
}

// UpstreamTypes lists the types of other modules that the tables name, for the loader.
func (t Tables) UpstreamTypes() []string {
	merged := map[string]MergedRow{}
	for _, row := range t.Merged {
		merged[row.Name] = row
	}

	var out []string

	for _, row := range t.Overrides {
		if parts, ok := merged[row.As.Type]; ok {
			for _, part := range parts.Of {
				out = append(out, part.Go)
			}
		} else if row.As.Type != "" {
			out = append(out, row.As.Type)
		}
	}

	slices.Sort(out)

	return slices.Compact(out)
}

// upstreamForm is the form of a field that an override gives the type of another module.
func (b *builder) upstreamForm(f *Field, name, at string) {
	if row, merged := b.rows.merged(name); merged {
		f.Type = Type{Shape: StructRef, Struct: b.merge(row, at)}
		f.Choice = b.choice(row, f.Type.Struct)

		return
	}

	named, st := b.upstreamStruct(name, at)
	if named == nil {
		return
	}

	f.Type = Type{Shape: StructRef, Struct: b.structType(named, st, "", at)}
}

// upstreamStruct finds a struct that was loaded.
func (b *builder) upstreamStruct(name, at string) (*types.Named, *types.Struct) {
	named := b.catalog.Types[name]
	if named == nil {
		b.fail("%s: type %s was not loaded; name it as \"import/path.Type\"", at, name)

		return nil, nil
	}

	st, ok := named.Underlying().(*types.Struct)
	if !ok {
		b.fail("%s: type %s is not a struct", at, name)

		return nil, nil
	}

	return named, st
}

// upstreamFields mirrors a struct by its json tags.
func (b *builder) upstreamFields(owner *types.Named, st *types.Struct, at string) []*Field {
	var out []*Field

	for i := range st.NumFields() {
		v := st.Field(i)
		key := b.rows.shortType(owner) + "." + v.Name()
		name, _, _ := strings.Cut(reflect.StructTag(st.Tag(i)).Get("json"), ",")

		switch {
		case name == "-", !v.Exported() && !v.Embedded():
			continue
		case isTypeMeta(v):
			out = append(out, b.typeMetaFields(owner, at)...)
		case v.Embedded() && name == "":
			out = append(out, b.inlined(v, key, at)...)
		case name == "":
			b.fail("%s: field %s has no json tag with a name; what it is called on the wire would be a guess", at, key)
		default:
			f := b.field(v, key, name, at+"."+name)
			if f == nil {
				continue
			}

			out = append(out, f)

			if sibling := b.sibling(f, v, key, at); sibling != nil {
				out = append(out, sibling)
			}
		}
	}

	return out
}

func isTypeMeta(v *types.Var) bool {
	named, ok := types.Unalias(v.Type()).(*types.Named)

	return ok && v.Embedded() && named.Obj().Name() == "TypeMeta"
}

// typeMetaFields are apiVersion and kind of an object.
func (b *builder) typeMetaFields(owner *types.Named, at string) []*Field {
	source := b.rows.shortType(owner)

	row, ok := b.rows.typeMeta(source)
	if !ok {
		b.fail("%s: type %s has an apiVersion and a kind, and no row says which", at, source)

		return nil
	}

	return newTypeMeta(row)
}

func newTypeMeta(row TypeMetaRow) []*Field {
	field := func(wire string, values []string) *Field {
		f := &Field{Name: goName(wire), JSON: wire, Type: Type{Shape: Text}, Enum: values, Demanded: row.Demanded}

		if row.Refused != "" {
			*f = Field{Name: f.Name, JSON: wire, Type: Type{Shape: RefusedValue}, Refusal: wire + ": " + row.Refused}
		}

		return f
	}

	return []*Field{field("apiVersion", row.APIVersions), field("kind", []string{row.Kind})}
}

// merge makes the struct of a merged row.
func (b *builder) merge(row MergedRow, at string) *Struct {
	source := "merged " + row.Name

	if s, done := b.structs[source]; done {
		return s
	}

	s := &Struct{Name: row.Name, Package: strings.ToLower(row.As), Source: source}

	b.claim(s.Name, source)
	b.structs[source] = s

	for _, part := range row.Of {
		named, st := b.upstreamStruct(part.Go, at)
		if named == nil {
			continue
		}

		for _, f := range b.fields(named, st, at) {
			f.Part = part.Go
			b.mergeField(s, f)
		}
	}

	return s
}

// mergeField adds a field; apiVersion and kind of several types become one each, with the values of all.
func (b *builder) mergeField(s *Struct, f *Field) {
	for _, have := range s.Fields {
		if have.JSON != f.JSON {
			continue
		}

		if len(have.Enum) == 0 || len(f.Enum) == 0 {
			b.fail("%s: field %s is wanted for %s and for %s", s.Source, f.JSON, have.Part, f.Part)
		}

		for _, value := range f.Enum {
			if !slices.Contains(have.Enum, value) {
				have.Enum = append(have.Enum, value)
			}
		}

		return
	}

	s.Fields = append(s.Fields, f)
}

// choice lists the fields of each part. It comes from the rows again, because the struct's fields are made once.
func (b *builder) choice(row MergedRow, s *Struct) *Choice {
	c := &Choice{By: row.By, Message: row.Message}

	for _, part := range row.Of {
		chosen := ChosenFields{For: part.For}

		if object, ok := b.rows.typeMeta(part.Go); ok {
			chosen.Kind = object.Kind
		}

		for _, f := range s.Fields {
			if f.Part == part.Go && len(f.Enum) == 0 {
				chosen.Fields = append(chosen.Fields, f.JSON)
			}
		}

		c.Of = append(c.Of, chosen)
	}

	return c
}

// upstreamType decides the forms that types of other modules have by JSON's rules, and machinery's have not.
func (b *builder) upstreamType(t types.Type, key, at string) (Type, bool) {
	if !b.rows.isUpstreamKey(key) {
		return Type{}, false
	}

	switch t := t.(type) {
	case *types.Basic:
		// JSON's numbers hold these; the integers and numbers of a schema do not.
		if row, ok := lookup[ScalarRow](b.rows, inScalars, t.Name()); ok {
			return Type{Shape: ScalarRef, Scalar: b.namedScalar(upperFirst(t.Name()), t.Name(), row, at)}, true
		}
	case *types.Slice:
		if elem, ok := t.Elem().Underlying().(*types.Basic); ok && elem.Kind() == types.Byte {
			return Type{Shape: Base64}, true
		}
	case *types.Map:
		// JSON writes keys of any string type as they are.
		if basic, ok := t.Key().Underlying().(*types.Basic); ok && basic.Kind() == types.String && t.Key() != basic {
			elem, ok := b.typeOf(t.Elem(), key, at)

			return Type{Shape: Map, Elem: &elem}, ok
		}
	case *types.Named:
		basic, ok := t.Underlying().(*types.Basic)
		if !ok || b.rows.scalar(t) != nil || marshals(t) != "" || len(constants(t)) > 0 {
			return Type{}, false // a row decides, or it is an error
		}

		return b.typeOf(basic, key, at)
	}

	return Type{}, false
}

// packageName is what begins the Go names of a package's types, and the name of their file.
func (b *builder) packageName(named *types.Named) (goPrefix, file string) {
	importPath := ""
	if pkg := named.Obj().Pkg(); pkg != nil {
		importPath = pkg.Path()
	}

	if row, ok := b.rows.upstream(importPath); ok {
		return row.As, strings.ToLower(row.As)
	}

	base := path.Base(importPath)

	return goName(base), base
}

// mirrorName is the Go name of a type's mirror.
func (b *builder) mirrorName(named *types.Named) string {
	prefix, _ := b.packageName(named)
	name := upperFirst(named.Obj().Name())

	if _, upstream := b.rows.upstream(pkgPath(named)); upstream && strings.HasPrefix(name, prefix) {
		return name
	}

	return prefix + name
}

func pkgPath(named *types.Named) string {
	if named.Obj().Pkg() == nil {
		return ""
	}

	return named.Obj().Pkg().Path()
}

func (x *rowIndex) upstream(importPath string) (UpstreamPackage, bool) {
	return lookup[UpstreamPackage](x, inUpstream, importPath)
}

// isUpstreamKey reports whether a field, "path.Type.Field", belongs to another module.
func (x *rowIndex) isUpstreamKey(key string) bool {
	slash := strings.LastIndex(key, "/") + 1
	name, _, _ := strings.Cut(key[slash:], ".")
	_, ok := x.upstream(key[:slash] + name)

	return ok
}

func (x *rowIndex) typeMeta(name string) (TypeMetaRow, bool) {
	return lookup[TypeMetaRow](x, inTypeMetas, name)
}

func (x *rowIndex) merged(name string) (MergedRow, bool) { return lookup[MergedRow](x, inMerged, name) }

// reason is what explains an object's row.
func (r TypeMetaRow) reason() string { return cmp.Or(r.Refused, r.Reason) }
