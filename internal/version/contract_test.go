// SPDX-License-Identifier: Apache-2.0

package version_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/gendata"

	"github.com/maesh-dev/ichor/internal/version"
)

func mustContract(t *testing.T, s string) version.Contract {
	t.Helper()

	contract, err := version.ParseContract(s)
	if err != nil {
		t.Fatal(err)
	}

	return contract
}

func mustTalos(t *testing.T, s string) version.Talos {
	t.Helper()

	talos, err := version.ParseTalos(s)
	if err != nil {
		t.Fatal(err)
	}

	return talos
}

// errorText is what a table compares: the empty string for no error.
func errorText(err error) string {
	if err == nil {
		return ""
	}

	return err.Error()
}

func TestParseContract(t *testing.T) {
	t.Parallel()

	const (
		form    = `: must be v1.<minor>, from v1.0 to v1.14, for example "v1.14"`
		unknown = `: not known to this release; must be from v1.0 to v1.14`
	)

	tests := map[string]struct {
		in   string
		want string
	}{
		"newest":                {in: "v1.14"},
		"oldest of nodes":       {in: "v1.12"},
		"older than any node":   {in: "v1.5"},
		"oldest":                {in: "v1.0"},
		"next minor":            {in: "v1.15", want: `config contract "v1.15"` + unknown},
		"far future":            {in: "v1.99", want: `config contract "v1.99"` + unknown},
		"next major":            {in: "v2.0", want: `config contract "v2.0"` + unknown},
		"before machinery":      {in: "v0.14", want: `config contract "v0.14"` + unknown},
		"word":                  {in: "latest", want: `config contract "latest"` + form},
		"major only":            {in: "v1", want: `config contract "v1"` + form},
		"empty":                 {in: "", want: `config contract ""` + form},
		"full version":          {in: "v1.14.1", want: `config contract "v1.14.1"` + form},
		"no v":                  {in: "1.14", want: `config contract "1.14"` + form},
		"leading zero":          {in: "v1.014", want: `config contract "v1.014"` + form},
		"space":                 {in: "v1.14 ", want: `config contract "v1.14 "` + form},
		"newline":               {in: "v1.14\n", want: `config contract "v1.14\n"` + form},
		"pre-release":           {in: "v1.14-rc.1", want: `config contract "v1.14-rc.1"` + form},
		"does not fit a number": {in: "v1.99999999999999999999", want: `config contract "v1.99999999999999999999"` + form},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			contract, err := version.ParseContract(tc.in)
			if diff := cmp.Diff(tc.want, errorText(err)); diff != "" {
				t.Fatalf("error (-want +got):\n%s", diff)
			}

			if tc.want == "" && contract.String() != tc.in {
				t.Errorf("String() = %q, want %q", contract, tc.in)
			}
		})
	}
}

func TestSupportedFollowsMachinery(t *testing.T) {
	t.Parallel()

	got := []string{}
	for _, contract := range version.Supported() {
		got = append(got, contract.String())
	}

	// Not computed: an upgrade of machinery must make somebody look at the new contract.
	if diff := cmp.Diff([]string{"v1.12", "v1.13", "v1.14"}, got); diff != "" {
		t.Errorf("supported contracts (-want +got):\n%s", diff)
	}

	if !strings.HasPrefix(gendata.VersionTag, version.Newest().String()+".") {
		t.Errorf("newest contract is %s, machinery is %s", version.Newest(), gendata.VersionTag)
	}
}

