// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/validation"

	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/version"
)

var update = flag.Bool("update", false, "write the golden files anew")

// variants are what a config is rendered with. test/compat validates the same golden files with older machinery.
var variants = map[string]func(testing.TB, *machineconfig.Input){
	"plain":                  func(testing.TB, *machineconfig.Input) {},
	"registries":             withRegistries,
	"storage":                func(_ testing.TB, in *machineconfig.Input) { withStorage(in) },
	"all-settings":           withAllSettings,
	"registries-and-storage": func(t testing.TB, in *machineconfig.Input) { withRegistries(t, in); withStorage(in) },
}

// TestGolden renders every supported contract. A newer contract without golden files fails it: what the format changed must
// be looked at before anybody gets it.
func TestGolden(t *testing.T) {
	t.Parallel()

	for _, contract := range version.Supported() {
		for _, role := range []string{"controlplane", "worker"} {
			for variant, with := range variants {
				name := fmt.Sprintf("%s/%s-%s.yaml", contract, role, variant)

				t.Run(name, func(t *testing.T) {
					t.Parallel()

					in := input(t, contract.String(), role == "controlplane")
					withInstall(&in)
					with(t, &in)

					config, err := machineconfig.Render(in)
					if err != nil {
						t.Fatal(err)
					}

					compareGolden(t, filepath.Join("testdata", "golden", name), config.Bytes)
					loadsAndValidates(t, config.Bytes)

					again, err := machineconfig.Render(in)
					if err != nil {
						t.Fatal(err)
					}

					if !bytes.Equal(config.Bytes, again.Bytes) {
						t.Errorf("a second render differs:\n%s", cmp.Diff(string(config.Bytes), string(again.Bytes)))
					}
				})
			}
		}
	}
}

// TestGoldenFilesAreCurrent finds golden files that no render writes any more.
func TestGoldenFilesAreCurrent(t *testing.T) {
	t.Parallel()

	want := map[string]bool{}

	for _, contract := range version.Supported() {
		for variant := range variants {
			for _, role := range []string{"controlplane", "worker"} {
				want[filepath.Join("testdata", "golden", contract.String(), role+"-"+variant+".yaml")] = true
			}
		}
	}

	files, err := filepath.Glob("testdata/golden/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}

	for _, file := range files {
		if !want[file] {
			t.Errorf("%s is written by nothing: delete it", file)
		}
	}
}

func compareGolden(t *testing.T, path string, got []byte) {
	t.Helper()

	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}

		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}

		return
	}

	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run the test with -update and read what it writes", err)
	}

	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("differs from %s (-want +got):\n%s", path, diff)
	}
}

// metal is how Talos validates the golden configs on a node that it is installed on.
type metal struct{}

func (metal) String() string        { return "metal" }
func (metal) RequiresInstall() bool { return true }
func (metal) InContainer() bool     { return false }

func loadsAndValidates(t *testing.T, config []byte) {
	t.Helper()

	loaded, err := configloader.NewFromBytes(config)
	if err != nil {
		t.Fatalf("does not load: %v", err)
	}

	if _, err = loaded.ValidateAsClient(metal{}, validation.WithLocal()); err != nil {
		t.Fatalf("does not validate: %v", err)
	}
}

// TestMaskedShowsNoSecret searches a masked config for every secret of the golden one.
func TestMaskedShowsNoSecret(t *testing.T) {
	t.Parallel()

	for _, contract := range version.Supported() {
		in := input(t, contract.String(), true)
		withInstall(&in)
		withRegistries(t, &in)

		config, err := machineconfig.Render(in)
		if err != nil {
			t.Fatal(err)
		}

		masked, err := config.Masked()
		if err != nil {
			t.Fatal(err)
		}

		for name, secret := range secretsOf(in) {
			if !strings.Contains(string(config.Bytes), secret) {
				continue
			}

			if strings.Contains(string(masked), secret) {
				t.Errorf("%s: the masked config shows %s", contract, name)
			}
		}

		if !strings.Contains(string(config.Bytes), registryPassword) {
			t.Errorf("%s: the password does not reach the config", contract)
		}
	}
}

// secretsOf are the secrets in play, by what they are.
func secretsOf(in machineconfig.Input) map[string]string {
	bundle := in.Bundle

	return map[string]string{
		"registry password": registryPassword,
		"cluster secret":    bundle.Cluster.Secret,
		"bootstrap token":   bundle.Secrets.BootstrapToken,
		"secretbox key":     bundle.Secrets.SecretboxEncryptionSecret,
		"trustd token":      bundle.TrustdInfo.Token,
	}
}
