// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// prologue begins each file of a document package.
const prologue = `package p

import (
	"net/netip"

	"example.com/m/config/internal/registry"
	"example.com/m/nethelpers"
)

var _ netip.Addr
`

// registered is a package that registers the kind A as a struct with the given fields, and what else is declared.
func registered(fields, rest string) map[string]string {
	return map[string]string{
		"config/types/p/p.go": prologue + `
const KindA = "A"

func init() { registry.Register(KindA, func(version string) registry.Document { return &AV1{} }) }

type AV1 struct {
` + fields + "\n}\n" + rest,
		"nethelpers/mode.go": `package nethelpers

type Mode int

const (
	ModeOff Mode = iota // off
	ModeOn              // on
	modeLast
)

func (m *Mode) UnmarshalText(text []byte) error { return nil }
`,
	}
}

func readTree(t *testing.T, files map[string]string) (map[string]Document, error) {
	t.Helper()

	dir := t.TempDir()

	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}

		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	r := &Release{Module: "example.com/m", Documents: map[string]Document{}, ControlPlaneOnly: map[string]bool{}}

	return r.Documents, r.read(dir)
}

func TestDocuments(t *testing.T) {
	t.Parallel()

	files := registered(
		"Meta `yaml:\",inline\"`\n"+
			"Mode nethelpers.Mode `yaml:\"mode,omitempty\"`\n"+
			"Peers []*Peer `yaml:\"peers\" merge:\"replace\"`\n"+
			"Labels map[string]string `yaml:\"labels\"`\n"+
			"Addr netip.Addr `yaml:\"addr\"`\n"+
			"Plain bool\n"+
			"Hidden string `yaml:\"-\"`\n"+
			"private string",
		"type Meta struct { Kind string `yaml:\"kind\"` }\n"+
			"type Peer struct { Key Bytes `yaml:\"key\"`; Wrapped Wrapped `yaml:\"wrapped\"` }\n"+
			"type Bytes []byte\ntype Wrapped struct { netip.Addr }\n")

	got, err := readTree(t, files)
	if err != nil {
		t.Fatal(err)
	}

	const a = "config/types/p.AV1."

	want := map[string]Document{"A": {
		"/kind":            {Go: "config/types/p.Meta.Kind", Type: "string", Form: "string"},
		"/mode":            {Go: a + "Mode", Type: "nethelpers.Mode", Form: "nethelpers.Mode (UnmarshalText)", Values: []string{"off", "on"}},
		"/peers":           {Go: a + "Peers", Form: FormList, Merge: "replace"},
		"/peers/*":         {Type: "config/types/p.Peer", Form: FormObject},
		"/peers/*/key":     {Go: "config/types/p.Peer.Key", Type: "[]byte", Form: "[]byte"},
		"/peers/*/wrapped": {Go: "config/types/p.Peer.Wrapped", Type: "config/types/p.Wrapped", Form: "config/types/p.Wrapped (embedded)"},
		"/labels":          {Go: a + "Labels", Form: FormMap},
		"/labels/*":        {Type: "string", Form: "string"},
		"/addr":            {Go: a + "Addr", Type: "net/netip.Addr", Form: "net/netip.Addr"},
		"/plain":           {Go: a + "Plain", Type: "bool", Form: "bool"},
	}}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDocumentsThatAreNotUnderstood(t *testing.T) {
	t.Parallel()

	register := func(call string) map[string]string {
		return map[string]string{"config/types/p/p.go": prologue + "type B struct{}\ntype C struct{}\nfunc init() { " + call + " }\n"}
	}

	for name, tc := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no registration":       {register(""), "no package below config/types registers a document"},
		"kind that is computed": {register("registry.Register(kind(), func() any { return &B{} })"), "no constant string"},
		"two types":             {register(`registry.Register("B", func() any { if x { return &C{} }; return &B{} })`), "both C and B"},
		"no type":               {register(`registry.Register("B", makeB)`), "no type of its document"},
		"another argument":      {register(`registry.Register("B")`), "other arguments"},
		"kind twice": {
			register(`registry.Register("B", func() any { return &B{} }); registry.Register("B", func() any { return &C{} })`),
			"kind B: registered twice",
		},
		"recursion":      {registered("Next *AV1 `yaml:\"next\"`", ""), "config/types/p.AV1 contains itself"},
		"function":       {registered("F func() `yaml:\"f\"`", ""), "/f: a type is written in a way that is not understood"},
		"missing import": {registered("F other.Type `yaml:\"f\"`", ""), "no import has this name"},
		"missing type":   {registered("F Nowhere `yaml:\"f\"`", ""), "declares no type Nowhere"},
		"broken syntax":  {map[string]string{"config/types/p/p.go": "package p\nfunc {"}, "expected"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, err := readTree(t, tc.files)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error about %q", err, tc.want)
			}
		})
	}
}

