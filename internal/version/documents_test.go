// SPDX-License-Identifier: Apache-2.0

package version_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/maesh-dev/ichor/internal/version"
)

func TestFirstSupported(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		kind, pointer string
		want          string
	}{
		"legacy document":                {kind: "v1alpha1", want: "v1.12"},
		"old kind":                       {kind: "UserVolumeConfig", want: "v1.12"},
		"old field":                      {kind: "UserVolumeConfig", pointer: "/provisioning/maxSize", want: "v1.12"},
		"field of 1.13":                  {kind: "UserVolumeConfig", pointer: "/mount", want: "v1.13"},
		"below a field of 1.13":          {kind: "UserVolumeConfig", pointer: "/mount/secure", want: "v1.13"},
		"newer field below a newer one":  {kind: "VolumeConfig", pointer: "/mount/disableAccessTime", want: "v1.14"},
		"older field below a newer one":  {kind: "VolumeConfig", pointer: "/mount/secure", want: "v1.13"},
		"name that begins like a field":  {kind: "UserVolumeConfig", pointer: "/mounted", want: "v1.12"},
		"in a list":                      {kind: "ResolverConfig", pointer: "/nameservers/1/tlsServerName", want: "v1.14"},
		"old field in a list":            {kind: "ResolverConfig", pointer: "/nameservers/1/address", want: "v1.12"},
		"argument":                       {kind: "v1alpha1", pointer: "/machine/kubelet/extraArgs/v", want: "v1.12"},
		"argument given more than once":  {kind: "v1alpha1", pointer: "/machine/kubelet/extraArgs/v/0", want: "v1.14"},
		"kind of 1.13":                   {kind: "VRFConfig", want: "v1.13"},
		"kind of 1.14":                   {kind: "KubeNodeConfig", want: "v1.14"},
		"field of a kind of 1.14":        {kind: "KubeNodeConfig", pointer: "/labels/a", want: "v1.14"},
		"kind that does not exist":       {kind: "Kubeletconfig", want: ""},
		"kind of another system":         {kind: "Deployment", want: ""},
		"no kind":                        {kind: "", want: ""},
		"field of an old kind, anywhere": {kind: "OOMConfig", pointer: "/strictCgroupClassOrdering", want: "v1.14"},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got, known := version.FirstSupported(tc.kind, tc.pointer)
			if got.String() != tc.want || known != (tc.want != "") {
				t.Errorf("FirstSupported(%q, %q) = %q, %t; want %q", tc.kind, tc.pointer, got, known, tc.want)
			}
		})
	}
}

func TestCheckDocument(t *testing.T) {
	t.Parallel()

	volume := []string{"/name", "/provisioning/diskSelector/match", "/mount/disableAccessTime", "/mount/secure", "/trim/enabled"}

	const advice = ": remove the field, or upgrade the machine first"

	tests := map[string]struct {
		talos  string
		kind   string
		fields []string
		want   string
	}{
		"all known":   {talos: "v1.14.1", kind: "UserVolumeConfig", fields: volume},
		"no fields":   {talos: "v1.12.0", kind: "UserVolumeConfig"},
		"newer patch": {talos: "v1.14.9", kind: "KubeNodeConfig", fields: []string{"/labels/a"}},
		"pre-release": {talos: "v1.14.0-rc.1", kind: "KubeNodeConfig"},
		"kind too new": {
			talos: "v1.13.2", kind: "KernelModuleConfig", fields: []string{"/name"},
			want: "document kind KernelModuleConfig needs Talos v1.14 or newer, and the machine runs v1.13.2: remove the document, or upgrade the machine first",
		},
		"fields too new, each named once": {
			talos: "v1.12.3", kind: "UserVolumeConfig", fields: volume,
			want: "field /mount of UserVolumeConfig needs Talos v1.13 or newer, and the machine runs v1.12.3" + advice +
				"\nfield /trim of UserVolumeConfig needs Talos v1.14 or newer, and the machine runs v1.12.3" + advice,
		},
		"field below one that is too new as well": {
			talos: "v1.12.3", kind: "VolumeConfig", fields: []string{"/mount/disableAccessTime"},
			want: "field /mount of VolumeConfig needs Talos v1.13 or newer, and the machine runs v1.12.3" + advice,
		},
		"newer field below one that is known": {
			talos: "v1.13.0", kind: "VolumeConfig", fields: []string{"/mount/disableAccessTime", "/mount/secure"},
			want: "field /mount/disableAccessTime of VolumeConfig needs Talos v1.14 or newer, and the machine runs v1.13.0" + advice,
		},
		"every item of a list": {
			talos: "v1.12.3", kind: "ResolverConfig", fields: []string{"/nameservers/0/protocol", "/nameservers/2/protocol"},
			want: "field /nameservers/0/protocol of ResolverConfig needs Talos v1.14 or newer, and the machine runs v1.12.3" + advice +
				"\nfield /nameservers/2/protocol of ResolverConfig needs Talos v1.14 or newer, and the machine runs v1.12.3" + advice,
		},
		"unknown kind": {talos: "v1.14.1", kind: "UserVolume", want: `talos has no document kind "UserVolume"`},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			err := version.CheckDocument(mustTalos(t, tc.talos), tc.kind, tc.fields...)
			if diff := cmp.Diff(tc.want, errorText(err)); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}

	if version.CheckDocument(version.Talos{}, "HostnameConfig") == nil {
		t.Error("an unset Talos knows everything")
	}
}

