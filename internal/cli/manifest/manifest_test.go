// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/maesh-dev/ichor/config/bootstrap/crd"
	"github.com/maesh-dev/ichor/internal/cli/admission"
)

func TestSplit(t *testing.T) {
	t.Parallel()

	type document struct {
		index, line int
		text        string
	}

	for name, tc := range map[string]struct {
		in   string
		want []document
	}{
		"one document":                     {"a: 1\n", []document{{0, 1, "a: 1"}}},
		"a separator first":                {"---\na: 1\n---\nb: 2\n", []document{{0, 2, "a: 1"}, {1, 4, "b: 2"}}},
		"comments before the first":        {"# licence\n\n---\na: 1\n", []document{{0, 4, "a: 1"}}},
		"comments within a document":       {"a: 1\n# why\nb: 2\n", []document{{0, 1, "a: 1\n# why\nb: 2"}}},
		"an empty document counts":         {"a: 1\n---\n# nothing\n---\nb: 2\n", []document{{0, 1, "a: 1"}, {2, 5, "b: 2"}}},
		"content behind the separator":     {"a: 1\n--- {b: 2}\n", []document{{0, 1, "a: 1"}, {1, 2, "{b: 2}"}}},
		"a comment behind the separator":   {"a: 1\n--- # next\nb: 2\n", []document{{0, 1, "a: 1"}, {1, 3, "b: 2"}}},
		"dashes that separate nothing":     {"a: |\n  ---\n---x: 1\n", []document{{0, 1, "a: |\n  ---\n---x: 1"}}},
		"lines that end as on Windows":     {"a: 1\r\n---\r\nb: 2\r\n", []document{{0, 1, "a: 1"}, {1, 3, "b: 2"}}},
		"a byte order mark":                {"\xef\xbb\xbfa: 1\n", []document{{0, 1, "a: 1"}}},
		"a stream of JSON":                 {"{\"a\": 1}\n\n{\"b\":\n 2}\n", []document{{0, 1, `{"a": 1}`}, {1, 3, "{\"b\":\n 2}"}}},
		"YAML that begins with a brace":    {"{a: 1}\n", []document{{0, 1, "{a: 1}"}}},
		"nothing":                          {"", nil},
		"nothing but comments and dashes":  {"# a\n---\n# b\n", nil},
		"a directive and an explicit end":  {"%YAML 1.2\n---\na: 1\n...\n", []document{{0, 3, "a: 1\n..."}}},
		"no line feed at the end of input": {"a: 1\n---\nb: 2", []document{{0, 1, "a: 1"}, {1, 3, "b: 2"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)

			var got []document
			for _, each := range Split("f", []byte(tc.in)) {
				g.Expect(strings.HasPrefix(string(each.Data), strings.Repeat("\n", each.Line-1))).To(BeTrue(), "the lines before must be there")

				text := strings.ReplaceAll(string(each.Data), "\r", "")
				got = append(got, document{each.Document, each.Line, strings.TrimSpace(text)})
			}

			g.Expect(got).To(Equal(tc.want))
		})
	}
}

func TestFieldTokens(t *testing.T) {
	t.Parallel()

	for in, want := range map[string][]string{
		"":                                      nil,
		"spec":                                  {"spec"},
		"spec.documents[0].kind":                {"spec", "documents", "0", "kind"},
		"spec.sysctls[net.core.somaxconn]":      {"spec", "sysctls", "net.core.somaxconn"},
		"spec.a[0][1]":                          {"spec", "a", "0", "1"},
		"metadata.labels[example.com/a].b":      {"metadata", "labels", "example.com/a", "b"},
		"spec.talos.pools[gpu].machineSelector": {"spec", "talos", "pools", "gpu", "machineSelector"},
	} {
		t.Run(in, func(t *testing.T) {
			t.Parallel()
			NewWithT(t).Expect(fieldTokens(in)).To(Equal(want))
		})
	}
}

