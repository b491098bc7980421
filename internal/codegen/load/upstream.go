// SPDX-License-Identifier: Apache-2.0

package load

import (
	"errors"
	"fmt"
	"go/types"
	"strings"

	"golang.org/x/tools/go/packages"
)

// packageOf splits "import/path.Type".
func packageOf(name string) (importPath, typeName string, ok bool) {
	dot := strings.LastIndex(name, ".")
	if dot < 0 || dot < strings.LastIndex(name, "/") {
		return "", "", false
	}

	return name[:dot], name[dot+1:], true
}

// typePatterns are the packages of the types of other modules.
func typePatterns(names []string) ([]string, error) {
	var (
		out  []string
		errs []error
	)

	for _, name := range names {
		importPath, _, ok := packageOf(name)
		if !ok {
			errs = append(errs, fmt.Errorf("type %s: want it as \"import/path.Type\"", name))

			continue
		}

		out = append(out, importPath)
	}

	return out, errors.Join(errs...)
}

// findTypes looks the types of other modules up in what was loaded.
func findTypes(pkgs []*packages.Package, names []string) (map[string]*types.Named, error) {
	byPath := map[string]*packages.Package{}
	for _, pkg := range pkgs {
		byPath[pkg.PkgPath] = pkg
	}

	found := map[string]*types.Named{}

	var errs []error

	for _, name := range names {
		importPath, typeName, _ := packageOf(name)

		pkg := byPath[importPath]
		if pkg == nil || pkg.Types == nil {
			errs = append(errs, fmt.Errorf("type %s: package %s was not loaded", name, importPath))

			continue
		}

		obj, ok := pkg.Types.Scope().Lookup(typeName).(*types.TypeName)
		if !ok {
			errs = append(errs, fmt.Errorf("type %s: package %s has no such type", name, importPath))

			continue
		}

		named, ok := types.Unalias(obj.Type()).(*types.Named)
		if !ok {
			errs = append(errs, fmt.Errorf("type %s: not a type of its own", name))

			continue
		}

		found[name] = named
	}

	return found, errors.Join(errs...)
}
