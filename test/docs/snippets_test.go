// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// snippetPages are the pages whose Go snippets are there to be used.
var snippetPages = []string{"test/README.md", "test/longhornsim/README.md"}

// snippetImports are the packages that a snippet may name, by the names that it gives them.
var snippetImports = map[string]string{
	"builder":        "github.com/maesh-dev/ichor/test/builder",
	"clusterctl":     "github.com/maesh-dev/ichor/test/clusterctl",
	"clusterv1":      "sigs.k8s.io/cluster-api/api/core/v1beta2",
	"controlplanev1": "github.com/maesh-dev/ichor/api/controlplane/v1alpha1",
	"harness":        "github.com/maesh-dev/ichor/test/harness",
	"infrav1":        "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1",
	"metav1":         "k8s.io/apimachinery/pkg/apis/meta/v1",
	"longhornsim":    "github.com/maesh-dev/ichor/test/longhornsim",
	"machine":        "github.com/siderolabs/talos/pkg/machinery/config/machine",
	"machineapi":     "github.com/siderolabs/talos/pkg/machinery/api/machine",
	"model":          "github.com/maesh-dev/ichor/test/longhornsim/model",
	"pods":           "github.com/maesh-dev/ichor/test/pods",
	"role":           "github.com/siderolabs/talos/pkg/machinery/role",
	"scenario":       "github.com/maesh-dev/ichor/test/scenario",
	"stage":          "github.com/maesh-dev/ichor/test/stage",
	"talossim":       "github.com/maesh-dev/ichor/test/talossim",
	"testing":        "testing",
	"time":           "time",
}

// snippetGiven is what the reader of a snippet has already: the surroundings that the page speaks of.
const snippetGiven = `
import (
	"context"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	testclock "k8s.io/utils/clock/testing"

	"github.com/maesh-dev/ichor/test/harness"
	"github.com/maesh-dev/ichor/test/scenario"
)

var (
	t       *testing.T
	ctx     context.Context
	suite   *scenario.Suite
	cluster *harness.ManagementCluster
	config  *rest.Config
	clock   *testclock.FakeClock
	ours    []*apiextensionsv1.CustomResourceDefinition
	program string
)
`

var snippetPattern = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

// Each Go snippet of the test world's pages compiles, as it stands there.
func TestSnippets(t *testing.T) {
	sources := map[string]string{}

	for _, name := range snippetPages {
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}

		found := snippetPattern.FindAllSubmatchIndex(content, -1)
		if len(found) == 0 {
			t.Errorf("%s has no Go snippet: take it off the list", name)
		}

		for _, at := range found {
			// Errors are told by the line of the page.
			line := 1 + strings.Count(string(content[:at[2]]), "\n")
			sources[fmt.Sprintf("%s:%d", name, line)] = string(content[at[2]:at[3]])
		}
	}

	for name, tc := range brokenSnippets {
		sources[name+":10"] = tc.snippet
	}

	faults := compileSnippets(t, sources)

	for name, tc := range brokenSnippets {
		if !slices.ContainsFunc(faults, func(fault string) bool { return strings.Contains(fault, name+tc.want) }) {
			t.Errorf("%s: what no longer compiles is not found: %q", name, faults)
		}
	}

	for _, fault := range faults {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(brokenSnippets)), func(name string) bool { return strings.Contains(fault, name+":") }) {
			t.Error(fault)
		}
	}
}

// brokenSnippets are such as must not compile, and what is said then: otherwise the test would prove nothing.
var brokenSnippets = map[string]struct{ snippet, want string }{
	"field.md":    {"mc := harness.ForTest(t, harness.Options{Kubernetes: true})\nmc.Client()\n", ":10:"},
	"function.md": {"\nerr := clusterctl.Begin(ctx)\n", ":11:"},
	"result.md":   {"mc := harness.ForTest(t, harness.Options{})\nmc, err := mc.Client()\n", ":11:"},
	"package.md":  {"x := unheard.Of()\n", ":10:"},
	"syntax.md":   {"x := := 1\n", ":10:"},
}

// compileSnippets returns what the compiler says of snippets, which are named by where they are: PAGE:LINE.
func compileSnippets(t *testing.T, snippets map[string]string) []string {
	t.Helper()

	directory, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}

	// The files are nowhere but in this map. One package for each snippet, since each declares what it likes.
	overlay, patterns := map[string][]byte{}, []string{}

	for i, at := range slices.Sorted(maps.Keys(snippets)) {
		path := filepath.Join(directory, fmt.Sprintf("snippet%d", i))
		given, file := filepath.Join(path, "given.go"), filepath.Join(path, "snippet.go")
		overlay[given] = []byte("package snippet\n" + snippetGiven)
		overlay[file] = []byte(snippetFile(at, snippets[at]))
		patterns = append(patterns, path)
	}

	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedTypes |
			packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedTypesInfo,
		Dir: directory, Overlay: overlay, BuildFlags: raceFlag(),
	}, patterns...)
	if err != nil {
		t.Fatal(err)
	}

	if len(loaded) != len(snippets) {
		t.Fatalf("%d snippets are %d packages", len(snippets), len(loaded))
	}

	var faults []string

	for _, p := range loaded {
		for _, fault := range p.Errors {
			// A snippet shows what it declares, and need not use it.
			if !strings.Contains(fault.Msg, "declared and not used") {
				faults = append(faults, fault.Error())
			}
		}
	}

	return faults
}

// snippetFile is the source of a snippet: its declarations as they are, its statements in a function, with the imports that it needs.
func snippetFile(at, snippet string) string {
	statements := !strings.HasPrefix(snippet, "func ")

	text := "//line " + at + "\n" + snippet
	if statements {
		text = "func _() {\n" + text + "\n}\n"
	}

	var imports strings.Builder
	if strings.Contains(snippet, ".Should(") || strings.Contains(snippet, ".To(") {
		imports.WriteString("import . \"github.com/onsi/gomega\"\n")
	}

	named := map[string]bool{}

	// What does not parse is told by the compiler.
	parsed, _ := parser.ParseFile(token.NewFileSet(), "", "package snippet\n"+text, 0)
	if parsed != nil {
		for _, name := range parsed.Unresolved {
			named[name.Name] = true
		}
	}

	for _, name := range slices.Sorted(maps.Keys(named)) {
		if path := snippetImports[name]; path != "" {
			fmt.Fprintf(&imports, "import %s %q\n", name, path)
		}
	}

	return "package snippet\n" + imports.String() + text
}

// raceFlag has the packages compiled as this test is, so that what other tests have compiled need not be compiled once more.
func raceFlag() []string {
	info, _ := debug.ReadBuildInfo()
	if info != nil && slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "-race" && s.Value == "true" }) {
		return []string{"-race"}
	}

	return nil
}