// release has kind A with fields of the given forms, unless the minor has none.
func release(minor int, fields Document) *Release {
	r := &Release{Module: "example.com/m", Version: fmt.Sprintf("v1.%d.0", minor), Minor: minor, Documents: map[string]Document{"Other": {}}}
	if fields != nil {
		r.Documents["A"] = fields
	}

	return r
}

func forms(pairs ...string) Document {
	d := Document{}
	for i := 0; i < len(pairs); i += 2 {
		d[pairs[i]] = Field{Go: "p.A" + strings.ReplaceAll(pairs[i], "/", "."), Form: pairs[i+1]}
	}

	return d
}

func TestCompare(t *testing.T) {
	t.Parallel()

	table, err := Compare([]*Release{
		release(2, forms("/a", "string", "/list", FormList, "/list/*", FormObject, "/list/*/x", "string", "/mode", "Mode")),
		release(3, forms("/a", "Args", "/list", FormList, "/list/*", FormObject, "/list/*/x", "string", "/list/*/y", "string",
			"/new", FormObject, "/new/along", "string", "/mode", "Mode")),
		release(4, forms("/a", "Args", "/list", FormList, "/list/*", FormObject, "/list/*/x", "string", "/list/*/y", "string",
			"/new", FormObject, "/new/along", "string", "/new/later", "string", "/mode", "Mode")),
	}, []FormChange{{From: "string", To: "Args", Items: 4, Reason: "a list"}})
	if err != nil {
		t.Fatal(err)
	}

	want := map[string]map[string]int{"A": {"/a/*": 4, "/list/*/y": 3, "/new": 3, "/new/later": 4}}
	if diff := cmp.Diff(want, table.FirstFields); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}

	since := map[string]int{"p.A.list.*.y": 3, "p.A.new": 3, "p.A.new.later": 4}
	if diff := cmp.Diff(since, table.Fields()); diff != "" {
		t.Errorf("fields by name (-want +got):\n%s", diff)
	}

	for pointer, want := range map[string]int{"": 2, "/a": 2, "/new/along": 3, "/new/later": 4, "/list/*/x": 2, "/list/*/y": 3} {
		if got := table.First("A", pointer); got != want {
			t.Errorf("First(A, %q) = %d, want %d", pointer, got, want)
		}
	}
}

func TestCompareValuesAndKinds(t *testing.T) {
	t.Parallel()

	mode := func(values ...string) Document { return Document{"/mode": {Form: "Mode", Values: values}} }

	table, err := Compare([]*Release{release(2, mode("off")), release(3, mode("off", "on"))}, nil)
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(map[string]map[string]map[string]int{"A": {"/mode": {"on": 3}}}, table.FirstValues); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}

	table, err = Compare([]*Release{release(2, nil), release(3, mode("off")), release(4, mode("off", "on"))}, nil)
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(map[string]int{"A": 3, "Other": 2}, table.FirstKinds); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
}

func TestCompareThatNeedsADecision(t *testing.T) {
	t.Parallel()

	values := func(pointer string, values ...string) Document {
		return Document{pointer: {Form: "Mode", Values: values}}
	}

	for name, tc := range map[string]struct {
		old, now *Release
		changes  []FormChange
		want     string
	}{
		"lost kind":     {release(2, forms()), release(3, nil), nil, "kind A: v1.2.0 has it and v1.3.0 has not"},
		"lost field":    {release(2, forms("/a", "string")), release(3, forms()), nil, "A, field /a: v1.2.0 has it and v1.3.0 has not"},
		"new form":      {release(2, forms("/a", "string")), release(3, forms("/a", "int")), nil, "A, field /a: v1.3.0 reads int, where the minor before read string"},
		"obsolete row":  {release(2, forms()), release(3, forms()), []FormChange{{From: "x", To: "y"}}, "change from x to y: the row matches nothing"},
		"missing minor": {release(2, forms()), release(4, forms()), nil, "a minor between them is missing"},
		"wrong order":   {release(3, forms()), release(2, forms()), nil, "does not follow on"},
		"value in list": {release(2, values("/l/*", "off")), release(3, values("/l/*", "off", "on")), nil, "A, field /l/*: the value on is new"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, err := Compare([]*Release{tc.old, tc.now}, tc.changes)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error about %q", err, tc.want)
			}
		})
	}
}

func TestReadNamesTheModuleThatCannotBeHad(t *testing.T) {
	t.Setenv("GOPROXY", "off")

	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/none\n\ngo 1.26\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	_, err := Read(t.Context(), Source{Dir: dir, Module: "example.com/none/absent"})
	if err == nil || !strings.Contains(err.Error(), "module example.com/none/absent") {
		t.Errorf("got %v, want an error that names the module", err)
	}
}
