// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"go/types"
	"math"
)

// typeOf decides the form of a Go type. It reports failure through b.fail and returns false.
func (b *builder) typeOf(t types.Type, key, at string) (Type, bool) {
	t = types.Unalias(t)

	if ptr, ok := t.(*types.Pointer); ok {
		return b.typeOf(ptr.Elem(), key, at)
	}

	if typ, ok := b.upstreamType(t, key, at); ok {
		return typ, true
	}

	if named, ok := t.(*types.Named); ok {
		return b.namedType(named, key, at)
	}

	switch t := t.(type) {
	case *types.Basic:
		if shape, ok := basicShape(t); ok {
			return Type{Shape: shape}, true
		}
	case *types.Slice:
		if isBytes(t) && b.rows.inObject(key) {
			return Type{Shape: Base64}, true
		}

		return b.listOf(t, key, at)
	case *types.Map:
		if basic, ok := t.Key().Underlying().(*types.Basic); ok && basic.Kind() == types.String && types.Unalias(t.Key()) == basic {
			elem, ok := b.typeOf(t.Elem(), key, at)

			return Type{Shape: Map, Elem: &elem}, ok
		}
	}

	b.fail("%s: field %s has type %s, which has no form in a schema; override or refuse it", at, key, b.rows.shortName(t))

	return Type{}, false
}

func (b *builder) listOf(t *types.Slice, key, at string) (Type, bool) {
	elem, ok := b.typeOf(t.Elem(), key, at)

	return Type{Shape: List, Elem: &elem}, ok
}

func (b *builder) namedType(named *types.Named, key, at string) (Type, bool) {
	if row := b.rows.scalar(named); row != nil {
		return Type{Shape: ScalarRef, Scalar: b.scalar(named, *row, at)}, true
	}

	if b.rows.list(named) {
		slice, ok := named.Underlying().(*types.Slice)
		if !ok {
			b.fail("%s: field %s: %s is in the list table and is no slice", at, key, b.rows.shortType(named))

			return Type{}, false
		}

		return b.listOf(slice, key, at)
	}

	if row, ok := b.rows.object(named); ok {
		return b.objectType(named, row, at)
	}

	source := b.rows.shortType(named)

	if method := marshals(named); method != "" {
		b.fail("%s: field %s has the special type %s (it has %s); substitute, override or refuse it", at, key, source, method)

		return Type{}, false
	}

	switch u := named.Underlying().(type) {
	case *types.Struct:
		return Type{Shape: StructRef, Struct: b.structType(named, u, "", at)}, true
	case *types.Map:
		if b.rows.isMap(named) {
			return b.typeOf(u, key, at)
		}
	}

	b.fail("%s: field %s has the special type %s; substitute, override or refuse it", at, key, source)

	return Type{}, false
}

func (b *builder) scalar(named *types.Named, row ScalarRow, at string) *Scalar {
	name := b.mirrorName(named)

	if err := checkEnum(named, row); err != nil {
		b.fail("%s: %w", at, err)
	}

	return b.namedScalar(name, b.rows.shortType(named), row, at)
}

func (b *builder) namedScalar(name, source string, row ScalarRow, at string) *Scalar {
	if s, done := b.scalars[source]; done {
		return s
	}

	if row.MaxLength == 0 && len(row.Enum) == 0 {
		row.MaxLength = b.rows.tables.Bounds.MaxLength
	}

	if row.MaxItems == 0 {
		row.MaxItems = b.rows.tables.Bounds.MaxItems
	}

	s := &Scalar{Name: name, Source: source, ScalarRow: row}

	b.claim(s.Name, source)
	b.scalars[source] = s

	if err := checkScalar(s, b.rows.tables.Bounds); err != nil {
		b.fail("%s: %w", at, err)
	}

	return s
}

// checkEnum compares an enum's row with the constants that machinery exports, so that a value that an upgrade adds shows up.
func checkEnum(named *types.Named, row ScalarRow) error {
	values := constants(named)

	if listed := len(row.Enum) + len(row.Refused); len(row.Enum) > 0 && len(values) > 0 && len(values) != listed {
		return fmt.Errorf("%s%s: the row lists %d values, machinery has %d", inScalars, row.Go, listed, len(values))
	}

	return nil
}

