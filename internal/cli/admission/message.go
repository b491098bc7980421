// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/maesh-dev/ichor/internal/suggest"
)

// fieldOf is the field of an error; the schema's own errors of the whole object have a name that says nothing.
func fieldOf(err *field.Error) string {
	if err.Field == "<nil>" {
		return ""
	}

	return err.Field
}

// inContext adds what the field is to a message that is nothing but a pattern or a limit.
func inContext(root *structuralschema.Structural, err *field.Error, message string) string {
	if err.Type != field.ErrorTypeInvalid || !strings.HasPrefix(err.Detail, err.Field+" in body ") {
		return message
	}

	if form, ok := formOf(message); ok {
		message = form
	}

	description := descriptionOf(root, err.Field)
	if description == "" {
		return message
	}

	return message + "; " + strings.TrimSuffix(strings.Join(strings.Fields(description), " "), ".")
}

func descriptionOf(root *structuralschema.Structural, path string) string {
	parent, name := above(root, path)
	if parent == nil {
		return ""
	}

	if property, ok := parent.Properties[name]; ok {
		return property.Description
	}

	return ""
}

// document is a Talos document as a whole. That it sets too many fields is all that the schema has to say of it.
var document = regexp.MustCompile(`^spec\.documents\[\d+\]$`)

// describe says what is wrong without the value, which may be a password in the wrong place. The one exception are values of
// which only a few are allowed: to see what one wrote is what helps there, and nobody writes a password there.
func describe(err *field.Error) string {
	detail := strings.TrimPrefix(err.Detail, err.Field+" in body ")

	switch err.Type { //nolint:exhaustive // the others have a detail that says all
	case field.ErrorTypeRequired:
		return "must be set" + after(": ", detail)
	case field.ErrorTypeNotSupported:
		return fmt.Sprintf("%s is not one of the %s", quote(err.BadValue), detail)
	case field.ErrorTypeTypeInvalid:
		return typeMessage(detail)
	case field.ErrorTypeForbidden:
		return detail
	case field.ErrorTypeTooMany:
		if document.MatchString(err.Field) {
			return "a document sets exactly one field next to kind"
		}
	case field.ErrorTypeDuplicate:
		return "stands in the list more than once" + after(": ", detail)
	}

	if detail == "" {
		return "is not valid"
	}

	return detail
}

// typeMessage helps with the one mistake of types that YAML makes for its writers.
func typeMessage(detail string) string {
	if before, ok := strings.CutSuffix(detail, `: "null"`); ok {
		_, want, _ := strings.Cut(before, "must be of type ")

		return "is null, which sets nothing: remove it, or give it a value (" + typeWords(want) + "); to remove what other patches set, use spec.deletions"
	}

	if strings.HasSuffix(detail, `must be of type string: "boolean"`) {
		return "must be text, and is a boolean: put it in quotes (YAML reads on, off, yes and no without quotes as booleans)"
	}

	if strings.HasSuffix(detail, `must be of type string: "integer"`) || strings.HasSuffix(detail, `must be of type string: "number"`) {
		return "must be text, and is a number: put it in quotes"
	}

	_, types, ok := strings.Cut(detail, "must be of type ")
	want, got, pair := strings.Cut(types, ": ")

	if !ok || !pair {
		return detail
	}

	got = strings.Trim(got, `"`)
	message := "must be " + typeWords(want) + ", and is " + typeWords(got)

	switch {
	case want == "array" && got != "object":
		return message + ": write [...] around it, for one item too"
	case got == "string" && (want == "integer" || want == "number" || want == "boolean"):
		return message + ": remove the quotes, if it has some"
	default:
		return message
	}
}

// typeWords are the schema's types in other words.
func typeWords(t string) string {
	switch t {
	case "object":
		return "a map"
	case "array":
		return "a list"
	case "boolean":
		return "true or false"
	case "integer":
		return "a whole number"
	case "number":
		return "a number"
	case "string":
		return "text"
	default:
		return t
	}
}

func quote(value any) string {
	if text, ok := value.(string); ok {
		return fmt.Sprintf("%q", text)
	}

	return fmt.Sprint(value)
}

func after(separator, text string) string {
	if text == "" {
		return ""
	}

	return separator + text
}

// unknownField says that a field does not exist, and which one may be meant.
func unknownField(root *structuralschema.Structural, path string) string {
	const message = "unknown field"

	parent, name := above(root, path)
	if parent == nil {
		return message
	}

	names := slices.Sorted(maps.Keys(parent.Properties))
	best := suggest.Nearest(name, names)

	switch {
	case best != "":
		return fmt.Sprintf("%s; did you mean %s?", message, best)
	case len(names) > 0 && len(names) <= 12:
		return fmt.Sprintf("%s; known here: %s", message, strings.Join(names, ", "))
	default:
		return message
	}
}

// above walks to the object that a field is in. It is nil where the schema says nothing of it.
func above(node *structuralschema.Structural, path string) (*structuralschema.Structural, string) {
	tokens := strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
	if len(tokens) == 0 {
		return nil, ""
	}

	for _, token := range tokens[:len(tokens)-1] {
		property, ok := node.Properties[token]

		switch {
		case ok:
			node = &property
		case node.Items != nil:
			node = node.Items
		case node.AdditionalProperties != nil && node.AdditionalProperties.Structural != nil:
			node = node.AdditionalProperties.Structural
		default:
			return nil, ""
		}
	}

	return node, tokens[len(tokens)-1]
}
