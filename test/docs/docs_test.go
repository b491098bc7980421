// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"

	"github.com/maesh-dev/ichor/bootstrap/metrics"
)

var root = filepath.Join("..", "..")

func page(t *testing.T, name string) string {
	t.Helper()

	content, err := os.ReadFile(filepath.Join(root, "docs", name))
	if err != nil {
		t.Fatal(err)
	}

	return string(content)
}

// Each reason that a condition of ours can have is in the table of docs/troubleshooting.md.
func TestReasons(t *testing.T) {
	loaded, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedTypes | packages.NeedImports},
		"github.com/maesh-dev/ichor/api/bootstrap/v1alpha1", "github.com/maesh-dev/ichor/api/controlplane/v1alpha1")
	if err != nil || len(loaded) != 2 {
		t.Fatal(err, loaded)
	}

	text := page(t, "troubleshooting.md")

	for _, group := range loaded {
		if len(group.Errors) > 0 {
			t.Fatal(group.Errors)
		}

		found := 0

		for _, name := range group.Types.Scope().Names() {
			value, ok := group.Types.Scope().Lookup(name).(*types.Const)
			if !ok || !strings.HasSuffix(name, "Reason") {
				continue
			}

			found++

			reason := constant.StringVal(value.Val())
			if !regexp.MustCompile(`(?m)^\|[^|]*\|([^|]*\|[^|]*|[^|]*)\b` + regexp.QuoteMeta(reason) + `\b[^|]*\|[^|]*\|$`).MatchString(text) {
				t.Errorf("docs/troubleshooting.md: no row of the table has the reason %s (%s): say what to do", reason, name)
			}
		}

		if found < 20 {
			t.Errorf("only %d constants of reasons were found in %s", found, group.Name)
		}
	}
}

// Each event that the manager writes is in the table of docs/observability.md.
func TestEvents(t *testing.T) {
	text, found := page(t, "observability.md"), 0

	for _, directory := range []string{"bootstrap", "controlplane", "internal"} {
		for name, reason := range eventReasons(t, filepath.Join(root, directory)) {
			found++

			if !strings.Contains(text, "| `"+reason+"` |") {
				t.Errorf("docs/observability.md: no row of the table has the event %s (%s)", reason, name)
			}
		}
	}

	if found < 4 {
		t.Errorf("only %d constants of events were found", found)
	}
}

// eventReasons are the constants whose names begin with "event" or "Event" and whose values are names.
func eventReasons(t *testing.T, directory string) map[string]string {
	t.Helper()

	reasons := map[string]string{}

	err := filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata") {
			return err
		}

		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}

		ast.Inspect(file, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok {
				return true
			}

			for i, name := range spec.Names {
				if i < len(spec.Values) && regexp.MustCompile(`^[eE]vent[A-Z]`).MatchString(name.Name) {
					if literal, ok := spec.Values[i].(*ast.BasicLit); ok && literal.Kind == token.STRING {
						reasons[name.Name], _ = strconv.Unquote(literal.Value)
					}
				}
			}

			return true
		})

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	return reasons
}

// The table of metrics is that of the code.
func TestMetrics(t *testing.T) {
	if !strings.Contains(page(t, "observability.md"), "\n"+metrics.Markdown()+"\n") {
		t.Error("docs/observability.md: the table of metrics is not that of the code: make generate-metrics")
	}
}
