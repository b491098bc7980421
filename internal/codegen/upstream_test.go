// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/maesh-dev/ichor/internal/codegen/load"
	"github.com/maesh-dev/ichor/internal/codegen/model"
)

const otherModule = testdata + "upstream"

// upstreamTables give a free-form field a type of another module.
func upstreamTables() model.Tables {
	const why = "special"

	t := base("ServiceConfig")
	t.Prefix = testdata + "features/"
	t.Overrides = []model.Override{
		{Go: "upstream.ServiceConfig.Config", As: model.Form{Type: otherModule + ".Configuration"}, Reason: why},
		{Go: otherModule + ".Plugin.Args", As: model.Form{Type: "OtherArgs"}, Reason: why},
	}
	t.Upstream = []model.UpstreamPackage{{Path: otherModule, As: "Other"}, {Path: "io/fs", As: "File"}}
	t.TypeMetas = []model.TypeMetaRow{
		{Go: otherModule + ".Configuration", APIVersions: []string{"a/v1", "a/v1beta1"}, Kind: "Configuration", Demanded: true, Reason: why},
		{Go: otherModule + ".FitArgs", APIVersions: []string{"a/v1"}, Kind: "FitArgs", Reason: why},
		{Go: otherModule + ".SpreadArgs", APIVersions: []string{"a/v1"}, Kind: "SpreadArgs", Reason: why},
	}
	t.Merged = []model.MergedRow{{
		Name: "OtherArgs", As: "Other", By: "name", Message: "args: of known plugins only",
		Of: []model.MergedType{{Go: otherModule + ".FitArgs", For: []string{"Fit"}}, {Go: otherModule + ".SpreadArgs", For: []string{"Spread", "Even"}}},
	}}
	t.Scalars = []model.ScalarRow{
		{Go: "float64", Base: model.Number, Pattern: `^[0-9.]+$`, Examples: []string{"0.5"}, Reason: why},
		{Go: "uint64", Base: model.Number, Pattern: `^[0-9]+$`, Examples: []string{"1"}, Reason: why},
		{Go: "io/fs.FileMode", Base: model.Integer, Maximum: 511, Examples: []string{"420"}, Reason: why},
		{Go: otherModule + ".Level", Enum: []string{"low", "high"}, Reason: why},
	}
	t.Refusals = []model.Refusal{
		{Go: otherModule + ".Configuration.Headers", Message: "headers: can carry a secret"},
		{Go: otherModule + ".Configuration.Port", Message: "port: is set elsewhere"},
		{Go: otherModule + ".Configuration.Enabled", Message: "enabled: is set elsewhere"},
	}
	t.Limits = []model.Limit{{Go: otherModule + ".Configuration.Plugins", MaxItems: 4, Reason: why}}

	return t
}

func upstreamSource(tables model.Tables) load.Source {
	s := source("features/upstream")
	s.Types = tables.UpstreamTypes()

	return s
}

func TestGoldenOfUpstreamTypes(t *testing.T) {
	tables := upstreamTables()

	files, err := generate(t.Context(), upstreamSource(tables), tables, "v1")
	if err != nil {
		t.Fatal(err)
	}

	compareGolden(t, filepath.Join("testdata", "features", "upstream"), files)
}

func TestUpstreamErrors(t *testing.T) {
	// The whole of it names types that a change may add.
	all := upstreamTables()
	all.Overrides[0].As.Type = otherModule + ".Wrong"

	whole := upstreamSource(upstreamTables())
	whole.Types = append(slices.Concat(whole.Types, all.UpstreamTypes()), otherModule+".Bare", otherModule+".Policy")

	catalog, err := load.Load(t.Context(), whole)
	if err != nil {
		t.Fatal(err)
	}

	reads := func(name string) func(*model.Tables) {
		return func(t *model.Tables) { t.Overrides[0].As.Type = name }
	}

	for name, tc := range map[string]struct {
		change func(*model.Tables)
		want   string
	}{
		"type that was not loaded": {reads(otherModule + ".Gone"), "kind ServiceConfig.config: type " + otherModule + ".Gone was not loaded"},
		"type that is no struct":   {reads(otherModule + ".Policy"), "type " + otherModule + ".Policy is not a struct"},
		"field without a tag":      {reads(otherModule + ".Wrong"), "field " + otherModule + ".Wrong.Untagged has no json tag with a name"},
		"object without a row":     {reads(otherModule + ".Bare"), "type " + otherModule + ".Bare has an apiVersion and a kind, and no row says which"},
		"enum without a row": {
			func(t *model.Tables) { t.Scalars = t.Scalars[:3] },
			"field " + otherModule + ".Configuration.Level has the special type " + otherModule + ".Level",
		},
		"enum with another number of values": {
			func(t *model.Tables) { t.Scalars[3].Enum = []string{"low"} }, "the row lists 1 values, machinery has 2",
		},
		"float without a row": {
			func(t *model.Tables) { t.Scalars = t.Scalars[1:] }, "field " + otherModule + ".Configuration.Ratio has type float64, which has no form in a schema",
		},
		"package that is not named": {
			func(t *model.Tables) { t.Upstream = t.Upstream[1:] }, "has no yaml tag with a name",
		},
		"package that nothing is mirrored from": {
			func(t *model.Tables) {
				t.Upstream = append(t.Upstream, model.UpstreamPackage{Path: "example.com/other", As: "Other"})
			},
			"upstream package example.com/other: the row matches nothing",
		},
		"object that nothing mirrors": {
			func(t *model.Tables) {
				t.TypeMetas = append(t.TypeMetas, model.TypeMetaRow{Go: otherModule + ".Gone", Kind: "Gone", Reason: "why"})
			},
			"apiVersion and kind of " + otherModule + ".Gone: the row matches nothing",
		},
		"field of two merged types": {
			func(t *model.Tables) {
				t.Merged[0].Of = append(t.Merged[0].Of, model.MergedType{Go: otherModule + ".Bare"})
			},
			"no row says which",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tables := upstreamTables()
			tc.change(&tables)

			if _, err := model.Build(catalog, tables); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestLoadErrorsOfTypes(t *testing.T) {
	for name, want := range map[string]string{
		"Configuration":                        `want it as "import/path.Type"`,
		otherModule + ".Gone":                  "package " + otherModule + " has no such type",
		testdata + "missing.Configuration":     "testdata/missing",
		testdata + "upstream/Configuration":    `want it as "import/path.Type"`,
		otherModule + ".Low":                   "package " + otherModule + " has no such type",
		testdata + "errors/broken.Undefined":   "undefined: undefined",
		"github.com/maesh-dev/ichor/nothing.A": "nothing",
	} {
		t.Run(name, func(t *testing.T) {
			s := source("features/upstream")
			s.Types = []string{name}

			_, err := load.Load(t.Context(), s)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}
