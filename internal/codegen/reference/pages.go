// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"

	"github.com/maesh-dev/ichor/internal/codegen/history"
	"github.com/maesh-dev/ichor/internal/codegen/model"
)

// Input is what the pages are made from.
type Input struct {
	API   *model.API
	Since *history.Table
	// Denied kinds are listed with their reasons; Later kinds may be named by Wants before they are offered.
	Denied, Later []model.DecidedKind
	// Wants are the lines of "I want to".
	Wants []Want
	// Examples are the documents that the pages show, by kind: a list of one document in YAML, as a TalosConfigPatch has it.
	Examples map[string]string
}

// Want leads from what somebody wants to the document for it.
type Want struct {
	// To completes "I want to ...".
	To string
	// Use are kinds, best first.
	Use []string
	// Legacy are fields of the legacy document that do the same before the kinds are known, as JSON Pointers.
	Legacy []string
}

//go:embed *.tmpl examples/*.yaml
var files embed.FS

// Examples are those of this package's folder, by kind.
func Examples() (map[string]string, error) {
	entries, err := files.ReadDir("examples")
	if err != nil {
		return nil, fmt.Errorf("examples: %w", err)
	}

	examples := map[string]string{}

	for _, entry := range entries {
		data, err := files.ReadFile("examples/" + entry.Name())
		if err != nil {
			return nil, fmt.Errorf("example: %w", err)
		}

		examples[strings.TrimSuffix(entry.Name(), ".yaml")] = string(data)
	}

	return examples, nil
}

// group is a chapter of the index.
type group struct {
	Title, Text string
	Kinds       []kindPage
}

// kindPage is the page of a kind.
type kindPage struct {
	*model.Document

	Sentence, Address string
	Since             string
	ControlPlane      bool
	Example           string
	Rows              []row
}

// Addressed tells an example that is good for one machine alone, since it has an address of its own.
func (p kindPage) Addressed() bool { return strings.Contains(p.Example, "\n    addresses:\n") }

// Virtual tells a kind whose address control-plane machines share.
func (p kindPage) Virtual() bool { return strings.HasSuffix(p.Kind, "VIPConfig") }

// Page is the file's name.
func (p kindPage) Page() string { return p.Kind + ".md" }

// groups are the chapters, with the packages of machinery whose kinds they have. The last takes what is left.
var groups = []struct {
	title, text string
	packages    []string
}{
	{"Network", "Links, addresses, routes, names and the firewall.", []string{"network"}},
	{"Storage", "Disks, volumes, swap and what keeps filesystems healthy.", []string{"block", "storage"}},
	{"Kubernetes", "What Talos runs of Kubernetes. Most of it is a part of the legacy document, `Config`, up to Talos 1.13.", []string{"k8s"}},
	{"The legacy document", "One document with all that has no kind of its own in the node's Talos. Which part that is depends on the config contract.", []string{"v1alpha1"}},
	{"Machine", "The system itself: kernel, images, registries, installation, time, security, logs.", nil},
}

// Pages renders all pages by file name.
func Pages(in Input) (map[string][]byte, error) {
	tmpl, err := template.New("").Funcs(template.FuncMap{
		"cell": cell, "indent": indent, "quotePattern": func(s string) string { return "`" + s + "`" },
		"lower": strings.ToLower, "bound": atMost, "oneOf": oneOf, "codes": codes,
	}).ParseFS(files, "*.tmpl")
	if err != nil {
		return nil, fmt.Errorf("templates: %w", err)
	}

	pages := map[string][]byte{}

	var errs []error

	render := func(name, template string, data any) {
		var buf bytes.Buffer

		if err := tmpl.ExecuteTemplate(&buf, template, data); err != nil {
			errs = append(errs, fmt.Errorf("page %s: %w", name, err))
		}

		pages[name] = buf.Bytes()
	}

	chapters, shared := chaptersOf(in)

	for _, chapter := range chapters {
		for _, page := range chapter.Kinds {
			render(page.Page(), "kind.md.tmpl", page)
		}
	}

	// A shared struct is free of kinds, so nothing in it has a first version of its own.
	for _, name := range slices.Sorted(maps.Keys(shared)) {
		r := rower{in: in, alone: true}
		r.fields(shared[name], "", "", false)
		render(sharedPage(shared[name]), "type.md.tmpl", map[string]any{"Struct": shared[name], "Rows": r.rows})
	}

	expressions, err := environments()
	errs = append(errs, err)

	render(formsPage, "forms.md.tmpl", map[string]any{"Scalars": in.API.Scalars, "Environments": expressions})

	wants, err := wanted(in)
	errs = append(errs, err)

	render("README.md", "index.md.tmpl", map[string]any{
		"Groups": chapters, "Wants": wants, "Denied": in.Denied, "Oldest": minor(in.Since.Releases[0].Minor),
		"Newest": in.API.Version, "Later": len(in.Later),
	})

	return pages, errors.Join(append(errs, unknownExamples(in)...)...)
}