func load(t *testing.T, content string) (*Set, error) {
	t.Helper()

	rules, err := admission.Load(crd.Bases())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return Load(Files{Names: []string{Stdin}, Stdin: strings.NewReader(content)}, "team-a", rules)
}

func TestLoad(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)

	set, err := load(t, `apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Secret
  metadata: {name: one}
  data: {a: eA==, b: eA==}
  stringData: {b: text}
- apiVersion: cluster.x-k8s.io/v1beta2
  kind: Cluster
  metadata: {name: demo, namespace: team-b}
  spec: {}
---
apiVersion: v1
kind: Namespace
metadata: {name: other}
`)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(set.Problems).To(BeEmpty())
	g.Expect(set.Secrets).To(HaveLen(1))
	g.Expect(set.Secrets[0].Namespace).To(Equal("team-a"), "the namespace of objects that name none")
	g.Expect(set.Secrets[0].Data).To(Equal(map[string][]byte{"a": []byte("x"), "b": []byte("text")}), "stringData wins over data")
	g.Expect(set.Clusters).To(HaveLen(1))
	g.Expect(set.Object(Ref{"Cluster", "team-b", "demo"}).Line).To(Equal(9), "an item of a list has a line of its own")
	g.Expect(set.Ignored).To(HaveLen(1))
}

func TestLoadPlacesProblems(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)

	set, err := load(t, `# a comment
apiVersion: bootstrap.ichor.maesh.dev/v1alpha1
kind: TalosConfigPatch
metadata:
  name: bad
spec:
  clusterName: demo
  layer: Cluster
  documents:
  - kind: HostnameConfig
    hostnameConfig:
      auto: off
`)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(set.Failed()).To(BeTrue())
	g.Expect(set.TalosConfigPatches).To(BeEmpty(), "a broken object must not be rendered with")
	g.Expect(set.Problems).To(HaveLen(1))

	problem := set.Problems[0]
	g.Expect(problem.Field).To(Equal("spec.documents[0].hostnameConfig.auto"))
	g.Expect(problem.Object.At(problem.Field).Line).To(Equal(12), "the line of the field")
	g.Expect(problem.Message).To(ContainSubstring("quotes"))
}

func TestFiles(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)

	dir := t.TempDir()
	for name, content := range map[string]string{
		"b.yaml": "b: 1", "a.yml": "a: 1", "c.json": `{"c": 1}`, "notes.txt": "no: 1", "below/d.yaml": "d: 1",
	} {
		path := filepath.Join(dir, name)
		g.Expect(os.MkdirAll(filepath.Dir(path), 0o750)).To(Succeed())
		g.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
	}

	read := func(files Files) []string {
		documents, err := files.Read()
		g.Expect(err).NotTo(HaveOccurred())

		var names []string
		for _, document := range documents {
			name, err := filepath.Rel(dir, document.File)
			g.Expect(err).NotTo(HaveOccurred())
			names = append(names, filepath.ToSlash(name))
		}

		return names
	}

	g.Expect(read(Files{Names: []string{dir}})).To(Equal([]string{"a.yml", "b.yaml", "c.json"}))
	g.Expect(read(Files{Names: []string{dir}, Recursive: true})).To(Equal([]string{"a.yml", "b.yaml", "below/d.yaml", "c.json"}))

	_, err := Files{Names: []string{filepath.Join(dir, "absent.yaml"), filepath.Join(dir, "b.yaml"), filepath.Join(dir, "b.yaml")}}.Read()

	var unreadable *UnreadableError
	g.Expect(errors.As(err, &unreadable)).To(BeTrue())
	g.Expect(err).To(MatchError(And(ContainSubstring("absent.yaml: no such file"), ContainSubstring("more than once"))))
}

// endless is a device that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestReadIsBounded(t *testing.T) {
	t.Parallel()

	if _, err := Read(Stdin, endless{}); err == nil || !strings.Contains(err.Error(), "standard input: is larger than 64 MiB") {
		t.Errorf("got %v, want an error that names the limit", err)
	}
}
