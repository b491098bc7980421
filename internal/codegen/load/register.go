// SPDX-License-Identifier: Apache-2.0

package load

import (
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	"go/types"

	"golang.org/x/tools/go/packages"
)

// registrations finds the calls of the register function in a package:
//
//	Register(Kind, func(version string) Document { ... return &Type{} ... })
//
// The first argument is a constant; the function literal returns nil or the address of composite literals of one type.
func registrations(pkg *packages.Package, register string) ([]Kind, error) {
	var (
		kinds []Kind
		errs  []error
	)

	for _, file := range pkg.Syntax {
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok || calleeName(pkg.TypesInfo, call) != register {
				return true
			}

			kind, err := registration(pkg.TypesInfo, call)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", pkg.Fset.Position(call.Pos()), err))
			} else {
				kinds = append(kinds, kind)
			}

			return true
		})
	}

	return kinds, errors.Join(errs...)
}

func calleeName(info *types.Info, call *ast.CallExpr) string {
	var ident *ast.Ident

	switch fun := call.Fun.(type) {
	case *ast.Ident:
		ident = fun
	case *ast.SelectorExpr:
		ident = fun.Sel
	default:
		return ""
	}

	fn, ok := info.Uses[ident].(*types.Func)
	if !ok || fn.Pkg() == nil || fn.Signature().Recv() != nil {
		return ""
	}

	return fn.Pkg().Path() + "." + fn.Name()
}

func registration(info *types.Info, call *ast.CallExpr) (Kind, error) {
	if len(call.Args) != 2 {
		return Kind{}, fmt.Errorf("registration with %d arguments, want a kind and a function", len(call.Args))
	}

	value := info.Types[call.Args[0]].Value
	if value == nil || value.Kind() != constant.String {
		return Kind{}, errors.New("registration: the kind is not a constant string")
	}

	name := constant.StringVal(value)

	lit, ok := call.Args[1].(*ast.FuncLit)
	if !ok {
		return Kind{}, fmt.Errorf("kind %s: registered with something other than a function literal", name)
	}

	var found *types.Named

	var err error

	ast.Inspect(lit.Body, func(node ast.Node) bool {
		ret, ok := node.(*ast.ReturnStmt)
		if !ok || len(ret.Results) != 1 {
			return true
		}

		named, isNil := returned(info, ret.Results[0])

		switch {
		case isNil:
		case named == nil:
			err = fmt.Errorf("kind %s: the function returns something other than nil or &Type{}", name)
		case found != nil && found != named:
			err = fmt.Errorf("kind %s: the function returns %s and %s; only one version of a kind is understood", name, found, named)
		default:
			found = named
		}

		return true
	})

	if err == nil && found == nil {
		err = fmt.Errorf("kind %s: the function returns no document", name)
	}

	return Kind{Name: name, Type: found}, err
}

func returned(info *types.Info, expr ast.Expr) (named *types.Named, isNil bool) {
	if info.Types[expr].IsNil() {
		return nil, true
	}

	unary, ok := expr.(*ast.UnaryExpr)
	if !ok {
		return nil, false
	}

	lit, ok := unary.X.(*ast.CompositeLit)
	if !ok {
		return nil, false
	}

	named, _ = types.Unalias(info.TypeOf(lit)).(*types.Named)

	return named, false
}
