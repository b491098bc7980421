// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/maesh-dev/ichor/internal/convert"
)

// TestNamedVariablesMove: variables whose names say that they hold a secret go into the Secret, and others stay.
func TestNamedVariablesMove(t *testing.T) {
	t.Parallel()

	document := head("ExtensionServiceConfig", "name: tailscale\nenvironment: [TS_ROUTES=10.0.0.0/8, TS_AUTHKEY=hunter2, KEYBOARD=us, TUNNEL_TOKEN=hunter2, API_KEY=, PGPASSWORD=hunter2]\n")

	result, err := convert.Convert([]convert.Document{{File: "a.yaml", Data: []byte(document)}}, convert.Options{Name: "a", Layer: "Cluster", Secrets: true})
	if err != nil {
		t.Fatal(err)
	}

	made := result.Patch.Spec.Documents[0].ExtensionServiceConfig

	if diff := cmp.Diff([]string{"TS_ROUTES=10.0.0.0/8", "KEYBOARD=us", "API_KEY="}, made.Environment); diff != "" {
		t.Errorf("what stays (-want +got)\n%s", diff)
	}

	var moved []string

	for name, source := range made.EnvironmentFrom {
		moved = append(moved, name)

		if got := result.Secret.StringData[source.SecretKeyRef.Key]; got != "hunter2" {
			t.Errorf("%s: the Secret has %q", name, got)
		}
	}

	slices.Sort(moved)

	if diff := cmp.Diff([]string{"PGPASSWORD", "TS_AUTHKEY", "TUNNEL_TOKEN"}, moved); diff != "" {
		t.Errorf("what moves (-want +got)\n%s", diff)
	}
}
