// SPDX-License-Identifier: Apache-2.0

package version_test

import (
	"strings"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/constants"

	"github.com/maesh-dev/ichor/internal/version"
)

// A newer machinery may bring a newer etcd, whose flags nobody has looked at.
func TestEtcdOfTheNewestTalos(t *testing.T) {
	t.Parallel()

	want := strings.TrimPrefix(constants.DefaultEtcdVersion, "v")
	if got := version.EtcdOf(version.Newest().Talos()); got == "" || !strings.HasPrefix(want, got+".") {
		t.Errorf("got etcd %q, and machinery says %s", got, want)
	}

	older, err := version.ParseTalos("v1.13.4")
	if err != nil {
		t.Fatal(err)
	}

	if got := version.EtcdOf(older); got != "3.6" {
		t.Errorf("Talos %s: got etcd %q, want 3.6", older, got)
	}

	if got := version.EtcdOf(version.Talos{}); got != "" {
		t.Errorf("no Talos: got etcd %q", got)
	}
}
