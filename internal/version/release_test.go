// SPDX-License-Identifier: Apache-2.0

package version_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/maesh-dev/ichor/internal/version"
)

func mustKubernetes(t *testing.T, s string) version.Kubernetes {
	t.Helper()

	kubernetes, err := version.ParseKubernetes(s)
	if err != nil {
		t.Fatal(err)
	}

	return kubernetes
}

func TestParseTalos(t *testing.T) {
	t.Parallel()

	const (
		full    = `: must be a full version: v<major>.<minor>.<patch>, with an optional pre-release, for example "v1.14.0"`
		noV     = `: must be a full version with a leading v, for example "v1.14.0"`
		tooOld  = `: older than v1.12.0, the oldest that nodes may run`
		unknown = `: not known to this release, which knows Talos v1.12 to v1.14`
	)

	tests := map[string]struct {
		in       string
		contract string
		want     string
	}{
		"current":               {in: "v1.14.1", contract: "v1.14"},
		"later patch":           {in: "v1.14.9", contract: "v1.14"},
		"oldest":                {in: "v1.12.0", contract: "v1.12"},
		"pre-release":           {in: "v1.14.0-rc.1", contract: "v1.14"},
		"pre-release of oldest": {in: "v1.12.0-alpha.1", want: `talos version "v1.12.0-alpha.1"` + tooOld},
		"too old":               {in: "v1.11.6", want: `talos version "v1.11.6"` + tooOld},
		"next minor":            {in: "v1.15.0", want: `talos version "v1.15.0"` + unknown},
		"next major":            {in: "v2.0.0", want: `talos version "v2.0.0"` + unknown},
		"far future":            {in: "v1.99.0", want: `talos version "v1.99.0"` + unknown},
		"minor only":            {in: "v1.14", want: `talos version "v1.14"` + full},
		"major only":            {in: "v1", want: `talos version "v1"` + full},
		"word":                  {in: "latest", want: `talos version "latest"` + noV},
		"empty":                 {in: "", want: `talos version ""` + noV},
		"no v":                  {in: "1.14.1", want: `talos version "1.14.1"` + noV},
		"two v":                 {in: "vv1.14.1", want: `talos version "vv1.14.1"` + full},
		"leading zero":          {in: "v1.014.1", want: `talos version "v1.014.1"` + full},
		"build metadata":        {in: "v1.14.1+x", want: `talos version "v1.14.1+x": must not have build metadata (+...), which no image tag can carry`},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			talos, err := version.ParseTalos(tc.in)
			if diff := cmp.Diff(tc.want, errorText(err)); diff != "" {
				t.Fatalf("error (-want +got):\n%s", diff)
			}

			if tc.want != "" {
				return
			}

			if got := []string{talos.String(), talos.Contract().String()}; !cmp.Equal(got, []string{tc.in, tc.contract}) {
				t.Errorf("got %v, want %s with contract %s", got, tc.in, tc.contract)
			}
		})
	}
}

func TestReleaseOrder(t *testing.T) {
	t.Parallel()

	ascending := []string{"v1.12.0", "v1.12.10", "v1.13.0-beta.0", "v1.13.0-rc.0", "v1.13.0", "v1.14.1"}

	for i, older := range ascending {
		for j, newer := range ascending {
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}

			if got := mustTalos(t, older).Compare(mustTalos(t, newer)); got != want {
				t.Errorf("Talos %s compared to %s: %d, want %d", older, newer, got, want)
			}

			if got := mustKubernetes(t, older).Compare(mustKubernetes(t, newer)); got != want {
				t.Errorf("Kubernetes %s compared to %s: %d, want %d", older, newer, got, want)
			}
		}
	}
}

