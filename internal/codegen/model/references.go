// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"go/types"
)

// ReferenceForm says how a field comes by reference.
type ReferenceForm int

// The forms.
const (
	// Credential is a secret by its nature: the field itself is refused, and <field>SecretRef beside it names a Secret's key.
	Credential ReferenceForm = iota + 1
	// Content may be a secret: the field stays, and <field>From beside it names a Secret's or ConfigMap's key. A map, and a list of
	// NAME=value, get one source for each name.
	Content
	// Pod is a whole pod, or a list of them: too large for the schema, so the field itself is refused, and podFrom or podsFrom
	// beside it names keys.
	Pod
)

// ReferenceRow says that the value of a field comes, or can come, from a Secret or ConfigMap.
type ReferenceRow struct {
	// Go is the field, "path.Type.Field", by machinery's names.
	Go string
	// As is the form.
	As ReferenceForm
	// Instead names what users can do besides, in the message that refuses a credential.
	Instead string
	// Reason says what makes the field a credential or free-form.
	Reason string
}

// refusalOf is the message that refuses a field, by a row of its own or because its value comes by reference alone.
func (b *builder) refusalOf(key, wire string) (string, bool) {
	if message, refused := b.rows.refusal(key); refused {
		return message, true
	}

	row, ok := b.rows.reference(key)
	if !ok {
		return "", false
	}

	switch row.As {
	case Credential:
		message := wire + ": a credential; use " + wire + secretSuffix
		if row.Instead != "" {
			message += ", or " + row.Instead
		}

		return message, true
	case Pod:
		return wire + ": whole pods are too large for the schema; use " + wire + fromSuffix, true
	default:
		return "", false
	}
}

const (
	secretSuffix = "SecretRef"
	fromSuffix   = "From"
)

// withSibling is a field, and the one beside it that says where its value comes from, if there is one.
func (b *builder) withSibling(v *types.Var, key, wire, at string) []*Field {
	f := b.field(v, key, wire, at)
	if f == nil {
		return nil
	}

	if sibling := b.sibling(f, v, key, at); sibling != nil {
		return []*Field{f, sibling}
	}

	return []*Field{f}
}

// sibling is the field that says where the value of another one comes from, nil if there is none.
func (b *builder) sibling(f *Field, v *types.Var, key, at string) *Field {
	row, ok := b.rows.reference(key)
	if !ok {
		return nil
	}

	if _, refused := b.rows.refusal(key); refused {
		b.fail("%s: field %s is refused by a row and comes by reference by another", at, key)

		return nil
	}

	out := &Field{Resolves: f.JSON}
	from := Type{Shape: ValueSource}

	switch row.As {
	case Credential:
		out.JSON = f.JSON + secretSuffix
		out.Type = Type{Shape: SecretKey}
		out.Note = "A key of a Secret of this namespace."

		if basic, ok := v.Type().Underlying().(*types.Basic); isBytes(v.Type()) {
			out.Form = "bytes"
		} else if !ok || basic.Kind() != types.String {
			b.fail("%s: field %s is no text and no bytes; it cannot come from a Secret", at, key)
		}
	case Content:
		out.JSON = f.JSON + fromSuffix
		out.Note = "In place of " + f.JSON + "."

		switch {
		case f.Type.Shape == Text:
			out.Type = from
		case isTexts(f.Type):
			out.Type = Type{Shape: Map, Elem: &from}
			out.MaxItems = cmp.Or(b.rows.tables.Bounds.MaxSources, b.rows.tables.Bounds.MaxProperties)
			out.Note = "Adds to " + f.JSON + ", by name."
		default:
			b.fail("%s: field %s is no text, and no list or map of texts; its value cannot come by reference", at, key)
		}
	case Pod:
		out.JSON = f.JSON + fromSuffix
		out.Type = from
		out.Form = "pod"
		out.Note = "A Pod in YAML or JSON, in a key of a Secret or ConfigMap of this namespace."

		if f.Type.Shape == List {
			out.Type = Type{Shape: List, Elem: &from}
			out.MaxItems = b.rows.tables.Bounds.MaxItems
			out.Note = "Pods in YAML or JSON, in keys of Secrets or ConfigMaps of this namespace."
		}
	default:
		b.fail("%s%s: the row does not say how the field comes by reference", inReferences, key)
	}

	out.Name = goName(out.JSON)

	return out
}

func isTexts(t Type) bool {
	return (t.Shape == List || t.Shape == Map) && t.Elem.Shape == Text
}

func isBytes(t types.Type) bool {
	slice, ok := t.Underlying().(*types.Slice)
	if !ok {
		return false
	}

	elem, ok := slice.Elem().Underlying().(*types.Basic)

	return ok && elem.Kind() == types.Byte
}

func (x *rowIndex) reference(field string) (ReferenceRow, bool) {
	return lookup[ReferenceRow](x, inReferences, field)
}
