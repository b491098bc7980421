// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	linter = flag.String("linter", "../../../../bin/tools/golangci-lint", "the linter to run, built by make "+
		"verify-lint-rules")
	config = flag.String("config", "../../../../.golangci.yaml", "the rules to prove")
)

type finding struct {
	FromLinter string
	Text       string
	Pos        struct {
		Filename string
		Line     int
	}
}

func (f finding) String() string { return f.FromLinter + ": " + f.Text }

// TestRules runs the repository's own rules over testdata/rules, a module with the repository's layout, in which a
// comment `// want "regexp" ...` stands on each line that must be reported. Anything else that is reported is a failure
// too, so that a rule which starts to refuse good code is noticed as well.
func TestRules(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/rules")); err != nil {
		t.Fatal(err)
	}
	rules, err := os.ReadFile(*config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".golangci.yaml"), rules, 0o600); err != nil {
		t.Fatal(err)
	}

	wants := wanted(t, dir)
	if len(wants) == 0 {
		t.Fatal("testdata/rules has no want comment: nothing is proved")
	}
	for _, f := range run(t, dir) {
		at := fmt.Sprintf("%s:%d", f.Pos.Filename, f.Pos.Line)
		i := slices.IndexFunc(wants[at], func(w *regexp.Regexp) bool { return w.MatchString(f.String()) })
		if i < 0 {
			t.Errorf("%s: reported, but not wanted:\n\t%s", at, f)
			continue
		}
		wants[at] = slices.Delete(wants[at], i, i+1)
	}
	for at, missing := range wants {
		for _, w := range missing {
			t.Errorf("%s: wanted, but not reported:\n\t%s", at, w)
		}
	}
}

func run(t *testing.T, dir string) []finding {
	t.Helper()
	path, err := filepath.Abs(*linter)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, "run", "--output.json.path=stdout", "--output.text.path=stderr",
		"--show-stats=false", "./...")
	cmd.Dir = dir
	// A cache of its own: results for an earlier state of the rules must not answer.
	cmd.Env = append(os.Environ(), "GOLANGCI_LINT_CACHE="+t.TempDir(), "GOWORK=off")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != 1 {
		t.Fatalf("%s: %v, want exit status 1 (findings)\n%s%s", *linter, err, &stdout, &stderr)
	}
	var report struct{ Issues []finding }
	if err := json.NewDecoder(&stdout).Decode(&report); err != nil {
		t.Fatalf("%s: %v\n%s", *linter, err, &stderr)
	}
	return report.Issues
}

var (
	wantComment = regexp.MustCompile(`// want ((?:"(?:[^"\\]|\\.)*"\s*)+)$`)
	quoted      = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
)

// wanted gives the expressions of all want comments under dir by "file:line".
func wanted(t *testing.T, dir string) map[string][]*regexp.Regexp {
	t.Helper()
	wants := map[string][]*regexp.Regexp{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(name) != ".go" {
			return err
		}
		source, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(source), "\n") {
			m := wantComment.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			at := fmt.Sprintf("%s:%d", name, i+1)
			for _, q := range quoted.FindAllString(m[1], -1) {
				expr, err := strconv.Unquote(q)
				if err != nil {
					return fmt.Errorf("%s: %w", at, err)
				}
				re, err := regexp.Compile(expr)
				if err != nil {
					return fmt.Errorf("%s: %w", at, err)
				}
				wants[at] = append(wants[at], re)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return wants
}
