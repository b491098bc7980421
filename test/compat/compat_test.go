// SPDX-License-Identifier: Apache-2.0

package compat_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/maesh-dev/ichor/internal/version"
	"github.com/maesh-dev/ichor/test/tools"
)

// validators are the programs that load and validate a config with the machinery of an older minor. The newest is the one
// that Ichor itself is built with.
var validators = map[string]string{
	"v1.12": tools.MachineryValidate112,
	"v1.13": tools.MachineryValidate113,
}

// TestGoldenConfigsWithTheirOwnMachinery gives the golden configs of each older contract to that minor's own machinery: it
// loads them strictly and validates them as a node does.
func TestGoldenConfigsWithTheirOwnMachinery(t *testing.T) {
	t.Parallel()

	for _, contract := range version.Supported() {
		if contract == version.Newest() {
			continue
		}

		t.Run(contract.String(), func(t *testing.T) {
			t.Parallel()

			name, ok := validators[contract.String()]
			if !ok {
				t.Fatalf("no validator of contract %s: add a row to test/tools and to this test", contract)
			}

			validator, err := tools.Path(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}

			configs, err := filepath.Glob(filepath.Join("..", "..", "internal", "machineconfig", "testdata", "golden", contract.String(), "*.yaml"))
			if err != nil {
				t.Fatal(err)
			}

			if len(configs) < 8 {
				t.Fatalf("%d golden configs, want at least both machine types with and without registries and storage", len(configs))
			}

			var out bytes.Buffer

			command := exec.CommandContext(t.Context(), validator, append([]string{"-mode", "metal"}, configs...)...)
			command.Stdout, command.Stderr = &out, &out

			if err = command.Run(); err != nil {
				t.Errorf("%v:\n%s", err, out.String())
			}

			if accepted := strings.Count(out.String(), `"ok":true`); accepted != len(configs) {
				t.Errorf("%d of %d configs are accepted:\n%s", accepted, len(configs), out.String())
			}
		})
	}
}

// TestValidatorsRefuse proves that the validators can fail: a newer config is none for an older Talos.
func TestValidatorsRefuse(t *testing.T) {
	t.Parallel()

	newer := filepath.Join("..", "..", "internal", "machineconfig", "testdata", "golden", version.Newest().String(), "worker-plain.yaml")

	for contract, name := range validators {
		validator, err := tools.Path(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}

		out, err := exec.CommandContext(t.Context(), validator, "-mode", "metal", newer).CombinedOutput()
		if err == nil {
			t.Errorf("%s accepts %s:\n%s", contract, newer, out)
		}

		if !strings.Contains(string(out), "not registered") {
			t.Errorf("%s refuses %s for another reason than its kinds:\n%s", contract, newer, out)
		}
	}
}