func TestParseKubernetes(t *testing.T) {
	t.Parallel()

	const full = `: must be a full version: v<major>.<minor>.<patch>, with an optional pre-release, for example "v1.36.1"`

	tests := map[string]struct {
		in     string
		number string
		want   string
	}{
		"with v":         {in: "v1.36.1", number: "1.36.1"},
		"without v":      {in: "1.36.1", number: "1.36.1"},
		"pre-release":    {in: "v1.37.0-rc.1", number: "1.37.0-rc.1"},
		"minor only":     {in: "v1.36", want: `kubernetes version "v1.36"` + full},
		"empty":          {in: "", want: `kubernetes version ""` + full},
		"word":           {in: "stable", want: `kubernetes version "stable"` + full},
		"build metadata": {in: "v1.36.1+k3s1", want: `kubernetes version "v1.36.1+k3s1": must not have build metadata (+...): Talos runs upstream Kubernetes`},
		"other major":    {in: "v2.0.0", want: `kubernetes version "v2.0.0": not a Kubernetes release, for example "v1.36.1"`},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			kubernetes, err := version.ParseKubernetes(tc.in)
			if diff := cmp.Diff(tc.want, errorText(err)); diff != "" {
				t.Fatalf("error (-want +got):\n%s", diff)
			}

			if kubernetes.Number() != tc.number {
				t.Errorf("Number() = %q, want %q", kubernetes.Number(), tc.number)
			}

			if tc.want == "" && kubernetes.String() != "v"+tc.number {
				t.Errorf("String() = %q, want %q", kubernetes, "v"+tc.number)
			}
		})
	}
}

func TestCheckKubernetes(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		talos      string
		kubernetes string
		want       string
	}{
		"1.12 oldest":            {talos: "v1.12.3", kubernetes: "v1.30.0"},
		"1.12 newest":            {talos: "v1.12.3", kubernetes: "v1.35.7"},
		"1.12 too old":           {talos: "v1.12.3", kubernetes: "v1.29.9", want: "kubernetes version v1.29.9: Talos v1.12.3 does not run it; it runs Kubernetes 1.30 to 1.35"},
		"1.12 too new":           {talos: "v1.12.3", kubernetes: "v1.36.0", want: "kubernetes version v1.36.0: Talos v1.12.3 does not run it; it runs Kubernetes 1.30 to 1.35"},
		"1.13 oldest":            {talos: "v1.13.0", kubernetes: "v1.31.0"},
		"1.13 newest":            {talos: "v1.13.0", kubernetes: "v1.36.4"},
		"1.13 too old":           {talos: "v1.13.0", kubernetes: "v1.30.4", want: "kubernetes version v1.30.4: Talos v1.13.0 does not run it; it runs Kubernetes 1.31 to 1.36"},
		"1.14 oldest":            {talos: "v1.14.1", kubernetes: "v1.32.0"},
		"1.14 newest":            {talos: "v1.14.1", kubernetes: "v1.37.2"},
		"1.14 too old":           {talos: "v1.14.1", kubernetes: "v1.31.1", want: "kubernetes version v1.31.1: Talos v1.14.1 does not run it; it runs Kubernetes 1.32 to 1.37"},
		"1.14 too new":           {talos: "v1.14.1", kubernetes: "v1.38.0", want: "kubernetes version v1.38.0: Talos v1.14.1 does not run it; it runs Kubernetes 1.32 to 1.37"},
		"pre-release of a Talos": {talos: "v1.14.0-rc.1", kubernetes: "v1.37.0"},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			err := version.CheckKubernetes(mustTalos(t, tc.talos), mustKubernetes(t, tc.kubernetes))
			if diff := cmp.Diff(tc.want, errorText(err)); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}

	if version.CheckKubernetes(version.Talos{}, mustKubernetes(t, "v1.36.1")) == nil {
		t.Error("an unset Talos goes with everything")
	}

	if version.CheckKubernetes(mustTalos(t, "v1.14.1"), version.Kubernetes{}) == nil {
		t.Error("an unset Kubernetes goes with everything")
	}
}

// A Talos that ParseTalos accepts must have a row in machinery's Kubernetes tables, or every machine of it would be refused.
func TestEverySupportedTalosHasKubernetes(t *testing.T) {
	t.Parallel()

	for _, contract := range version.Supported() {
		talos := mustTalos(t, contract.String()+".0")

		found := false

		for _, kubernetes := range []string{"v1.35.0", "v1.36.0", "v1.37.0", "v1.38.0", "v1.39.0"} {
			found = found || version.CheckKubernetes(talos, mustKubernetes(t, kubernetes)) == nil
		}

		if !found {
			t.Errorf("no Kubernetes goes with Talos %s", talos)
		}
	}
}
