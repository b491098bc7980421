// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// testFunction is a test somewhere in the repository.
type testFunction struct {
	// contract means that it says which rule of the contract it proves.
	contract bool

	// cases are the texts in the tests of its directory, among them the names of its table's rows.
	cases map[string]bool
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

		rows := 0

		for line := range strings.Lines(string(content)) {
			if !strings.HasPrefix(line, "| ") || strings.HasSuffix(line, "| tests |\n") {
				continue
			}

			rows++

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

		g.Expect(rows).To(BeNumerically(">", 10), list)
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
	cases := map[string]map[string]bool{}

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
		if cases[directory] == nil {
			cases[directory] = map[string]bool{}
		}

		ast.Inspect(file, func(node ast.Node) bool {
			if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if text, err := strconv.Unquote(literal.Value); err == nil {
					cases[directory][text] = true
				}
			}

			return true
		})

		for _, declaration := range file.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && function.Recv == nil && strings.HasPrefix(function.Name.Name, "Test") {
				found[directory+"."+function.Name.Name] = testFunction{
					contract: namesRule.MatchString(function.Doc.Text()), cases: cases[directory],
				}
			}
		}

		return nil
	})).To(Succeed())

	return found
}
