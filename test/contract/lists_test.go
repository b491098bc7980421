// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// testFunction is a test somewhere in the repository.
type testFunction struct {
	// contract means that it says which rule of the contract it proves.
	contract bool

	// cases are the names of its rows: keys of the tables that it, or what it calls, goes through, and names that it gives to Run.
	cases map[string]bool
}

// declaration is what one top-level declaration of a directory's tests has in it.
type declaration struct {
	// cases are keys of tables and names given to Run.
	cases []string

	// names are everything that it names: other declarations of the directory among them.
	names map[string]bool
}

// reference is a test that a list names: `directory.Name` or `directory.Name/case`.
var reference = regexp.MustCompile("`([a-z][a-z0-9/]*\\.Test\\w+)(?:/([^`]+))?`")

// namesRule finds the line of a test's comment that names a rule.
var namesRule = regexp.MustCompile(`(?m)^contract: `)

// Every row of the lists names a test, every test that they name exists, and every test that proves a rule of the contract is listed.
func TestLists(t *testing.T) {
	g := NewWithT(t)
	tests := testFunctions(t)
	listed := map[string]bool{}

	for _, list := range []string{"RULES.md", "FAILURES.md"} {
		content, err := os.ReadFile(list)
		g.Expect(err).NotTo(HaveOccurred())

		section, rows := "", map[string]int{}

		for line := range strings.Lines(string(content)) {
			if title, ok := strings.CutPrefix(line, "## "); ok {
				section = strings.TrimSpace(title)
				rows[section] = 0
			}

			if !strings.HasPrefix(line, "| ") || strings.HasSuffix(line, "| tests |\n") {
				continue
			}

			rows[section]++

			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
			g.Expect(cells).To(HaveLen(3), line)

			found := reference.FindAllStringSubmatch(cells[2], -1)
			g.Expect(found).NotTo(BeEmpty(), "%s names no test: %s", list, line)
			g.Expect(reference.ReplaceAllString(cells[2], "")).To(MatchRegexp(`^[ ,]*$`), "%s: the last cell has tests alone: %s", list, line)

			for _, each := range found {
				name, row := each[1], each[2]
				test, exists := tests[name]
				g.Expect(exists).To(BeTrue(), "%s: there is no test %s", list, name)
				g.Expect(row == "" || test.cases[row]).To(BeTrue(), "%s: %s has no case %q", list, name, row)

				if list == "RULES.md" {
					g.Expect(test.contract).To(BeTrue(), "%s must say which rule it proves, as `// contract: ...`", name)

					listed[name] = true
				}
			}
		}

		g.Expect(slices.Sorted(maps.Keys(rows))).To(HaveLen(2), "%s is of both kinds of providers", list)

		for section, count := range rows {
			g.Expect(count).To(BeNumerically(">", 10), "%s: %s", list, section)
		}
	}

	for name, test := range tests {
		if test.contract {
			g.Expect(listed[name]).To(BeTrue(), "%s proves a rule of the contract: list it in RULES.md", name)
		}
	}
}

// testFunctions finds the tests of the repository's own module, by directory and name.
func testFunctions(t *testing.T) map[string]testFunction {
	t.Helper()

	g := NewWithT(t)
	found := map[string]testFunction{}
	directories := map[string]map[string]declaration{}

	g.Expect(filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}

		if entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == "bin" || strings.HasPrefix(entry.Name(), ".") && path != root) {
			return fs.SkipDir
		}

		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}

		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}

		directory, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}

		directory = filepath.ToSlash(directory)
		if directories[directory] == nil {
			directories[directory] = map[string]declaration{}
		}

		for _, each := range file.Decls {
			declare(directories[directory], each)

			if function, ok := each.(*ast.FuncDecl); ok && function.Recv == nil && strings.HasPrefix(function.Name.Name, "Test") {
				found[directory+"."+function.Name.Name] = testFunction{
					contract: namesRule.MatchString(function.Doc.Text()), cases: map[string]bool{},
				}
			}
		}

		return nil
	})).To(Succeed())

	for name, test := range found {
		directory, function, _ := strings.Cut(name, ".Test")
		gather(directories[directory], "Test"+function, test.cases, map[string]bool{})
	}

	return found
}

