// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/maesh-dev/ichor/internal/machineconfig"
)

// badInput is a mistake as people make it. The golden file says what they are told.
type badInput struct {
	contract     string // v1.14 unless set
	controlPlane bool
	change       func(*testing.T, *machineconfig.Input)

	// documents are the documents of a patch named "bad", in layer Cluster.
	documents string

	// deletions are its deletions.
	deletions string

	// at is where the first Error must point: source, document and field, joined by " | ".
	at string
}

func badInputs() map[string]badInput {
	all := maps.Clone(badPatches)
	maps.Copy(all, badObjects)

	return all
}

func change(do func(in *machineconfig.Input)) func(*testing.T, *machineconfig.Input) {
	return func(_ *testing.T, in *machineconfig.Input) { do(in) }
}

func talosVersion(talos string) func(*testing.T, *machineconfig.Input) {
	return change(func(in *machineconfig.Input) { clusterConfig(in).Spec.Talos.Version = talos })
}

// TestBadInput renders every mistake. The Error must name the layer, the object, the document and the field; the golden file
// has what users read.
func TestBadInput(t *testing.T) {
	t.Parallel()

	cases := badInputs()
	if len(cases) < 40 {
		t.Fatalf("%d cases, want at least 40", len(cases))
	}

	var told strings.Builder

	for _, name := range slices.Sorted(maps.Keys(cases)) {
		err := renderBad(t, name, cases[name])
		if err == nil {
			t.Errorf("%s: rendered without an error", name)

			continue
		}

		if strings.Contains(err.Error(), registryPassword) {
			t.Errorf("%s: the error shows the password", name)
		}

		faults := machineconfig.Errors(err)
		if len(faults) == 0 {
			t.Errorf("%s: not an Error: %v", name, err)

			continue
		}

		at := fmt.Sprintf("%s | %s | %s", faults[0].Source, faults[0].Document, faults[0].Field)
		if want := strings.ReplaceAll(cases[name].at, "| |", "|  |"); at != want {
			t.Errorf("%s:\n points at %q\nwant       %q\nsays %v", name, at, want, err)
		}

		fmt.Fprintf(&told, "%s\n", name)

		for _, fault := range faults {
			fmt.Fprintf(&told, "    %s\n", strings.ReplaceAll(fault.Error(), "\n", "\n    "))
		}
	}

	compareGolden(t, "testdata/bad-input.txt", []byte(told.String()))
}

func renderBad(t *testing.T, name string, each badInput) error {
	t.Helper()

	contract := each.contract
	if contract == "" {
		contract = "v1.14"
	}

	in := input(t, contract, each.controlPlane)
	if each.change != nil {
		each.change(t, &in)
	}

	text := "metadata: {name: bad}\nspec:\n  layer: Cluster\n  clusterName: c1\n"

	if each.documents != "" {
		in.Patches = append(in.Patches, patch(t, text+"  documents:\n"+each.documents))
	}

	if each.deletions != "" {
		in.Patches = append(in.Patches, patch(t, text+"  deletions:\n"+each.deletions))
	}

	config, err := machineconfig.Render(in)
	if err != nil && len(config.Bytes) > 0 {
		t.Errorf("%s: an error, and a config", name)
	}

	return err
}
