// SPDX-License-Identifier: Apache-2.0

package model

// Tables are the decisions of people that the generator applies. Every row must match something.
type Tables struct {
	// Prefix is cut from the import path of a type to make the short path by which rows name types.
	Prefix string
	// Offered kinds become members of the union.
	Offered []OfferedKind
	// Denied kinds are never offered, each for a reason.
	Denied []DecidedKind
	// Later kinds are not offered yet; Reason says what they wait for.
	Later []DecidedKind
	// Identity are the types (embedded) and fields that say what a document is: its apiVersion, kind or version. The union
	// knows them, so they are left out of the document.
	Identity []IdentityRow
	// Scalars substitute Go types that have a textual or numeric wire form of their own.
	Scalars []ScalarRow
	// Lists substitute named slice types that are plain lists on the wire.
	Lists []ListRow
	// Objects substitute structs that encode themselves.
	Objects []ObjectRow
	// Maps substitute named map types that are plain maps on the wire.
	Maps []MapRow
	// Refusals are fields that stay in the schema only to be refused with a message.
	Refusals []Refusal
	// References are fields whose value comes, or can come, from Secrets and ConfigMaps.
	References []ReferenceRow
	// Secrets are fields that are secret although their names do not tell.
	Secrets []SecretRow
	// Harmless are fields that only sound like secrets.
	Harmless []HarmlessRow
	// Overrides give a single field another form than its Go type has.
	Overrides []Override
	// Notes are texts for fields whose form, first version or merge is not plain.
	Notes []Note
	// Since tells of fields, by machinery's names, the minor of the first Talos that has them where that is newer than what they are
	// in. It is derived, so an entry that matches nothing is none to correct.
	Since map[string]int
	// Limits raise or lower a bound for one field.
	Limits []Limit
	// Upstream are the packages of other projects that types are mirrored from, TypeMetas their apiVersions and kinds, and
	// Merged the structs that are made of several of theirs.
	Upstream  []UpstreamPackage
	TypeMetas []TypeMetaRow
	Merged    []MergedRow
	// Bounds hold for everything that no row names.
	Bounds Bounds
}

// OfferedKind is a kind that users may write.
type OfferedKind struct {
	// Kind is machinery's name of the kind.
	Kind string
	// As is the discriminator, where it is not Kind.
	As string
	// Member is the union member's JSON name, where lowerCamel of the kind does not come out well.
	Member string
	// Doc is one sentence of ours on what the document does.
	Doc string
}

// DecidedKind is a kind that is not offered. A denied one has an owner, and Instead tells users what to do.
type DecidedKind struct {
	Kind, Reason, Instead string
	Owner                 Owner
}

// IdentityRow names a type ("path.Type") or a field ("path.Type.Field").
type IdentityRow struct{ Go, Reason string }

// Base is the JSON form of a scalar.
type Base int

// The JSON forms.
const (
	// String is a JSON string.
	String Base = iota
	// Integer is a JSON integer.
	Integer
	// IntOrString is either.
	IntOrString
	// Bytes is base64 in a JSON string.
	Bytes
	// Arguments is a list of strings that Talos writes as a scalar if it has one element.
	Arguments
	// Number is a number of any size and precision: an integer or a string for users, a JSON number for Talos.
	Number
)

// ScalarRow substitutes a Go type by a scalar with rules.
type ScalarRow struct {
	// Go is the type, "path.Type".
	Go string
	// Base is the JSON form.
	Base Base
	// Enum lists the permitted values in their canonical spelling, and Refused the others that machinery reads, and that Talos refuses
	// in every document that has the type.
	Enum, Refused []string
	// Pattern is a regular expression for the strings.
	Pattern string
	// Rule is a CEL rule for what no error may show, where a pattern would show it. It needs Message, which is told instead.
	Rule, Message string
	// MinLength and MaxLength bound strings. Zero means none and the default.
	MinLength, MaxLength int
	// MaxItems bounds the values of Arguments. Zero means the default.
	MaxItems int
	// Maximum bounds integers, whose minimum is then 0.
	Maximum int64
	// Doc is shown at every field of this type, so it is short.
	Doc string
	// Examples are values that Talos accepts; tests use them.
	Examples []string
	// Reason says why the type needs a row.
	Reason string
}

// ListRow says that a named slice type is a plain list on the wire.
type ListRow struct{ Go, Reason string }

// MapRow says that a named map type is a plain map on the wire.
type MapRow struct{ Go, Reason string }

// Refusal keeps a field in the schema to refuse it.
type Refusal struct {
	// Go is the field, "path.Type.Field", by machinery's names.
	Go string
	// Message tells the user why and what to use instead. It names the field as users write it.
	Message string
	// Owner is set for what the base of every config has from it, and no layer above may change.
	Owner Owner
}

// Override gives a field another form.
type Override struct {
	// Go is the field, "path.Type.Field", by machinery's names.
	Go string
	// As is the form.
	As Form
	// Reason says why.
	Reason string
}

// Form is a form that a field can be given: a scalar, a map of scalars, or a struct of another module.
type Form struct {
	// Type is a type of another module, "import/path.Type", or the name of a merged one. The rest is not used then.
	Type string
	Map  bool
	// Name is the Go name of the scalar.
	Name string
	// Scalar has the rules; its Go type and reason are not used.
	Scalar ScalarRow
}

// Note is the text of a field. ReferenceOnly keeps it out of the schema.
type Note struct {
	Go, Text      string
	ReferenceOnly bool
}

// Limit sets a field's bound.
type Limit struct {
	// Go is the field, "path.Type.Field", by machinery's names.
	Go string
	// MaxLength bounds a string, or the strings of a list. MaxItems bounds a list or a map.
	MaxLength, MaxItems int
	// Reason says why.
	Reason string
}

// Bounds are the defaults that keep every value, and so the cost of every rule, bounded.
type Bounds struct {
	MaxLength, MaxItems, MaxProperties int
	// MaxSources bounds the entries of a map that come by reference. Zero stands for MaxProperties.
	MaxSources int
	// MaxNote is the longest text, in bytes, that a field or a scalar may carry into the schema.
	MaxNote int
}