// declare adds functions, methods and variables to those of their directory.
func declare(declarations map[string]declaration, node ast.Decl) {
	switch node := node.(type) {
	case *ast.FuncDecl:
		// Two methods may have one name: what either has in it counts.
		declarations[node.Name.Name] = inspect(node, declarations[node.Name.Name])
	case *ast.GenDecl:
		for _, spec := range node.Specs {
			if values, ok := spec.(*ast.ValueSpec); ok {
				for i, name := range values.Names {
					found := inspect(values, declarations[name.Name])

					// A table of texts is a variable of its own: in a function such maps are labels and the like.
					if i < len(values.Values) {
						found.cases = append(found.cases, rows(values.Values[i])...)
					}

					declarations[name.Name] = found
				}
			}
		}
	}
}

func inspect(node ast.Node, found declaration) declaration {
	if found.names == nil {
		found.names = map[string]bool{}
	}

	ast.Inspect(node, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.Ident:
			found.names[node.Name] = true
		case *ast.CompositeLit:
			if table, ok := node.Type.(*ast.MapType); ok && !isName(table.Value, "string", "bool", "any", "int") {
				found.cases = append(found.cases, rows(node)...)
			}
		case *ast.CallExpr:
			if method, ok := node.Fun.(*ast.SelectorExpr); ok && method.Sel.Name == "Run" && len(node.Args) == 2 {
				found.cases = append(found.cases, textOf(node.Args[0])...)
			}
		}

		return true
	})

	return found
}

// rows are the keys of a map that is written down.
func rows(node ast.Expr) []string {
	literal, ok := node.(*ast.CompositeLit)
	if !ok {
		return nil
	}

	var keys []string

	for _, row := range literal.Elts {
		if pair, ok := row.(*ast.KeyValueExpr); ok {
			keys = append(keys, textOf(pair.Key)...)
		}
	}

	return keys
}

// isName says whether a type is one of those that no table's rows have.
func isName(node ast.Expr, names ...string) bool {
	name, ok := node.(*ast.Ident)

	return ok && slices.Contains(names, name.Name)
}

// textOf is the text of a literal.
func textOf(node ast.Expr) []string {
	if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
		if text, err := strconv.Unquote(literal.Value); err == nil {
			return []string{text}
		}
	}

	return nil
}

// gather adds the cases of a declaration and of all that it names.
func gather(declarations map[string]declaration, name string, cases, seen map[string]bool) {
	if seen[name] {
		return
	}

	seen[name] = true

	for _, each := range declarations[name].cases {
		cases[each] = true
	}

	for each := range declarations[name].names {
		// A test that another one names, as a method or a field may be called, is none of its cases.
		if _, declared := declarations[each]; declared && !strings.HasPrefix(each, "Test") {
			gather(declarations, each, cases, seen)
		}
	}
}

// A case is the key of a table or the name of a run, of the test itself or of what it uses; no other text is one.
func TestCases(t *testing.T) {
	g := NewWithT(t)

	const source = `package p
var table = map[string]struct{ a int }{"row of a variable": {1}}
var unused = map[string]struct{ a int }{"row of something else": {1}}
var texts = map[string]string{"row of texts": "x"}
func TestIt(t *testing.T) {
	for name := range table { t.Run(name, check) }
	for name := range texts { t.Log(name) }
	t.Run("named run", func(t *testing.T) { t.Log("a text", map[string]string{"a label": "x"}) })
}
func check(t *testing.T) { _ = map[string]func(){"row of a function": nil} }
func TestOther(t *testing.T) { t.Run("run of another test", nil); _ = unused }
`

	file, err := parser.ParseFile(token.NewFileSet(), "p_test.go", source, parser.SkipObjectResolution)
	g.Expect(err).NotTo(HaveOccurred())

	declarations, cases := map[string]declaration{}, map[string]bool{}
	for _, each := range file.Decls {
		declare(declarations, each)
	}

	gather(declarations, "TestIt", cases, map[string]bool{})
	g.Expect(slices.Sorted(maps.Keys(cases))).To(Equal([]string{"named run", "row of a function", "row of a variable", "row of texts"}))
}