func TestTooNewErrorTellsTheField(t *testing.T) {
	t.Parallel()

	err := version.CheckDocument(mustTalos(t, "v1.13.2"), "UserVolumeConfig", "/scrub/interval")

	got := &version.TooNewError{}
	if !errors.As(err, &got) {
		t.Fatalf("error %v is no TooNewError", err)
	}

	want := []string{"UserVolumeConfig", "/scrub", "v1.14", "v1.13.2"}
	if diff := cmp.Diff(want, []string{got.Kind, got.Field, got.Since.String(), got.Talos.String()}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The table must have exactly the kinds that machinery registers, read from its source: a kind that a new machinery brings has to get
// its row, else a node of an older Talos would be sent a document that it refuses.
func TestKindsAreThoseOfMachinery(t *testing.T) {
	t.Parallel()

	registered := registeredKinds(t)
	if len(registered) < 90 {
		t.Fatalf("found only %d kinds in machinery's source: %v", len(registered), registered)
	}

	if diff := cmp.Diff(registered, version.Kinds()); diff != "" {
		t.Errorf("kinds (-machinery +table):\n%s", diff)
	}
}

// registeredKinds reads the first argument of each registry.Register call in machinery's document packages: a string constant.
func registeredKinds(t *testing.T) []string {
	t.Helper()

	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/siderolabs/talos/pkg/machinery").Output()
	if err != nil {
		t.Fatalf("find machinery: %v", err)
	}

	var kinds []string

	err = filepath.WalkDir(filepath.Join(strings.TrimSpace(string(out)), "config", "types"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}

		kinds = append(kinds, kindsOfPackage(t, path)...)

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	slices.Sort(kinds)

	return kinds
}

func kindsOfPackage(t *testing.T, dir string) []string {
	t.Helper()

	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}

	var (
		arguments []ast.Expr
		constants = map[string]string{}
	)

	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}

		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}

		ast.Inspect(file, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.ValueSpec:
				if len(n.Names) == 1 && len(n.Values) == 1 {
					constants[n.Names[0].Name] = literal(n.Values[0])
				}
			case *ast.CallExpr:
				if fun, ok := n.Fun.(*ast.SelectorExpr); ok && fun.Sel.Name == "Register" {
					if pkg, ok := fun.X.(*ast.Ident); ok && pkg.Name == "registry" {
						arguments = append(arguments, n.Args[0])
					}
				}
			}

			return true
		})
	}

	kinds := make([]string, 0, len(arguments))

	for _, argument := range arguments {
		kind := literal(argument)
		if name, ok := argument.(*ast.Ident); ok {
			kind = constants[name.Name]
		}

		if kind == "" {
			t.Fatalf("%s: cannot read the kind of a registered document", dir)
		}

		kinds = append(kinds, kind)
	}

	return kinds
}

func literal(expression ast.Expr) string {
	basic, ok := expression.(*ast.BasicLit)
	if !ok || basic.Kind != token.STRING {
		return ""
	}

	value, err := strconv.Unquote(basic.Value)
	if err != nil {
		return ""
	}

	return value
}