func chaptersOf(in Input) ([]group, map[string]*model.Struct) {
	chapters := make([]group, len(groups))
	for i, g := range groups {
		chapters[i] = group{Title: g.title, Text: g.text}
	}

	shared := map[string]*model.Struct{}

	for _, doc := range in.API.Documents {
		r := rower{in: in, kind: doc.TalosKind, shared: shared}
		r.fields(doc.Struct, "", "", false)

		sentence, address, _ := strings.Cut(doc.Doc, "\nSee ")
		page := kindPage{
			Document: doc, Sentence: sentence, Address: address, Rows: r.rows, Since: minor(in.Since.First(doc.TalosKind, "")),
			ControlPlane: in.Since.Newest().ControlPlaneOnly[doc.TalosKind], Example: in.Examples[doc.Kind],
		}

		at := slices.IndexFunc(groups, func(g struct {
			title, text string
			packages    []string
		},
		) bool {
			return slices.Contains(g.packages, doc.Struct.Package)
		})
		if at < 0 {
			at = len(groups) - 1
		}

		chapters[at].Kinds = append(chapters[at].Kinds, page)
	}

	return chapters, shared
}

// unknownExamples finds examples of kinds that are neither offered nor to be.
func unknownExamples(in Input) []error {
	var errs []error

	for _, kind := range slices.Sorted(maps.Keys(in.Examples)) {
		if in.offers(kind) == nil && !in.later(kind) {
			errs = append(errs, fmt.Errorf("example of %s: no such kind is offered", kind))
		}
	}

	return errs
}

func (in Input) offers(kind string) *model.Document {
	for _, doc := range in.API.Documents {
		if doc.Kind == kind {
			return doc
		}
	}

	return nil
}

func (in Input) later(kind string) bool {
	return slices.ContainsFunc(in.Later, func(row model.DecidedKind) bool { return row.Kind == kind })
}

// wantRow is a line of the table of wants.
type wantRow struct{ To, Now, Before string }

// wanted turns wants into lines: what to use in the newest format, and what in the older ones.
func wanted(in Input) ([]wantRow, error) {
	var (
		lines []wantRow
		errs  []error
	)

	for _, want := range in.Wants {
		var now, before []string

		for _, kind := range want.Use {
			doc := in.offers(kind)

			switch {
			case doc != nil:
				link := fmt.Sprintf("[%s](%s.md)", kind, kind)
				now = append(now, link)

				switch first := in.Since.First(doc.TalosKind, ""); {
				case first <= in.Since.Releases[0].Minor:
					before = append(before, link)
				case first < in.Since.Newest().Minor:
					before = append(before, fmt.Sprintf("%s from %s on", link, minor(first)))
				}
			case !in.later(kind):
				errs = append(errs, fmt.Errorf("want %q: no kind %s is offered", want.To, kind))
			}
		}

		for _, pointer := range want.Legacy {
			if _, known := in.Since.Newest().Documents["v1alpha1"][pointer]; !known {
				errs = append(errs, fmt.Errorf("want %q: the legacy document has no field %s", want.To, pointer))
			}

			before = append(before, fmt.Sprintf("[Config](Config.md): `%s`", strings.ReplaceAll(strings.ReplaceAll(pointer[1:], "/*", "[]"), "/", ".")))
		}

		if len(now) > 0 {
			lines = append(lines, wantRow{To: want.To, Now: strings.Join(now, ", "), Before: cmp.Or(strings.Join(before, ", "), "not possible")})
		}
	}

	return lines, errors.Join(errs...)
}

func indent(spaces int, text string) string {
	pad := strings.Repeat(" ", spaces)

	return pad + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+pad)
}

func codes(values []string) string {
	quoted := make([]string, 0, len(values))
	for _, v := range values {
		quoted = append(quoted, "`"+v+"`")
	}

	return strings.Join(quoted, ", ")
}
