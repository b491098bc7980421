// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// source is one module's source, parsed as far as it was asked for.
type source struct {
	dir, module string
	fset        *token.FileSet
	packages    map[string]*pkg
}

// pkg is the syntax of one package.
type pkg struct {
	// path is the import path below the module.
	path    string
	types   map[string]declared
	methods map[string]map[string]bool
	// values are the texts of a type's constants, by the type's name.
	values map[string][]string
	files  []*ast.File
}

// declared is a type's declaration and the file whose imports it uses.
type declared struct {
	spec *ast.TypeSpec
	file *ast.File
}

// linux decides which files belong to a package, the same on every machine.
var linux = build.Context{GOOS: "linux", GOARCH: "amd64", Compiler: "gc"}

// load parses a package of the module, once.
func (s *source) load(importPath string) (*pkg, error) {
	if p, done := s.packages[importPath]; done {
		return p, nil
	}

	dir := filepath.Join(s.dir, filepath.FromSlash(importPath))

	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("package %s: %w", importPath, err)
	}

	p := &pkg{path: importPath, types: map[string]declared{}, methods: map[string]map[string]bool{}, values: map[string][]string{}}

	for _, entry := range entries {
		if entry.IsDir() || path.Ext(entry.Name()) != ".go" || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}

		if match, err := linux.MatchFile(dir, entry.Name()); err != nil || !match {
			continue // what is broken is found by the parser
		}

		file, err := parser.ParseFile(s.fset, filepath.Join(dir, entry.Name()), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("package %s: %w", importPath, err)
		}

		p.files = append(p.files, file)
		p.declarations(file)
	}

	s.packages[importPath] = p

	return p, nil
}

func (p *pkg) declarations(file *ast.File) {
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if owner := receiver(d); owner != "" {
				if p.methods[owner] == nil {
					p.methods[owner] = map[string]bool{}
				}

				p.methods[owner][d.Name.Name] = true
			}
		case *ast.GenDecl:
			if d.Tok == token.CONST {
				p.constants(d)
			}

			for _, spec := range d.Specs {
				if t, ok := spec.(*ast.TypeSpec); ok {
					p.types[t.Name.Name] = declared{spec: t, file: file}
				}
			}
		}
	}
}

// constants collects the texts of exported constants of a named type: of strings the string, of numbers the comment behind, from
// which machinery makes the text.
func (p *pkg) constants(group *ast.GenDecl) {
	typ := ""

	for _, spec := range group.Specs {
		v, ok := spec.(*ast.ValueSpec)
		if !ok || len(v.Names) != 1 {
			typ = ""

			continue
		}

		// A constant without a value repeats the one above, its type included.
		if len(v.Values) > 0 || v.Type != nil {
			typ = ""
			if name, ok := v.Type.(*ast.Ident); ok {
				typ = name.Name
			}
		}

		if typ == "" || !v.Names[0].IsExported() {
			continue
		}

		text := strings.TrimSpace(v.Comment.Text())
		if len(v.Values) == 1 {
			if s := literal(v.Values[0]); s != "" {
				text = s
			}
		}

		if text != "" {
			p.values[typ] = append(p.values[typ], text)
		}
	}
}

// importOf tells the import path that a package's name stands for in a file.
func importOf(file *ast.File, name string) string {
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}

		switch {
		case spec.Name != nil && spec.Name.Name == name, spec.Name == nil && packageName(imported) == name:
			return imported
		}
	}

	return ""
}

// packageName guesses the name of a package from its path: the last element that is not a major version.
func packageName(importPath string) string {
	base := path.Base(importPath)
	if len(base) > 1 && base[0] == 'v' && strings.Trim(base[1:], "0123456789") == "" {
		base = path.Base(path.Dir(importPath))
	}

	return base
}

func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) != 1 {
		return ""
	}

	expr := d.Recv.List[0].Type
	if star, ok := expr.(*ast.StarExpr); ok {
		expr = star.X
	}

	name, _ := expr.(*ast.Ident)
	if name == nil {
		return "" // of a generic type, which no document has
	}

	return name.Name
}

func literal(expr ast.Expr) string {
	basic, ok := expr.(*ast.BasicLit)
	if !ok || basic.Kind != token.STRING {
		return ""
	}

	s, err := strconv.Unquote(basic.Value)
	if err != nil {
		return ""
	}

	return s
}
