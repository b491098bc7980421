// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	_ "embed"
	"fmt"
	"go/format"
	"strings"
	"text/template"
)

//go:embed tables.go.tmpl
var tablesTemplate string

// Source renders the table as a Go file of a package. The same table gives the same bytes.
func (t *Table) Source(goPackage string) ([]byte, error) {
	tmpl, err := template.New("tables").Parse(tablesTemplate)
	if err != nil {
		return nil, fmt.Errorf("template: %w", err)
	}

	versions := make([]string, 0, len(t.Releases))
	for _, r := range t.Releases {
		versions = append(versions, r.Version)
	}

	var buf bytes.Buffer

	if err := tmpl.Execute(&buf, map[string]any{"Package": goPackage, "Module": t.Newest().Module, "Versions": strings.Join(versions, ", "), "Table": t}); err != nil {
		return nil, fmt.Errorf("table of first versions: %w", err)
	}

	source, err := format.Source(buf.Bytes())
	if err != nil {
		return nil, fmt.Errorf("table of first versions: the template made no valid Go: %w", err)
	}

	return source, nil
}
