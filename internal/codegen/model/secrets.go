// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"go/types"
	"reflect"
	"slices"
	"strings"

	"github.com/maesh-dev/ichor/internal/codegen/load"
)

// Decision is what becomes of a field that is called like a secret, or is one.
type Decision string

// The decisions.
const (
	// Refused fields cannot be written.
	Refused Decision = "refused"
	// Referenced fields come from a Secret, and cannot be written themselves.
	Referenced Decision = "reference"
	// EitherWay is for free-form content: it can be written, and come from a Secret.
	EitherWay Decision = "either way"
	// DeniedKind is for fields of kinds that are not offered.
	DeniedKind Decision = "denied kind"
	// Harmless fields only sound like secrets.
	Harmless Decision = "harmless"
)

// Secret is a line of the secret report.
type Secret struct {
	// Kind is the union's discriminator, or Talos' own name of a kind that is not offered.
	Kind string
	// Path leads to the field: [] stands for an item of a list, {} for a value of a map.
	Path     string
	Decision Decision
	// Why is the message or reason that the decision carries.
	Why string
}

// HarmlessRow says why a field that is called like a secret is none.
type HarmlessRow struct {
	// Go is the field, "path.Type.Field", by machinery's names.
	Go, Reason string
}

// SecretRow says that a field is a secret, which its name does not tell.
type SecretRow struct {
	// Go is the field, "path.Type.Field", by machinery's names.
	Go, Reason string
}

// secretParts are the parts of names by which Talos' own audit finds secrets; secretWords count as whole words only.
var (
	secretParts = []string{"password", "passphrase", "token", "secret", "privatekey", "presharedkey", "apikey"}
	secretWords = []string{"key", "auth"}
)

func soundsSecret(wire string) bool {
	if lower := strings.ToLower(wire); slices.ContainsFunc(secretParts, func(part string) bool { return strings.Contains(lower, part) }) {
		return true
	}

	return slices.ContainsFunc(words(wire), func(word string) bool { return slices.Contains(secretWords, strings.ToLower(word)) })
}

// secretsOf decides about the fields of a document that is offered.
func (b *builder) secretsOf(doc *Document) {
	b.secretFields(doc.Kind, doc.Struct, "")
}

func (b *builder) secretFields(kind string, s *Struct, path string) {
	for _, f := range s.Fields {
		if f.Resolves != "" {
			continue // it is told with the field that it stands for
		}

		at := strings.TrimPrefix(path+"."+f.JSON, ".")

		if decision, why := b.decide(f); decision != "" {
			b.secrets = append(b.secrets, Secret{Kind: kind, Path: at, Decision: decision, Why: why})
		} else if soundsSecret(f.JSON) || b.rows.secret(f.source) {
			b.fail("kind %s: %s: field %s is called like a secret; refuse it, let it come by reference, or say why it is harmless", kind, at, f.source)
		}

		t := f.Type
		for t.Elem != nil {
			at += map[Shape]string{List: "[]", Map: "{}"}[t.Shape]
			t = *t.Elem
		}

		if t.Shape == StructRef {
			b.secretFields(kind, t.Struct, at)
		}
	}
}

// decide says what becomes of a field, and nothing of one that neither sounds like a secret nor is one.
func (b *builder) decide(f *Field) (Decision, string) {
	row, referenced := b.rows.reference(f.source)
	known := b.rows.secret(f.source)

	switch {
	case referenced && row.As == Content:
		return EitherWay, row.Reason
	case referenced:
		return Referenced, row.Reason
	case f.Refusal != "":
		if known || soundsSecret(f.JSON) || f.goType != nil && hasSecret(f.goType) {
			return Refused, f.Refusal
		}

		return "", ""
	}

	if !known && !soundsSecret(f.JSON) {
		return "", ""
	}

	if harmless, ok := lookup[HarmlessRow](b.rows, inHarmless, f.source); ok {
		return Harmless, harmless.Reason
	}

	return "", ""
}

// hasSecret reports whether a type has a field that sounds like a secret.
func hasSecret(t types.Type) bool {
	found := false

	eachField(t, nil, func(wire string) {
		found = found || soundsSecret(wire)
	})

	return found
}

// eachField visits the fields of a struct, and of the structs within it. Where a field has no name on the wire, its Go name
// stands in.
func eachField(t types.Type, seen []types.Type, visit func(wire string)) {
	t = elementType(t)

	st, ok := t.Underlying().(*types.Struct)
	if !ok || slices.Contains(seen, t) {
		return
	}

	seen = append(slices.Clip(seen), t)

	for i := range st.NumFields() {
		v := st.Field(i)
		name, options, _ := strings.Cut(reflect.StructTag(st.Tag(i)).Get("yaml"), ",")

		switch {
		case name == "-":
			continue
		case strings.Contains(options, "inline"):
		case v.Exported():
			visit(cmp.Or(name, strings.ToLower(v.Name())))
		}

		eachField(v.Type(), seen, visit)
	}
}

// deniedSecrets lists the fields of a kind that is not offered.
func (b *builder) deniedSecrets(kind load.Kind) {
	row, denied := lookup[DecidedKind](b.rows, inDenied, kind.Name)
	if !denied {
		row, _ = lookup[DecidedKind](b.rows, inLater, kind.Name)
	}

	b.deniedFields(Secret{Kind: kind.Name, Decision: DeniedKind, Why: row.Reason}, kind.Type, nil)
}

// deniedFields adds a line for each secret below a place, which within tells.
func (b *builder) deniedFields(within Secret, named *types.Named, seen []*types.Named) {
	st, ok := named.Underlying().(*types.Struct)
	if !ok || slices.Contains(seen, named) {
		return
	}

	seen = append(slices.Clip(seen), named)

	for i := range st.NumFields() {
		v := st.Field(i)
		name, options, _ := strings.Cut(reflect.StructTag(st.Tag(i)).Get("yaml"), ",")
		inner, _ := types.Unalias(elementType(v.Type())).(*types.Named)

		if name == "-" || !v.Exported() {
			continue
		}

		at := within

		if !strings.Contains(options, "inline") {
			wire := cmp.Or(name, strings.ToLower(v.Name()))
			at.Path = strings.TrimPrefix(at.Path+"."+wire, ".")

			if soundsSecret(wire) || b.rows.secret(b.rows.shortType(named)+"."+v.Name()) {
				b.secrets = append(b.secrets, at)
			}

			at.Path += brackets(v.Type())
		}

		if inner != nil {
			b.deniedFields(at, inner, seen)
		}
	}
}

// brackets tells in a path that a field is a list or map.
func brackets(t types.Type) string {
	switch u := t.Underlying().(type) {
	case *types.Pointer:
		return brackets(u.Elem())
	case *types.Slice:
		return "[]" + brackets(u.Elem())
	case *types.Map:
		return "{}" + brackets(u.Elem())
	default:
		return ""
	}
}

func (x *rowIndex) secret(field string) bool {
	_, ok := lookup[SecretRow](x, inSecrets, field)

	return ok
}
