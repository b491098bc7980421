// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/maesh-dev/ichor/internal/codegen/load"
	"github.com/maesh-dev/ichor/internal/codegen/model"
)

// problemKinds are those of testdata/errors/problems.
var problemKinds = []string{
	"Good", "SpecialStruct", "SpecialEnum", "ShortEnum", "OtherMerge", "FreeForm", "AnyField", "FloatField", "IntKeys", "Untagged", "Recursive", "Nameless",
	"SoundsSecret", "SameGoName", "SameWireName", "InlineMap", "NoStruct", "SameTypeName",
}

// only offers one kind of the package problems and denies the others.
func only(kind string) model.Tables {
	t := base(kind)

	for _, other := range problemKinds {
		if other != kind {
			t.Denied = append(t.Denied, model.DecidedKind{Kind: other, Reason: "not looked at here", Owner: model.Another})
		}
	}

	return t
}

// good offers the kind that has nothing wrong, with a change to the tables.
func good(change func(*model.Tables)) model.Tables {
	t := only("Good")
	change(&t)

	return t
}

func TestModelErrors(t *testing.T) {
	const owner = "errors/problems.Good."

	row := func(change func(*model.ScalarRow)) model.Tables {
		r := model.ScalarRow{Go: "registry.Size", Examples: []string{"1"}, Reason: "special"}
		change(&r)

		tables := only("SpecialStruct")
		tables.Scalars = []model.ScalarRow{r}

		return tables
	}

	object := func(wire map[string]string) model.Tables {
		tables := only("SpecialStruct")
		tables.Objects = []model.ObjectRow{{Go: "registry.Size", Wire: wire, Reason: "encodes itself"}}

		return tables
	}

	for name, tc := range map[string]struct {
		tables model.Tables
		want   string
	}{
		"special struct": {only("SpecialStruct"), "kind SpecialStruct.inner.sizes: field errors/problems.struct2.Sizes has the special type registry.Size (it has MarshalText); substitute, override or refuse it"},
		"special enum":   {only("SpecialEnum"), "kind SpecialEnum.level: field errors/problems.SpecialEnum.Level has the special type errors/problems.level"},
		"free-form map":  {only("FreeForm"), "kind FreeForm.free: field errors/problems.FreeForm.Free has the special type registry.Free"},
		"any":            {only("AnyField"), "kind AnyField.content: field errors/problems.AnyField.Content has type any, which has no form in a schema"},
		"float":          {only("FloatField"), "kind FloatField.ratio: field errors/problems.FloatField.Ratio has type float32, which has no form in a schema"},
		"map of int":     {only("IntKeys"), "field errors/problems.IntKeys.Ports has type map[int]string, which has no form in a schema"},
		"untagged field": {only("Untagged"), "field errors/problems.Untagged.Text has no yaml tag"},
		"recursion":      {only("Recursive"), "type errors/problems.Node contains itself"},
		"no name":        {only("Nameless"), "kind Nameless: documents are keyed by name, but errors/problems.Nameless has no string field that is called name"},
		"same Go name":   {only("SameGoName"), `errors/problems.SameGoName: field TLSName is wanted for "tlsName" and for "TLSName"`},
		"same wire name": {only("SameWireName"), `errors/problems.SameWireName: wire name text is wanted`},
		"same type name": {only("SameTypeName"), "name RegistryMeta: wanted for registry.Meta and for errors/problems/registry.Meta"},
		"inlined map":    {only("InlineMap"), "field errors/problems.InlineMap.Rest is inlined and not a named struct"},
		"other merge":    {only("OtherMerge"), `field errors/problems.OtherMerge.Text merges by "shuffle", which is not known`},
		"no struct":      {only("NoStruct"), "kind NoStruct: errors/problems.NoStruct is not a struct"},

		"kind in no table": {base("Good"), "kind AnyField (errors/problems.AnyField): in no table; offer it, deny it with a reason, or say what it waits for"},
		"kind in two tables": {
			good(func(t *model.Tables) { t.Later = []model.DecidedKind{{Kind: "Good", Reason: "later"}} }),
			"kind Good: both offered and later",
		},
		"kind without a sentence": {
			good(func(t *model.Tables) { t.Offered[0].Doc = "" }), "offered kind Good: the row gives no reason",
		},
		"unknown kind": {
			good(func(t *model.Tables) {
				t.Denied = append(t.Denied, model.DecidedKind{Kind: "Gone", Reason: "why", Owner: model.Bundle})
			}),
			"denied kind Gone: the row matches nothing",
		},
		"denied kind without an owner": {
			good(func(t *model.Tables) { t.Denied = append(t.Denied, model.DecidedKind{Kind: "Gone", Reason: "why"}) }),
			`denied kind Gone: the owner "" is none of ["SecretsBundle" "Cluster" "AnotherManager"]`,
		},
		"refusal with another owner": {
			good(func(t *model.Tables) {
				t.Refusals = []model.Refusal{{Go: owner + "Text", Message: "text: secret", Owner: "me"}}
			}),
			`refusal of errors/problems.Good.Text: the owner "me" is none of`,
		},
		"owner of a field in a list": {
			func() model.Tables {
				tables := only("SoundsSecret")
				tables.Refusals = []model.Refusal{{Go: "errors/problems.sounding.Text", Message: "apiToken: secret", Owner: model.Bundle}}

				return tables
			}(),
			"field errors/problems.sounding.Text has an owner and is within a list or map",
		},
		"unused refusal": {
			good(func(t *model.Tables) { t.Refusals = []model.Refusal{{Go: owner + "Gone", Message: "gone: secret"}} }),
			"refusal of errors/problems.Good.Gone: the row matches nothing",
		},
		"refusal by the wire name": {
			good(func(t *model.Tables) { t.Refusals = []model.Refusal{{Go: owner + "text", Message: "text: secret"}} }),
			"refusal of errors/problems.Good.text: the row matches nothing",
		},
		"unused override": {
			good(func(t *model.Tables) { t.Overrides = []model.Override{{Go: owner + "Gone", Reason: "why"}} }),
			"override of errors/problems.Good.Gone: the row matches nothing",
		},
		"unused substitution": {
			good(func(t *model.Tables) { t.Scalars = []model.ScalarRow{{Go: "registry.Size", Reason: "why"}} }),
			"substitution of registry.Size: the row matches nothing",
		},
		"unused note": {
			good(func(t *model.Tables) { t.Notes = []model.Note{{Go: owner + "Gone", Text: "text"}} }),
			"note on errors/problems.Good.Gone: the row matches nothing",
		},
		"unused identity": {
			good(func(t *model.Tables) { t.Identity = []model.IdentityRow{{Go: "registry.Meta", Reason: "why"}} }),
			"identity registry.Meta: the row matches nothing",
		},
		"row without a reason": {
			good(func(t *model.Tables) { t.Lists = []model.ListRow{{Go: "registry.Size"}} }),
			"list registry.Size: the row gives no reason",
		},
		"field that is called like a secret": {
			only("SoundsSecret"),
			"kind SoundsSecret: inner[].apiToken: field errors/problems.sounding.Text is called like a secret; refuse it, let it come by reference, or say why it is harmless",
		},
		"secret that its name does not tell": {
			good(func(t *model.Tables) { t.Secrets = []model.SecretRow{{Go: owner + "Text", Reason: "why"}} }),
			"kind Good: text: field errors/problems.Good.Text is called like a secret",
		},
		"unused secret": {
			good(func(t *model.Tables) { t.Secrets = []model.SecretRow{{Go: owner + "Gone", Reason: "why"}} }),
			"secret errors/problems.Good.Gone: the row matches nothing",
		},
		"harmless field that sounds like nothing": {
			good(func(t *model.Tables) { t.Harmless = []model.HarmlessRow{{Go: owner + "Text", Reason: "why"}} }),
			"harmless errors/problems.Good.Text: the row matches nothing",
		},
		"unused reference": {
			good(func(t *model.Tables) {
				t.References = []model.ReferenceRow{{Go: owner + "Gone", As: model.Credential, Reason: "why"}}
			}),
			"reference for errors/problems.Good.Gone: the row matches nothing",
		},
		"reference without a form": {
			good(func(t *model.Tables) { t.References = []model.ReferenceRow{{Go: owner + "Text", Reason: "why"}} }),
			"reference for errors/problems.Good.Text: the row does not say how the field comes by reference",
		},
		"reference without a reason": {
			good(func(t *model.Tables) {
				t.References = []model.ReferenceRow{{Go: owner + "Text", As: model.Credential}}
			}),
			"reference for errors/problems.Good.Text: the row gives no reason",
		},
		"reference for a field that is refused": {
			good(func(t *model.Tables) {
				t.Refusals = []model.Refusal{{Go: owner + "Text", Message: "text: secret"}}
				t.References = []model.ReferenceRow{{Go: owner + "Text", As: model.Credential, Reason: "why"}}
			}),
			"field errors/problems.Good.Text is refused by a row and comes by reference by another",
		},
		"content that is no text": {
			good(func(t *model.Tables) {
				t.References = []model.ReferenceRow{{Go: owner + "Flag", As: model.Content, Reason: "why"}}
			}),
			"field errors/problems.Good.Flag is no text, and no list or map of texts",
		},
		"credential that is a boolean": {
			good(func(t *model.Tables) {
				t.References = []model.ReferenceRow{{Go: owner + "Flag", As: model.Credential, Reason: "why"}}
			}),
			"field errors/problems.Good.Flag is no text and no bytes; it cannot come from a Secret",
		},
		"unused object": {
			good(func(t *model.Tables) { t.Objects = []model.ObjectRow{{Go: "registry.Gone", Reason: "why"}} }),
			"object registry.Gone: the row matches nothing",
		},
		"object that is no struct": {
			func() model.Tables {
				t := only("FreeForm")
				t.Objects = []model.ObjectRow{{Go: "registry.Free", Reason: "why"}}

				return t
			}(),
			"registry.Free is in the object table and is no struct",
		},
		"object with a field without a name": {
			object(map[string]string{}), "the row of registry.Size does not say what the field bytes is called on the wire",
		},
		"object with a field that is gone": {
			object(map[string]string{"bytes": "bytes", "C": "c"}), "registry.Size has no field C, which its row names",
		},
		"two rows for one field": {
			good(func(t *model.Tables) {
				r := model.Refusal{Go: owner + "Text", Message: "text: secret"}
				t.Refusals = []model.Refusal{r, r}
			}),
			"refusal of errors/problems.Good.Text: two rows",
		},
		"refusal that names another field": {
			good(func(t *model.Tables) { t.Refusals = []model.Refusal{{Go: owner + "Text", Message: "context: secret"}} }),
			"the refusal of errors/problems.Good.Text does not begin with the field's name",
		},
		"refusal of a float": {
			func() model.Tables {
				tables := only("FloatField")
				tables.Refusals = []model.Refusal{{Go: "errors/problems.FloatField.Ratio", Message: "ratio: secret"}}

				return tables
			}(),
			"field errors/problems.FloatField.Ratio has type float32, for which there is no form that refuses everything",
		},
		"note that is too long": {
			good(func(t *model.Tables) { t.Notes = []model.Note{{Go: owner + "Text", Text: strings.Repeat("x", 41)}} }),
			"note on errors/problems.Good.Text: 41 bytes, at most 40 fit",
		},
		"note that is too long along with the first version": {
			good(func(t *model.Tables) {
				t.Notes = []model.Note{{Go: owner + "Text", Text: strings.Repeat("x", 30)}}
				t.Since = map[string]int{owner + "Text": 14}
			}),
			"note on errors/problems.Good.Text: 48 bytes, at most 40 fit",
		},
		"length of a boolean": {
			good(func(t *model.Tables) { t.Limits = []model.Limit{{Go: owner + "Flag", MaxLength: 1, Reason: "why"}} }),
			"the limit of errors/problems.Good.Flag bounds a length, but the field is no string",
		},
		"items of a string": {
			good(func(t *model.Tables) { t.Limits = []model.Limit{{Go: owner + "Text", MaxItems: 1, Reason: "why"}} }),
			"the limit of errors/problems.Good.Text bounds items, but the field is no list or map",
		},
		"substitution without an example": {
			row(func(r *model.ScalarRow) { r.Examples = nil }), "substitution of registry.Size: the row has no example",
		},
		"example that does not match": {
			row(func(r *model.ScalarRow) { r.Pattern = "^x$" }), `substitution of registry.Size: the example "1" does not match`,
		},
		"rule without a message": {
			row(func(r *model.ScalarRow) { r.Rule = "false" }), "substitution of registry.Size: a rule needs a message, and a message a rule",
		},
		"message without a rule": {
			row(func(r *model.ScalarRow) { r.Message = "no" }), "substitution of registry.Size: a rule needs a message, and a message a rule",
		},
		"pattern that does not compile": {
			row(func(r *model.ScalarRow) { r.Pattern = "(" }), "substitution of registry.Size: pattern:",
		},
		"enum without a value that machinery has": {
			func() model.Tables {
				tables := only("ShortEnum")
				tables.Scalars = []model.ScalarRow{{Go: "errors/problems.Phase", Enum: []string{"waiting"}, Reason: "special"}}

				return tables
			}(),
			"substitution of errors/problems.Phase: the row lists 1 values, machinery has 2",
		},
		"text of a substitution that is too long": {
			row(func(r *model.ScalarRow) { r.Doc = strings.Repeat("x", 41) }), "substitution of registry.Size: the text has 41 bytes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			api, err := model.Build(problems(t), tc.tables)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}

			if api != nil {
				t.Error("got a model along with the error")
			}
		})
	}
}

