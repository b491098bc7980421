// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"strings"
	"testing"

	"github.com/maesh-dev/ichor/internal/rollout"
)

func TestMachineName(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("l", 60)
	cases := map[string]struct {
		template, cluster, controlPlane string
		want                            string
	}{
		"the default":            {"", "demo", "demo-cp", "demo-cp-x7k2p"},
		"variables":              {"{{ .cluster.name }}-{{.random}}", "demo", "cp", "demo-x7k2p"},
		"functions and if":       {`{{ if eq .cluster.name "demo" }}d{{ else }}{{ .cluster.name }}{{ end }}-{{ printf "%s" .random }}`, "demo", "cp", "d-x7k2p"},
		"slices and formats":     {`{{ slice .cluster.name 0 1 }}-{{ .random | printf "%-2s%s" "n-" }}{{ if not (eq (len .random) 5) }}x{{ end }}`, "demo", "cp", "d-n-x7k2p"},
		"too long":               {"", "demo", long, strings.Repeat("l", 58) + "x7k2p"},
		"too long, random first": {"{{ .random }}-{{ .cluster.name }}", long, "cp", "x7k2p-" + strings.Repeat("l", 52) + "x7k2p"},
		"just not too long":      {"{{ .cluster.name }}-{{ .random }}", long[:57], "cp", long[:57] + "-x7k2p"},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got, err := rollout.MachineName(tc.template, rollout.Naming{Cluster: tc.cluster, ControlPlane: tc.controlPlane, Random: "x7k2p"})
			if err != nil || got != tc.want {
				t.Errorf("got %q, %v; want %q", got, err, tc.want)
			}

			if err = rollout.CheckNaming(tc.template); err != nil {
				t.Errorf("the template is refused: %v", err)
			}
		})
	}
}

func TestCheckNamingRefuses(t *testing.T) {
	t.Parallel()

	cases := map[string]struct{ template, want string }{
		"no template":                {"{{ .random", "unclosed action"},
		"nothing random":             {"{{ .cluster.name }}", "must contain {{ .random }}"},
		"random in a dead branch":    {`cp{{ if false }}{{ .random }}{{ end }}`, "must contain {{ .random }}"},
		"another provider's name":    {"{{ .kubeadmControlPlane.name }}-{{ .random }}", "the variables are .cluster.name, .talosControlPlane.name and .random"},
		"an unknown function":        {"{{ lower .random }}", `function "lower" not defined`},
		"upper case":                 {"CP-{{ .random }}", `it gives the name "CP-aaaaa"`},
		"a dash at the end":          {"cp-{{ .random }}-", `it gives the name "cp-aaaaa-"`},
		"a loop":                     {"{{ range 1000000000000 }}{{ end }}{{ .random }}", "is not allowed"},
		"a loop in an if":            {"{{ if true }}x{{ else }}{{ range 9 }}{{ end }}{{ end }}{{ .random }}", "is not allowed"},
		"a format that is very wide": {`{{ printf "%999999d" 1 }}{{ .random }}`, "each at most 99 wide"},
		"a width that is a value":    {`{{ printf "%*d" 999999 1 }}{{ .random }}`, "each at most 99 wide"},
		"a precision":                {`{{ printf "%.999999d" 1 }}{{ .random }}`, "each at most 99 wide"},
		"a value many times":         {`{{ .random | printf "%[1]s%[1]s" | printf "%[1]s%[1]s" }}` + "{{ .random }}", "each at most 99 wide"},
		"quotes of quotes":           {`{{ .random | printf "%#v" | printf "%#v" }}{{ .random }}`, "each at most 99 wide"},
		"a format that is made":      {`{{ printf (print "%9999" "99d") 1 }}{{ .random }}`, "each at most 99 wide"},
		"a format in a pipe":         {`{{ "%999999d" | printf }}{{ .random }}`, "each at most 99 wide"},
		"a format in a condition":    {`{{ if (printf "%999999d" 1) }}x{{ end }}{{ .random }}`, "each at most 99 wide"},
		"a format in an else if":     {`{{ if false }}{{ else if printf "%999999d" 1 }}x{{ end }}{{ .random }}`, "each at most 99 wide"},
		"a format in a chain":        {`{{ (print (printf "%999999d" 1)).x }}{{ .random }}`, "each at most 99 wide"},
		"a text that doubles":        {`{{ "\\" | js | js | js }}{{ .random }}`, "the function js is not allowed"},
		"a function by its name":     {`{{ call html }}{{ .random }}`, "the function call is not allowed"},
		"a variable":                 {`{{ $x := "x" }}{{ $x }}{{ .random }}`, "variables of your own"},
		"a variable that changes":    {`{{ if $x := "x" }}{{ $x = print $x $x }}{{ end }}{{ .random }}`, "variables of your own"},
		"32 GB":                      {`{{$x:=printf "%999999d" 1}}` + strings.Repeat(`{{$x = print $x $x $x $x $x $x $x $x}}`, 5) + "{{.random}}", "variables of your own"},
		"a with":                     {`{{ with $x := "x" }}{{ $x }}{{ end }}{{ .random }}`, "is not allowed"},
		"a name without end":         {strings.Repeat(`{{ printf "%99s" "x" }}`, 11) + "{{ .random }}", "the name has more than 1024 letters"},
		"a template that calls self": {`{{ define "x" }}{{ template "x" }}{{ end }}{{ template "x" }}{{ .random }}`, "not allowed"},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if err := rollout.CheckNaming(tc.template); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}