// constants are the values of the constants of a type that its package exports.
func constants(named *types.Named) map[string]bool {
	values := map[string]bool{}
	scope := named.Obj().Pkg().Scope()

	for _, name := range scope.Names() {
		if c, ok := scope.Lookup(name).(*types.Const); ok && c.Exported() && types.Identical(c.Type(), named) {
			values[c.Val().ExactString()] = true
		}
	}

	return values
}

// marshalMethods are the methods by which a type changes its own wire form.
var marshalMethods = []string{"MarshalYAML", "UnmarshalYAML", "MarshalText", "UnmarshalText", "MarshalJSON", "UnmarshalJSON"}

func marshals(named *types.Named) string {
	for _, name := range marshalMethods {
		obj, _, _ := types.LookupFieldOrMethod(types.NewPointer(named), true, named.Obj().Pkg(), name)
		if _, ok := obj.(*types.Func); ok {
			return name
		}
	}

	return ""
}

func basicShape(t *types.Basic) (Shape, bool) {
	switch t.Kind() {
	case types.String:
		return Text, true
	case types.Bool:
		return Bool, true
	case types.Int8, types.Int16, types.Int32, types.Uint8, types.Uint16:
		return Int32, true
	case types.Int, types.Int64, types.Uint, types.Uint32, types.Uint64:
		return Int64, true
	default:
		return 0, false
	}
}

// integerRange gives the range of an integer where the JSON form, which is signed and 32 or 64 bits wide, is wider.
func integerRange(t types.Type) (minimum, maximum *int64) {
	basic, ok := elementType(t).Underlying().(*types.Basic)
	if !ok {
		return nil, nil
	}

	ranged := func(lo, hi int64) (*int64, *int64) { return &lo, &hi }

	switch basic.Kind() {
	case types.Uint8:
		return ranged(0, math.MaxUint8)
	case types.Uint16:
		return ranged(0, math.MaxUint16)
	case types.Uint32:
		return ranged(0, math.MaxUint32)
	case types.Int8:
		return ranged(math.MinInt8, math.MaxInt8)
	case types.Int16:
		return ranged(math.MinInt16, math.MaxInt16)
	case types.Uint, types.Uint64:
		lo := int64(0)

		return &lo, nil
	default:
		return nil, nil
	}
}

// elementType strips pointers, lists and maps.
func elementType(t types.Type) types.Type {
	for {
		t = types.Unalias(t)

		var elem types.Type

		switch u := t.(type) {
		case *types.Pointer:
			elem = u.Elem()
		case *types.Slice:
			elem = u.Elem()
		case *types.Map:
			elem = u.Elem()
		case *types.Named:
			slice, ok := u.Underlying().(*types.Slice)
			if !ok {
				return t
			}

			elem = slice.Elem()
		default:
			return t
		}

		t = elem
	}
}

// refusedType is the loosest schema type that a value of the Go type can have: the message, not a type error, is to be seen.
// It reports false for a type for which there is no such form.
func refusedType(t types.Type) (Type, bool) {
	switch u := t.Underlying().(type) {
	case *types.Pointer:
		return refusedType(u.Elem())
	case *types.Basic:
		switch info := u.Info(); {
		case info&types.IsBoolean != 0:
			return Type{Shape: RefusedFlag}, true
		case info&types.IsInteger != 0:
			return Type{Shape: RefusedNumber}, true
		default:
			return Type{Shape: RefusedValue}, u.Kind() == types.String
		}
	case *types.Slice:
		if elem, ok := u.Elem().Underlying().(*types.Basic); ok && elem.Kind() == types.Byte {
			return Type{Shape: RefusedValue}, true
		}

		elem, ok := refusedType(u.Elem())

		return Type{Shape: List, Elem: &elem}, ok && elem.Shape != List
	case *types.Struct, *types.Map:
		return Type{Shape: RefusedObject}, true
	default:
		return Type{}, false
	}
}