// problems is loaded once: it takes much longer than all cases together.
var loaded *load.Catalog

func problems(t *testing.T) *load.Catalog {
	t.Helper()

	if loaded == nil {
		catalog, err := load.Load(t.Context(), source("errors/problems"))
		if err != nil {
			t.Fatal(err)
		}

		loaded = catalog
	}

	return loaded
}

func TestLoadErrors(t *testing.T) {
	for name, want := range map[string]string{
		"notconstant": "the kind is not a constant string",
		"notliteral":  "kind A: registered with something other than a function literal",
		"twotypes":    "kind A: the function returns",
		"nodocument":  "kind A: the function returns no document",
		"notaddress":  "kind A: the function returns something other than nil or &Type{}",
		"twice":       "kind A: registered by",
		"nothing":     "no call of " + register,
		"broken":      "undefined: undefined",
		"missing":     "errors/missing",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load.Load(t.Context(), source("errors/"+name))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}

	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()

		if _, err := load.Load(ctx, source("errors/problems")); err == nil {
			t.Error("got no error from a run that was cancelled")
		}
	})
}

func TestWriteRemovesStaleFiles(t *testing.T) {
	dir := t.TempDir()

	for _, name := range []string{"zz_generated.gone.go", "zz_generated.deepcopy.go", "doc.go"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	if err := write(dir, "zz_generated.*.go", map[string][]byte{"zz_generated.union.go": []byte("new")}); err != nil {
		t.Fatal(err)
	}

	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}

	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}

	want := []string{"doc.go", "zz_generated.deepcopy.go", "zz_generated.union.go"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}
