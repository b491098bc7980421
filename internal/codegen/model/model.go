// SPDX-License-Identifier: Apache-2.0

package model

import "go/types"

// API is everything that is to be emitted.
type API struct {
	// Module and Version say which machinery was read.
	Module, Version string
	// Documents are the members of the union, sorted by discriminator.
	Documents []*Document
	// Structs are all structs, the documents' own included, sorted by name.
	Structs []*Struct
	// Scalars are the named scalars in use, sorted by name.
	Scalars []*Scalar
	// Secrets tell what becomes of every field that is a secret or is called like one, in the order of kinds.
	Secrets []Secret
	// Denied are the kinds that are never offered, and Owned the fields of the others that have an owner.
	Denied []DecidedKind
	Owned  []Owned
}

// Document is one member of the union.
type Document struct {
	// Kind is the discriminator's value and the name of the member's field and type.
	Kind string
	// TalosKind is machinery's name of the kind.
	TalosKind string
	// JSON is the member's JSON name.
	JSON string
	// Named tells whether Talos keys documents of this kind by their name.
	Named bool
	// Doc is the sentence for users and the address of Talos' page.
	Doc string
	// Struct is the document's type.
	Struct *Struct
}

// Struct is a mirror of one of machinery's structs.
type Struct struct {
	// Name is the Go name.
	Name string
	// Package is the last element of the machinery package's path: it decides the file.
	Package string
	// Source is the short path and name of machinery's type.
	Source string
	// Doc is text for users. Nested structs have none: it would be repeated at every use.
	Doc string
	// Fields are in machinery's order.
	Fields []*Field
}

// Field is a field of a mirror struct.
type Field struct {
	// Name is the Go name and JSON the name on the wire.
	Name, JSON string
	// Type is the form.
	Type Type
	// Required is set for the name by which Talos keys a document; every other field is optional.
	Required bool
	// Demanded is set for a field without which a mirrored object is broken: the schema requires it, the Go type does not.
	Demanded bool
	// Enum lists the permitted values of a string that has no type of its own.
	Enum []string
	// Part is the type that a field of a merged struct comes from.
	Part string
	// Choice is set for a field whose content follows from another one's value.
	Choice *Choice
	// Note is text for users.
	Note string
	// Remark is text for users that only the reference has.
	Remark string
	// Refusal is the message with which every value is refused, if any.
	Refusal string
	// Resolves is the wire name of the field whose value this one refers to, if it is a reference.
	Resolves string
	// Form is what such a value becomes, where it is not a text: "bytes" or "pod".
	Form string
	// MaxLength bounds a string or the strings of a list, MaxItems a list or map, Minimum and Maximum an integer.
	MaxLength, MaxItems int
	Minimum, Maximum    *int64

	source string     // "path.Type.Field", by machinery's names
	goType types.Type // nil where no Go field stands behind it
}

// Shape is the kind of a Type.
type Shape int

// The shapes.
const (
	Bool Shape = iota + 1
	Int32
	Int64
	Text
	Base64
	ScalarRef
	StructRef
	List
	Map
	RefusedValue
	RefusedObject
	SecretKey
	ValueSource
	RefusedFlag
	RefusedNumber
)

// Type is the form of a field or element.
type Type struct {
	Shape Shape
	// Elem is the element of a List or Map.
	Elem *Type
	// Scalar is set for ScalarRef, Struct for StructRef.
	Scalar *Scalar
	Struct *Struct
}

// Scalar is a named scalar type.
type Scalar struct {
	Name   string
	Source string
	ScalarRow
}
