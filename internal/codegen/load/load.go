// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"errors"
	"fmt"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// Source says where document kinds are registered.
type Source struct {
	// Dir is a folder of the module whose build list decides the version that is read.
	Dir string
	// Patterns are package patterns, as the go command takes them.
	Patterns []string
	// Register is the import path and name of the function that registers a kind: "example.com/registry.Register".
	Register string
	// Types are types of other modules in the same build list, "import/path.Type", that are wanted besides.
	Types []string
}

// Kind is one registered document kind.
type Kind struct {
	// Name is the string that machinery registers: the document's kind in a machine config.
	Name string
	// Type is the document's Go type.
	Type *types.Named
}

// Catalog is all that was found.
type Catalog struct {
	// Module and Version name the module that holds the kinds. Version is empty for the main module.
	Module, Version string
	// Kinds are sorted by name.
	Kinds []Kind
	// Types are those that the source names, by its names.
	Types map[string]*types.Named
}

// Load reads the packages of source and returns every kind that they register.
//
// It is an error if a package does not type-check, if a registration has a form that cannot be understood, if a kind is
// registered twice, or if there is none.
func Load(ctx context.Context, source Source) (*Catalog, error) {
	cfg := &packages.Config{
		Context: ctx,
		Dir:     source.Dir,
		Mode: packages.NeedName | packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo |
			packages.NeedImports | packages.NeedModule,
	}

	others, err := typePatterns(source.Types)
	if err != nil {
		return nil, err
	}

	// All at once, so that one type is one type wherever it is met.
	pkgs, err := packages.Load(cfg, append(slices.Clip(source.Patterns), others...)...)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", strings.Join(source.Patterns, " "), err)
	}

	catalog := &Catalog{}
	seen := map[string]string{}

	var errs []error

	for _, pkg := range pkgs {
		for _, e := range pkg.Errors {
			errs = append(errs, fmt.Errorf("package %s: %w", pkg.PkgPath, e))
		}

		kinds, err := registrations(pkg, source.Register)
		if err != nil {
			errs = append(errs, err)
		}

		for _, kind := range kinds {
			if first, dup := seen[kind.Name]; dup {
				errs = append(errs, fmt.Errorf("kind %s: registered by %s and by %s", kind.Name, first, pkg.PkgPath))

				continue
			}

			seen[kind.Name] = pkg.PkgPath
			catalog.Kinds = append(catalog.Kinds, kind)
		}

		if len(kinds) > 0 && pkg.Module != nil {
			catalog.Module, catalog.Version = pkg.Module.Path, pkg.Module.Version
		}
	}

	if catalog.Types, err = findTypes(pkgs, source.Types); err != nil {
		errs = append(errs, err)
	}

	if len(errs) == 0 && len(catalog.Kinds) == 0 {
		errs = append(errs, fmt.Errorf("%s: no call of %s", strings.Join(source.Patterns, " "), source.Register))
	}

	slices.SortFunc(catalog.Kinds, func(a, b Kind) int { return strings.Compare(a.Name, b.Name) })

	return catalog, errors.Join(errs...)
}
