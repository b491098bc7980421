// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"go/ast"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// The forms of what is no leaf.
const (
	FormObject = "object"
	FormList   = "list"
	FormMap    = "map"
)

// Field is one field of a document, or what stands for any item of a list or any value of a map.
type Field struct {
	// Go is the field by machinery's names, "path.Type.Field". Empty for items and values.
	Go string
	// Type is the named Go type, "path.Type", or the basic one. Empty for lists and maps without a name.
	Type string
	// Form says what is read: one of the constants, or the type of a leaf and the methods by which it reads itself.
	Form string
	// Merge is machinery's merge tag.
	Merge string
	// Values are the texts of the type's constants, if it has any.
	Values []string
}

// Document holds the fields of a kind by JSON Pointer, in which "*" stands for any list index or map key.
type Document map[string]Field

// walker follows the fields of one document.
type walker struct {
	source *source
	fields Document
	outer  []string
}

// place is where a type expression stands.
type place struct {
	pkg     *pkg
	file    *ast.File
	pointer string
	field   Field
}

func (p place) at(pkg *pkg, file *ast.File) place {
	p.pkg, p.file = pkg, file

	return p
}

// element is any item or value of what stands at p.
func (p place) element() place {
	p.pointer += "/*"
	p.field = Field{}

	return p
}

func (w *walker) walk(p place, expr ast.Expr) error {
	switch e := expr.(type) {
	case *ast.StarExpr:
		return w.walk(p, e.X)
	case *ast.Ident:
		if basic(e.Name) {
			w.leaf(p, e.Name, nil)

			return nil
		}

		return w.named(p, p.pkg, e.Name)
	case *ast.SelectorExpr:
		name, ok := e.X.(*ast.Ident)
		if !ok {
			break
		}

		imported := importOf(p.file, name.Name)
		if imported == "" {
			return fmt.Errorf("%s: %s: no import has this name", p.pointer, name.Name)
		}

		within, own := strings.CutPrefix(imported, w.source.module+"/")
		if !own {
			w.leaf(p, imported+"."+e.Sel.Name, nil)

			return nil
		}

		pkg, err := w.source.load(within)
		if err != nil {
			return err
		}

		return w.named(p, pkg, e.Sel.Name)
	case *ast.ArrayType:
		if elem, ok := e.Elt.(*ast.Ident); ok && elem.Name == "byte" {
			w.leaf(p, "[]byte", nil)

			return nil
		}

		w.add(p, FormList)

		return w.walk(p.element(), e.Elt)
	case *ast.MapType:
		w.add(p, FormMap)

		return w.walk(p.element(), e.Value)
	}

	return fmt.Errorf("%s: a type is written in a way that is not understood (%T)", p.pointer, expr)
}

// named follows a type of the module.
func (w *walker) named(p place, pkg *pkg, name string) error {
	d, ok := pkg.types[name]
	if !ok {
		return fmt.Errorf("%s: package %s declares no type %s", p.pointer, pkg.path, name)
	}

	if d.spec.Assign.IsValid() {
		return w.walk(p.at(pkg, d.file), d.spec.Type)
	}

	p.field.Type = pkg.path + "." + name

	if reads := readsItself(pkg.methods[name]); len(reads) > 0 {
		w.leaf(p, p.field.Type, reads)
		w.setValues(p.pointer, pkg.values[name])

		return nil
	}

	switch t := d.spec.Type.(type) {
	case *ast.StructType:
		if embeds(t) {
			w.leaf(p, p.field.Type, []string{"embedded"}) // reads itself by the methods of what it embeds

			return nil
		}

		if slices.Contains(w.outer, p.field.Type) {
			return fmt.Errorf("%s: type %s contains itself", p.pointer, p.field.Type)
		}

		w.add(p, FormObject)

		w.outer = append(w.outer, p.field.Type)
		defer func() { w.outer = w.outer[:len(w.outer)-1] }()

		return w.structFields(p.at(pkg, d.file), p.field.Type, t)
	case *ast.Ident:
		if basic(t.Name) {
			w.leaf(p, p.field.Type, []string{t.Name})
			w.setValues(p.pointer, pkg.values[name])

			return nil
		}
	}

	return w.walk(p.at(pkg, d.file), d.spec.Type)
}

func (w *walker) structFields(p place, owner string, st *ast.StructType) error {
	for _, f := range st.Fields.List {
		tags := reflect.StructTag("")

		if f.Tag != nil {
			text, err := strconv.Unquote(f.Tag.Value)
			if err != nil {
				return fmt.Errorf("%s: tag %s: %w", owner, f.Tag.Value, err)
			}

			tags = reflect.StructTag(text)
		}

		name, options, _ := strings.Cut(tags.Get("yaml"), ",")

		if strings.Contains(options, "inline") {
			if err := w.inlined(p, f.Type); err != nil {
				return err
			}

			continue
		}

		for _, ident := range f.Names {
			if name == "-" || !ident.IsExported() {
				continue
			}

			wire := name
			if wire == "" {
				wire = strings.ToLower(ident.Name)
			}

			at := place{pkg: p.pkg, file: p.file, pointer: p.pointer + "/" + wire, field: Field{
				Go: owner + "." + ident.Name, Merge: tags.Get("merge"),
			}}

			if err := w.walk(at, f.Type); err != nil {
				return err
			}
		}
	}

	return nil
}

// inlined adds the fields of a struct to those of the one that it is inlined in.
func (w *walker) inlined(p place, expr ast.Expr) error {
	inner := walker{source: w.source, fields: Document{}, outer: w.outer}

	if err := inner.walk(p, expr); err != nil {
		return err
	}

	for pointer, field := range inner.fields {
		if pointer != p.pointer {
			w.fields[pointer] = field
		}
	}

	return nil
}

func (w *walker) leaf(p place, name string, reads []string) {
	p.field.Type = name

	form := name
	if len(reads) > 0 {
		form += " (" + strings.Join(reads, ", ") + ")"
	}

	w.add(p, form)
}

func (w *walker) add(p place, form string) {
	p.field.Form = form
	w.fields[p.pointer] = p.field
}

func (w *walker) setValues(pointer string, values []string) {
	field := w.fields[pointer]
	field.Values = values
	w.fields[pointer] = field
}

// readers are the methods by which a type reads its own form.
var readers = []string{"UnmarshalJSON", "UnmarshalText", "UnmarshalYAML"}

func readsItself(methods map[string]bool) []string {
	var found []string

	for _, name := range readers {
		if methods[name] {
			found = append(found, name)
		}
	}

	return found
}

// embeds reports whether a struct embeds something that is not inlined.
func embeds(st *ast.StructType) bool {
	for _, f := range st.Fields.List {
		if len(f.Names) == 0 && (f.Tag == nil || !strings.Contains(f.Tag.Value, "inline")) {
			return true
		}
	}

	return false
}

func basic(name string) bool {
	switch name {
	case "string", "bool", "int", "int8", "int16", "int32", "int64", "uint", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "any", "byte", "rune":
		return true
	default:
		return false
	}
}
