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
		// The literal false refuses every value and costs nothing.
		return append(out, secretRule("false", f.Refusal))
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

func scalarMarkers(s *model.Scalar) []string {
	var out []string

	if len(s.Enum) > 0 {
		return []string{validation + "Enum=" + enum(s.Enum)}
	}

	switch s.Base {
	case model.String, model.NumberText, model.Bytes:
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

// ruleOne says that exactly one member is set.
func ruleOne(documents []*model.Document) string {
	has := make([]string, 0, len(documents))
	for _, d := range documents {
		has = append(has, "has(self."+d.JSON+")")
	}

	return "[" + strings.Join(has, ",") + "].filter(x,x).size()==1"
}

// ruleNamed says that the member which kind names is set. It reads kind once, through a list of one: every access to a field of
// such a wide object takes the API server some 20 microseconds.
func ruleNamed(documents []*model.Document) string {
	named := make([]string, 0, len(documents))
	for _, d := range documents {
		named = append(named, fmt.Sprintf("(k!='%s'||has(self.%s))", d.Kind, d.JSON))
	}

	return "[self.kind].all(k," + strings.Join(named, "&&") + ")"
}
