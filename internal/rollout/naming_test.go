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
