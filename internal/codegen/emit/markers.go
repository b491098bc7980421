// SPDX-License-Identifier: Apache-2.0

package emit

import (
	"fmt"
	"strings"

	"github.com/maesh-dev/ichor/internal/codegen/model"
)

const validation = "kubebuilder:validation:"

// fieldMarkers are the markers of a field, without the plus sign, in a fixed order. Lists need none to be atomic: they are so
// by default, and saying it takes the schema 14 KB.
func fieldMarkers(f *model.Field) []string {
	var out []string

	switch {
	case f.Required:
		out = append(out, "required", validation+"MinLength=1")
	case f.Demanded:
		out = append(out, "required")
	default:
		out = append(out, "optional")
	}

	if len(f.Enum) > 0 {
		return append(out, validation+"Enum="+enum(f.Enum))
	}

	if f.Refusal != "" {
		// The literal false refuses every value and costs nothing. Whoever says the message says the field too.
		_, why, _ := strings.Cut(f.Refusal, ": ")

		return append(out, secretRule("false", why))
	}

	elements := validation

	if f.Type.Shape == model.List {
		elements += "items:"
	}

	if f.Type.Shape == model.List && f.MaxItems != 0 {
		out = append(out, fmt.Sprintf("%sMaxItems=%d", validation, f.MaxItems))
	}

	if f.Type.Shape == model.Map && f.MaxItems != 0 {
		out = append(out, fmt.Sprintf("%sMaxProperties=%d", validation, f.MaxItems))
	}

	if f.MaxLength != 0 {
		out = append(out, fmt.Sprintf("%sMaxLength=%d", elements, f.MaxLength))
	}

	if f.Minimum != nil {
		out = append(out, fmt.Sprintf("%sMinimum=%d", elements, *f.Minimum))
	}

	if f.Maximum != nil {
		out = append(out, fmt.Sprintf("%sMaximum=%d", elements, *f.Maximum))
	}

	return out
}

// structMarkers are the rules that several fields of a struct are subject to.
func structMarkers(s *model.Struct) []string {
	return append(sourceMarkers(s), choiceMarkers(s)...)
}

// sourceMarkers say that a text comes from one place. That a map or list and its sources have no name in common is not said
// here: such a rule costs more than it is worth, and whoever makes the document for Talos checks it.
func sourceMarkers(s *model.Struct) []string {
	plain := map[string]bool{}

	var out []string

	for _, f := range s.Fields {
		plain[f.JSON] = f.Refusal == "" && f.Resolves == ""

		if f.Type.Shape == model.ValueSource && plain[f.Resolves] {
			out = append(out, fmt.Sprintf("%sXValidation:rule=%q,message=%q", validation,
				fmt.Sprintf("!has(self.%s)||!has(self.%s)", f.Resolves, f.JSON), fmt.Sprintf("set one of %s and %s", f.Resolves, f.JSON)))
		}
	}

	return out
}

func scalarMarkers(s *model.Scalar) []string {
	var out []string

	if len(s.Enum) > 0 {
		return []string{validation + "Enum=" + enum(s.Enum)}
	}

	switch s.Base {
	case model.String, model.Bytes:
		if s.MinLength != 0 {
			out = append(out, fmt.Sprintf("%sMinLength=%d", validation, s.MinLength))
		}

		out = append(out, fmt.Sprintf("%sMaxLength=%d", validation, s.MaxLength))
	case model.Integer:
		out = append(out, validation+"Minimum=0", fmt.Sprintf("%sMaximum=%d", validation, s.Maximum))
	case model.IntOrString, model.Number:
		out = append(out, validation+"XIntOrString")
	case model.Arguments:
		out = append(out, fmt.Sprintf("%sMaxItems=%d", validation, s.MaxItems), fmt.Sprintf("%sitems:MaxLength=%d", validation, s.MaxLength))
	}

	if s.Pattern != "" {
		out = append(out, validation+"Pattern="+quotePattern(s.Pattern))
	}

	if s.Rule != "" {
		out = append(out, secretRule(s.Rule, s.Message))
	}

	return out
}

// secretRule refuses a value that may be a secret: the reason keeps it out of the message.
func secretRule(rule, message string) string {
	return fmt.Sprintf("%sXValidation:rule=%q,message=%q,reason=%q", validation, rule, message, "FieldValueForbidden")
}

// enum quotes values that kubebuilder would read as something other than a word.
func enum(values []string) string {
	quoted := make([]string, 0, len(values))
	for _, v := range values {
		quoted = append(quoted, fmt.Sprintf("%q", v))
	}

	return strings.Join(quoted, ";")
}

// quotePattern uses backquotes, in which kubebuilder takes everything as it is.
func quotePattern(pattern string) string { return "`" + pattern + "`" }

// ruleNamed says that the member which kind names is set; that no other is follows from the number of properties, which the
// schema bounds. Every access to a field of such a wide object takes the API server some 20 microseconds, so kind is read once,
// through a list of one, and one member is looked at: kind is searched for by halves in the sorted kinds.
func ruleNamed(documents []*model.Document) string {
	return "[self.kind].all(k," + namedOf(documents) + ")"
}

func namedOf(documents []*model.Document) string {
	if len(documents) == 1 {
		return "has(self." + documents[0].JSON + ")"
	}

	middle := len(documents) / 2

	return fmt.Sprintf("k<'%s'?(%s):%s", documents[middle].Kind, namedOf(documents[:middle]), namedOf(documents[middle:]))
}
