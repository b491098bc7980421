// SPDX-License-Identifier: Apache-2.0

package emit

import (
	"bytes"
	"embed"
	"fmt"
	"go/format"
	"maps"
	"slices"
	"strings"
	"text/template"

	"github.com/maesh-dev/ichor/internal/codegen/model"
)

// Prefix begins the name of every file that is emitted; a file of this form that is not emitted any more is stale. DeepCopy
// functions are another generator's, see DeepCopyFile.
const Prefix = "zz_generated."

// DeepCopyFile is written by controller-gen from the emitted types, and never stale for us.
const DeepCopyFile = Prefix + "deepcopy.go"

//go:embed *.tmpl
var templates embed.FS

// Files renders the model as the files of a Go package, by name.
func Files(api *model.API, goPackage string) (map[string][]byte, error) {
	tmpl, err := template.New("").Funcs(template.FuncMap{
		"comment":       comment,
		"goType":        goType,
		"base":          base,
		"fieldMarkers":  fieldMarkers,
		"fieldText":     fieldText,
		"structMarkers": structMarkers,
		"scalarMarkers": scalarMarkers,
		"tag":           tag,
		"ruleNamed":     ruleNamed,
		"lines":         func(s string) []string { return strings.Split(s, "\n") },
		"longestKind":   longestKind,
	}).ParseFS(templates, "*.tmpl")
	if err != nil {
		return nil, fmt.Errorf("templates: %w", err)
	}

	files := map[string][]byte{}

	render := func(name, template string, data map[string]any) error {
		data["Package"], data["Module"], data["Version"] = goPackage, api.Module, api.Version

		var buf bytes.Buffer

		if err := tmpl.ExecuteTemplate(&buf, template, data); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}

		source, err := format.Source(buf.Bytes())
		if err != nil {
			return fmt.Errorf("%s: the template made no valid Go: %w", name, err)
		}

		if _, taken := files[Prefix+name+".go"]; taken {
			return fmt.Errorf("%s: a package of this name would overwrite another file", name)
		}

		files[Prefix+name+".go"] = source

		return nil
	}

	if err := render("union", "union.go.tmpl", map[string]any{"Documents": api.Documents}); err != nil {
		return nil, err
	}

	if len(api.Denied)+len(api.Owned) > 0 {
		if err := render("owned", "owned.go.tmpl", map[string]any{"Denied": api.Denied, "Owned": api.Owned}); err != nil {
			return nil, err
		}
	}

	if len(api.Scalars) > 0 {
		if err := render("scalars", "scalars.go.tmpl", map[string]any{"Scalars": api.Scalars, "Imports": imports(api.Scalars)}); err != nil {
			return nil, err
		}
	}

	byPackage := map[string][]*model.Struct{}
	for _, s := range api.Structs {
		byPackage[s.Package] = append(byPackage[s.Package], s)
	}

	for _, pkg := range slices.Sorted(maps.Keys(byPackage)) {
		if err := render(pkg, "structs.go.tmpl", map[string]any{"Structs": byPackage[pkg]}); err != nil {
			return nil, err
		}
	}

	return files, nil
}

// imports lists what the scalars need.
func imports(scalars []*model.Scalar) []string {
	for _, s := range scalars {
		if s.Base == model.IntOrString || s.Base == model.Number {
			return []string{"k8s.io/apimachinery/pkg/util/intstr"}
		}
	}

	return nil
}

// goType is a field's Go type. Whatever is optional and not a list or map is a pointer, so that a zero that the user wrote is
// told from nothing.
func goType(f *model.Field) string {
	name := typeName(f.Type)

	if f.Required || f.Type.Shape == model.List || f.Type.Shape == model.Map || f.Type.Shape == model.Base64 ||
		f.Type.Shape == model.ScalarRef && isSlice(f.Type.Scalar) {
		return name
	}

	return "*" + name
}

func isSlice(s *model.Scalar) bool { return s.Base == model.Bytes || s.Base == model.Arguments }

func typeName(t model.Type) string {
	switch t.Shape {
	case model.Bool:
		return "bool"
	case model.Int32:
		return "int32"
	case model.Int64:
		return "int64"
	case model.Text:
		return "string"
	case model.Base64:
		return "[]byte"
	case model.ScalarRef:
		return t.Scalar.Name
	case model.StructRef:
		return t.Struct.Name
	case model.List:
		return "[]" + typeName(*t.Elem)
	case model.Map:
		return "map[string]" + typeName(*t.Elem)
	case model.RefusedValue:
		return "RefusedValue"
	case model.RefusedObject:
		return "RefusedObject"
	case model.SecretKey:
		return "SecretKeyReference"
	case model.ValueSource:
		return "ValueSource"
	case model.RefusedFlag:
		return "RefusedFlag"
	case model.RefusedNumber:
		return "RefusedNumber"
	default:
		panic(fmt.Sprintf("shape %d has no Go type", t.Shape))
	}
}

func base(s *model.Scalar) string {
	switch s.Base {
	case model.Integer:
		return "int64"
	case model.Bytes:
		return "[]byte"
	case model.Arguments:
		return "[]string"
	case model.IntOrString, model.Number:
		return "intstr.IntOrString"
	default:
		return "string"
	}
}

func tag(f *model.Field) string {
	options := ",omitempty"

	switch {
	case f.Required:
		options = ""
	case !strings.HasPrefix(goType(f), "*"):
		// An empty list or map that the user wrote is kept, like a zero: in Talos it can mean something.
		options = ",omitzero"
	}

	out := fmt.Sprintf("json:%q", f.JSON+options)
	if f.Refusal != "" {
		out += fmt.Sprintf(" refused:%q", f.Refusal)
	}

	if f.Resolves != "" {
		out += fmt.Sprintf(" resolves:%q", f.Resolves)
	}

	if f.Form != "" {
		out += fmt.Sprintf(" form:%q", f.Form)
	}

	if f.Choice != nil {
		out += choiceTags(f.Choice)
	}

	return "`" + out + "`"
}

// longestRefusal is how many bytes the text of a refused field may have: the schema has no room for more.
const longestRefusal = 90

// fieldText is what the schema says of a field. Of a refused one it is what the refusal says, which otherwise only they get to read who
// have set the field; where that is long, without what can be done besides.
func fieldText(f *model.Field) string {
	if f.Refusal == "" {
		return f.Note
	}

	_, why, _ := strings.Cut(f.Refusal, ": ")
	if text := "Refused: " + why + "."; len(text) <= longestRefusal {
		return text
	}

	why, _, _ = strings.Cut(why, ", or ")

	return "Refused: " + why + "."
}

// comment makes a Go comment of text that is not empty.
func comment(indent, text string) string {
	if text == "" {
		return ""
	}

	return indent + "// " + strings.ReplaceAll(text, "\n", "\n"+indent+"// ") + "\n"
}

func longestKind(documents []*model.Document) int {
	longest := 0
	for _, d := range documents {
		longest = max(longest, len(d.Kind))
	}

	return longest
}