// Every contract that is accepted must be one that machinery really produces a config for, and it must not be taken for the current one.
func TestMachineryProducesEveryContract(t *testing.T) {
	t.Parallel()

	for minor := 0; ; minor++ {
		contract, err := version.ParseContract(fmt.Sprintf("v1.%d", minor))
		if err != nil {
			if minor < 15 {
				t.Fatal(err)
			}

			break
		}

		t.Run(contract.String(), func(t *testing.T) {
			t.Parallel()

			if got := contract.Machinery().String(); got != contract.String() {
				t.Fatalf("machinery takes it for %s", got)
			}

			bundle, err := secrets.NewBundle(secrets.NewClock(), contract.Machinery(), secrets.WithECDSAServiceAccountKey())
			if err != nil {
				t.Fatal(err)
			}

			input, err := generate.NewInput("c", "https://192.0.2.1:6443", "1.36.1",
				generate.WithVersionContract(contract.Machinery()), generate.WithSecretsBundle(bundle), generate.WithInstallDisk("/dev/vda"))
			if err != nil {
				t.Fatal(err)
			}

			for _, machineType := range []machine.Type{machine.TypeControlPlane, machine.TypeWorker} {
				provider, err := input.Config(machineType)
				if err != nil {
					t.Fatalf("%s: %v", machineType, err)
				}

				if _, err := provider.ValidateAsClient(metal{}); err != nil {
					t.Errorf("%s: %v", machineType, err)
				}
			}
		})
	}
}

type metal struct{}

func (metal) String() string        { return "metal" }
func (metal) RequiresInstall() bool { return true }
func (metal) InContainer() bool     { return false }

func TestContractOrder(t *testing.T) {
	t.Parallel()

	v12, v14 := mustContract(t, "v1.12"), mustContract(t, "v1.14")

	got := map[string]bool{
		"1.12 < 1.14":  v12.Less(v14),
		"1.14 < 1.12":  v14.Less(v12),
		"1.14 < 1.14":  v14.Less(v14),
		"unset < 1.12": version.Contract{}.Less(v12),
		"1.12 >= 12":   v12.AtLeast(12),
		"1.12 >= 14":   v12.AtLeast(14),
		"1.14 >= 12":   v14.AtLeast(12),
		"unset >= 0":   version.Contract{}.AtLeast(0),
		"equal":        v12 == mustContract(t, "v1.12"),
		"unset":        version.Contract{}.IsZero(),
		"v1.0 unset":   mustContract(t, "v1.0").IsZero(),
	}
	want := map[string]bool{
		"1.12 < 1.14": true, "1.14 < 1.12": false, "1.14 < 1.14": false, "unset < 1.12": true, "1.12 >= 12": true,
		"1.12 >= 14": false, "1.14 >= 12": true, "unset >= 0": false, "equal": true, "unset": true, "v1.0 unset": false,
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestContractTalos(t *testing.T) {
	t.Parallel()

	got := []string{mustContract(t, "v1.14").Talos().String(), mustContract(t, "v1.12").Talos().String(), mustContract(t, "v1.5").Talos().String(), version.Contract{}.Talos().String()}
	if diff := cmp.Diff([]string{"v1.14.0", "v1.12.0", "v1.12.0", ""}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestUnsetContractHasNoMachineryForm(t *testing.T) {
	t.Parallel()

	defer func() {
		if recover() == nil {
			t.Error("machinery would take the unset contract for the newest one")
		}
	}()

	version.Contract{}.Machinery()
}

func TestCheckContract(t *testing.T) {
	t.Parallel()

	unset := errors.New("config contract: neither the contract nor the Talos version may be unset").Error()

	tests := map[string]struct {
		contract version.Contract
		talos    version.Talos
		want     string
	}{
		"same":              {contract: mustContract(t, "v1.13"), talos: mustTalos(t, "v1.13.2")},
		"older format":      {contract: mustContract(t, "v1.5"), talos: mustTalos(t, "v1.14.1")},
		"pre-release boots": {contract: mustContract(t, "v1.14"), talos: mustTalos(t, "v1.14.0-rc.1")},
		"newer format": {
			contract: mustContract(t, "v1.14"), talos: mustTalos(t, "v1.13.2"),
			want: "config contract v1.14: Talos v1.13.2 cannot read it; set a contract of at most v1.13, or boot Talos v1.14 or newer",
		},
		"unset contract": {talos: mustTalos(t, "v1.13.2"), want: unset},
		"unset Talos":    {contract: mustContract(t, "v1.14"), want: unset},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if diff := cmp.Diff(tc.want, errorText(version.CheckContract(tc.contract, tc.talos))); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}
