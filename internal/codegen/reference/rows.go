// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/maesh-dev/ichor/internal/codegen/model"
)

// row is one line of a table of fields.
type row struct {
	Path, Form, Since, Merge, Text string
}

// freeForm is the type of what machinery does not type; its upstream type gets a page of its own.
const freeForm = "config/types/meta.Unstructured"

// rower makes the rows of one document.
type rower struct {
	in Input
	// kind is machinery's.
	kind string
	rows []row
	// shared collects the structs that have pages of their own.
	shared map[string]*model.Struct
	// alone says that the struct is not a part of a document, and nothing is known of its history.
	alone bool
}

// fields adds the rows of a struct's fields. The path is as users write it, the pointer as the history has it.
func (r *rower) fields(s *model.Struct, path, pointer string, withItem bool) {
	for _, f := range s.Fields {
		r.field(f, strings.TrimPrefix(path+"."+f.JSON, "."), pointer+"/"+f.JSON, withItem)
	}
}

func (r *rower) field(f *model.Field, path, pointer string, withItem bool) {
	known := r.in.Since.Newest().Documents[r.kind][pointer]
	words, below := merges(f, known, withItem)

	line := row{Path: "`" + path + "`", Form: form(f), Merge: words, Text: r.text(f, pointer)}
	if f.Required || f.Demanded {
		line.Path += " **required**"
	}

	if !r.alone {
		line.Since = minor(r.in.Since.First(r.kind, pointer))
	}

	inner, steps := f.Type, ""

	for inner.Shape == model.List || inner.Shape == model.Map {
		if inner.Shape == model.List {
			path += "[]"
		} else {
			path += "[*]"
		}

		steps += "/*"
		inner = *inner.Elem
	}

	if inner.Shape == model.StructRef && f.Refusal == "" && r.freeForm(pointer, steps) {
		r.shared[inner.Struct.Name] = inner.Struct
		line.Form += fmt.Sprintf(": [%s](%s)", inner.Struct.Name, sharedPage(inner.Struct))
		r.rows = append(r.rows, line)

		return
	}

	r.rows = append(r.rows, line)

	if inner.Shape == model.StructRef && f.Refusal == "" {
		r.fields(inner.Struct, path, pointer+steps, withItem || !below)
	}
}

// freeForm reports whether machinery takes free-form content at the pointer or in its items.
func (r *rower) freeForm(pointer, steps string) bool {
	if r.alone {
		return false
	}

	document := r.in.Since.Newest().Documents[r.kind]

	return document[pointer].Type == freeForm || document[pointer+steps].Type == freeForm
}

// text is what there is to say of a field: why it is refused, its note, and the values that are newer than it.
func (r *rower) text(f *model.Field, pointer string) string {
	if f.Refusal != "" {
		_, why, _ := strings.Cut(f.Refusal, ": ")

		return "**Refused:** " + why + "."
	}

	sentences := []string{}
	if f.Remark != "" {
		sentences = append(sentences, f.Remark)
	}

	// The first version has a column of its own.
	if note := sinceSentence.ReplaceAllString(f.Note, ""); note != "" {
		sentences = append(sentences, note)
	}

	values := r.in.Since.FirstValues[r.kind][pointer]
	for _, value := range slices.Sorted(maps.Keys(values)) {
		// What is not offered needs no version.
		if offered := offeredValues(f); offered != nil && !slices.Contains(offered, value) {
			continue
		}

		sentences = append(sentences, fmt.Sprintf("`%s` since Talos %s.", value, minor(values[value])))
	}

	return strings.Join(sentences, " ")
}

// offeredValues are those that a field of few words takes, nil for other fields.
func offeredValues(f *model.Field) []string {
	if f.Type.Shape == model.ScalarRef {
		return f.Type.Scalar.Enum
	}

	return f.Enum
}

// sinceSentence is what the model adds to a note.
var sinceSentence = regexp.MustCompile(` ?Since Talos 1\.[0-9]+\.$`)

func minor(m int) string { return fmt.Sprintf("1.%d", m) }

// sharedPage is the page of a struct that several kinds use.
func sharedPage(s *model.Struct) string { return "type-" + s.Name + ".md" }

// cell makes a text fit a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;", ">", "&gt;").Replace(text)
}
