// SPDX-License-Identifier: Apache-2.0

package suggest_test

import (
	"testing"

	"github.com/maesh-dev/ichor/internal/suggest"
)

func TestNearest(t *testing.T) {
	t.Parallel()

	fields := []string{"provisioning", "mount", "name", "minSize", "maxSize", "up"}

	tests := map[string]struct {
		name       string
		candidates []string
		want       string
	}{
		"letter too many":         {"provisionning", fields, "provisioning"},
		"letter missing":          {"mont", fields, "mount"},
		"letters changed":         {"mounds", fields, "mount"},
		"case":                    {"MAXSIZE", fields, "maxSize"},
		"case wins over letters":  {"MINSIZE", []string{"MINSIZ", "minSize"}, "minSize"},
		"as near, by alphabet":    {"mixSize", fields, "maxSize"},
		"nothing near":            {"filesystem", fields, ""},
		"all letters wrong":       {"xy", fields, ""},
		"too short to be told":    {"u", fields, ""},
		"nothing to choose from":  {"mount", nil, ""},
		"the name as it is":       {"mount", fields, "mount"},
		"three letters are wrong": {"moxxxt", fields, ""},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if got := suggest.Nearest(tc.name, tc.candidates); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestLonger(t *testing.T) {
	t.Parallel()

	fields := []string{"bondMode", "vlanMode", "lacpRate", "hardwareAddr", "mtu", "minSize"}

	tests := map[string]struct{ name, want string }{
		"the last word":        {"rate", "lacpRate"},
		"the first words":      {"hardware", "hardwareAddr"},
		"of several":           {"mode", ""},
		"no word of its own":   {"ardwareAddr", ""},
		"part of a first word": {"hard", ""},
		"too short":            {"mi", ""},
		"nothing":              {"", ""},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if got := suggest.Longer(tc.name, fields); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
