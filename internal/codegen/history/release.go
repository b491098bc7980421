// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"path/filepath"
)

// Where machinery has its documents and what registers them.
const (
	documentsDir = "config/types"
	registryPath = "config/internal/registry"
	registerName = "Register"

	// controlPlaneMark is the method by which a document says that it is none for workers.
	controlPlaneMark = "ControlplaneOnlyDocument"
)

// Release is what one release of machinery reads.
type Release struct {
	// Module and Version are machinery's; Minor is the 13 of v1.13.0.
	Module, Version string
	Minor           int
	// Documents are by the kind that machinery registers.
	Documents map[string]Document
	// ControlPlaneOnly has the kinds that Talos refuses on workers.
	ControlPlaneOnly map[string]bool
}

// Read reads a release. It is an error if the module cannot be had, or if a registration or a type has a form that is not
// understood: a field that is overlooked would be taken for one that is new later.
func Read(ctx context.Context, from Source) (*Release, error) {
	mod, err := from.fetch(ctx)
	if err != nil {
		return nil, err
	}

	minor, err := minorOf(mod)
	if err != nil {
		return nil, err
	}

	release := &Release{Module: mod.Path, Version: mod.Version, Minor: minor, Documents: map[string]Document{}, ControlPlaneOnly: map[string]bool{}}

	if err := release.read(mod.Dir); err != nil {
		return nil, fmt.Errorf("module %s %s: %w", mod.Path, mod.Version, err)
	}

	return release, nil
}

// read reads every kind that is registered below documentsDir.
func (r *Release) read(dir string) error {
	s := &source{dir: dir, module: r.Module, fset: token.NewFileSet(), packages: map[string]*pkg{}}

	err := filepath.WalkDir(filepath.Join(dir, filepath.FromSlash(documentsDir)), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}

		if entry.Name() == "testdata" {
			return filepath.SkipDir
		}

		within, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}

		p, err := s.load(filepath.ToSlash(within))
		if err != nil {
			return err
		}

		return r.registered(s, p)
	})

	if err == nil && len(r.Documents) == 0 {
		err = fmt.Errorf("no package below %s registers a document", documentsDir)
	}

	return err
}

// registered adds the documents that a package registers.
func (r *Release) registered(s *source, p *pkg) error {
	var errs []error

	for _, file := range p.files {
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok || !s.registers(file, call) {
				return true
			}

			kind, typ, err := registration(p, call)
			if err == nil {
				if _, twice := r.Documents[kind]; twice {
					err = fmt.Errorf("kind %s: registered twice", kind)
				}
			}

			if err == nil {
				w := walker{source: s, fields: Document{}}
				err = w.named(place{}, p, typ)
				delete(w.fields, "") // the document itself

				r.Documents[kind] = w.fields

				if p.methods[typ][controlPlaneMark] {
					r.ControlPlaneOnly[kind] = true
				}
			}

			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", s.fset.Position(call.Pos()), err))
			}

			return true
		})
	}

	return errors.Join(errs...)
}

func (s *source) registers(file *ast.File, call *ast.CallExpr) bool {
	fun, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || fun.Sel.Name != registerName {
		return false
	}

	name, ok := fun.X.(*ast.Ident)

	return ok && importOf(file, name.Name) == s.module+"/"+registryPath
}

// registration reads the kind and the type's name from a call: Register(Kind, func(...) ... { ... return &Type{} ... }).
func registration(p *pkg, call *ast.CallExpr) (kind, typ string, err error) {
	if len(call.Args) != 2 {
		return "", "", errors.New("a registration has other arguments than a kind and a function")
	}

	if kind = p.text(call.Args[0]); kind == "" {
		return "", "", errors.New("a registration's kind is no constant string of its package")
	}

	ast.Inspect(call.Args[1], func(node ast.Node) bool {
		lit, ok := node.(*ast.CompositeLit)
		if !ok {
			return true
		}

		name, ok := lit.Type.(*ast.Ident)

		switch {
		case !ok:
			err = fmt.Errorf("kind %s: the document's type is of another package", kind)
		case typ != "" && typ != name.Name:
			err = fmt.Errorf("kind %s: both %s and %s; only one version of a kind is understood", kind, typ, name.Name)
		default:
			typ = name.Name
		}

		return true
	})

	if err == nil && typ == "" {
		err = fmt.Errorf("kind %s: no type of its document is found", kind)
	}

	return kind, typ, err
}

// text is a string literal, or the string of a constant of the package.
func (p *pkg) text(expr ast.Expr) string {
	name, ok := expr.(*ast.Ident)
	if !ok {
		return literal(expr)
	}

	for _, file := range p.files {
		for _, decl := range file.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}

			for _, spec := range group.Specs {
				v, ok := spec.(*ast.ValueSpec)
				if ok && len(v.Names) == 1 && len(v.Values) == 1 && v.Names[0].Name == name.Name {
					return literal(v.Values[0])
				}
			}
		}
	}

	return ""
}
