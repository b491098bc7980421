// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/maesh-dev/ichor/internal/codegen/load"
	"github.com/maesh-dev/ichor/internal/codegen/model"
)

var update = flag.Bool("update", false, "write the golden files")

const (
	testdata = "github.com/maesh-dev/ichor/internal/codegen/testdata/"
	register = testdata + "registry.Register"
)

// source is an input package below testdata.
func source(dirs ...string) load.Source {
	s := load.Source{Dir: ".", Register: register}
	for _, dir := range dirs {
		s.Patterns = append(s.Patterns, testdata+dir)
	}

	return s
}

// base has what most inputs need.
func base(offered ...string) model.Tables {
	t := model.Tables{
		Prefix: testdata,
		Bounds: model.Bounds{MaxLength: 100, MaxItems: 10, MaxProperties: 20, MaxNote: 40},
	}

	for _, kind := range offered {
		t.Offered = append(t.Offered, model.OfferedKind{Kind: kind, Doc: "Says what " + kind + " does."})
	}

	return t
}

func withMeta(t model.Tables) model.Tables {
	t.Identity = append(t.Identity, model.IdentityRow{Go: "registry.Meta", Reason: "the union knows the kind"})

	return t
}

func unionTables() model.Tables {
	t := withMeta(base("VolumeConfig", "OOMConfig"))
	t.Offered = append(t.Offered, model.OfferedKind{Kind: "old", As: "Config", Member: "config", Doc: "Is the old document."})
	t.Denied = []model.DecidedKind{{Kind: "IdentityConfig", Reason: "secret", Instead: "the \"bundle\"", Owner: model.Bundle}}
	t.Identity = append(t.Identity, model.IdentityRow{Go: "features/documents.Config.Version", Reason: "there is one"})

	return t
}

func scalarTables() model.Tables {
	const why = "special"

	t := base("ScalarConfig")
	t.Scalars = []model.ScalarRow{
		{Go: "time.Duration", Pattern: `^[0-9]+s$`, Doc: "A duration.", Examples: []string{"5s"}, Reason: why},
		{Go: "registry.Size", MinLength: 1, MaxLength: 9, Rule: "!self.contains('@')", Message: "no @", Examples: []string{"1GiB"}, Reason: why},
		{Go: "registry.Mode", Enum: []string{"off", "802.3ad"}, Reason: why},
		{Go: "features/plain.Port", Base: model.IntOrString, Pattern: `^[0-9]+-[0-9]+$`, Examples: []string{"1-2"}, Reason: why},
		{Go: "features/plain.Arg", Base: model.Arguments, Examples: []string{"a"}, Reason: why},
		{Go: "features/plain.FileMode", Base: model.Integer, Maximum: 4095, Examples: []string{"420"}, Reason: why},
		{Go: "features/plain.Base64", Base: model.Bytes, Examples: []string{"AQID"}, Reason: why},
	}
	t.Lists = []model.ListRow{{Go: "features/plain.Ports", Reason: why}}
	t.Maps = []model.MapRow{{Go: "features/plain.Args", Reason: why}}

	return t
}

func refusalTables() model.Tables {
	const owner = "features/refusals.SecretConfig."

	t := base("SecretConfig")
	t.Refusals = []model.Refusal{
		{Go: owner + "Token", Message: "token: a secret", Owner: model.Bundle},
		{Go: owner + "Key", Message: "secret.key: a secret"},
		{Go: owner + "CA", Message: "ca: a \"secret\""},
		{Go: owner + "Accepted", Message: "accepted: a trust root", Owner: model.Cluster},
		{Go: owner + "Tokens", Message: "tokens: secrets"},
		{Go: owner + "ByHost", Message: "byHost: secrets"},
		{Go: owner + "Free", Message: "free: has no schema"},
	}

	return t
}

func referenceTables() model.Tables {
	const (
		owner    = "features/references.LoginConfig."
		identity = "features/references.Identity"
		why      = "a secret"
	)

	t := base("LoginConfig")
	t.Bounds.MaxNote, t.Bounds.MaxSources = 90, 5
	t.Objects = []model.ObjectRow{{Go: identity, Wire: map[string]string{"Crt": "crt", "Key": "key"}, Reason: "encodes itself"}}
	t.References = []model.ReferenceRow{
		{Go: owner + "APIToken", As: model.Credential, Reason: why},
		{Go: identity + ".Key", As: model.Credential, Instead: "spec.certificate", Reason: why},
		{Go: owner + "Content", As: model.Content, Reason: why},
		{Go: owner + "Headers", As: model.Content, Reason: why},
		{Go: owner + "Env", As: model.Content, Reason: why},
		{Go: owner + "Pod", As: model.Pod, Reason: why},
		{Go: owner + "Pods", As: model.Pod, Reason: why},
	}

	return t
}

func overrideTables() model.Tables {
	const owner = "features/overrides.ResourcesConfig."

	quantity := model.ScalarRow{Base: model.IntOrString, Pattern: `^[0-9]+m?$`, Examples: []string{"1m"}}

	t := base("ResourcesConfig")
	t.Overrides = []model.Override{
		{Go: owner + "Requests", As: model.Form{Map: true, Name: "Quantity", Scalar: quantity}, Reason: "free-form"},
		{Go: owner + "Expires", As: model.Form{Name: "Date", Scalar: model.ScalarRow{Examples: []string{"today"}}}, Reason: "free-form"},
	}
	t.Notes = []model.Note{{Go: owner + "Expires", Text: "When it ends."}}
	t.Since = map[string]int{owner + "Expires": 13, owner + "Content": 14, "of.another.Field": 14}
	t.Limits = []model.Limit{
		{Go: owner + "Content", MaxLength: 5000, Reason: "whole files"},
		{Go: owner + "Hosts", MaxItems: 3, MaxLength: 253, Reason: "host names"},
	}

	return t
}

func TestGolden(t *testing.T) {
	for feature, tables := range map[string]model.Tables{
		"documents":  unionTables(),
		"plain":      scalarTables(),
		"nesting":    withMeta(base("BondConfig", "LinkConfig")),
		"refusals":   refusalTables(),
		"overrides":  overrideTables(),
		"references": referenceTables(),
	} {
		t.Run(feature, func(t *testing.T) {
			files, err := generate(t.Context(), source("features/"+feature), tables, "v1")
			if err != nil {
				t.Fatal(err)
			}

			again, err := generate(t.Context(), source("features/"+feature), tables, "v1")
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(files, again); diff != "" {
				t.Errorf("the second run made something else:\n%s", diff)
			}

			compareGolden(t, filepath.Join("testdata", "features", feature), files)
		})
	}
}

func compareGolden(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()

	want := slices.Sorted(maps.Keys(files))

	if *update {
		for _, name := range want {
			if err := os.WriteFile(filepath.Join(dir, name+".golden"), files[name], 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}

	goldens, err := filepath.Glob(filepath.Join(dir, "*.golden"))
	if err != nil {
		t.Fatal(err)
	}

	var have []string

	for _, path := range goldens {
		name := filepath.Base(path[:len(path)-len(".golden")])
		have = append(have, name)

		golden, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}

		if diff := cmp.Diff(string(golden), string(files[name])); diff != "" {
			t.Errorf("%s (-golden +generated):\n%s", path, diff)
		}
	}

	if diff := cmp.Diff(have, want); diff != "" {
		t.Errorf("files (-golden +generated):\n%s", diff)
	}
}
