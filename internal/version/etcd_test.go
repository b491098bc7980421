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

func TestCheckEtcd(t *testing.T) {
	t.Parallel()

	for _, tc := range []struct {
		talos string
		minor int
		want  string
	}{
		{"v1.12.0", 5, ""},
		{"v1.13.4", 6, ""},
		{"v1.13.4", 7, "is etcd 3.7, which does not start with flags that Talos v1.13.4 gives it: leave image out, or use etcd 3.6"},
		{"v1.14.1", 5, "is etcd 3.5, which does not start with flags that Talos v1.14.1 gives it: leave image out, or use etcd 3.6 or 3.7"},
		{"v1.14.1", 6, ""},
		{"v1.14.1", 7, ""},
	} {
		talos, err := version.ParseTalos(tc.talos)
		if err != nil {
			t.Fatal(err)
		}

		got := ""
		if err = version.CheckEtcd(talos, tc.minor); err != nil {
			got = err.Error()
		}

		if got != tc.want {
			t.Errorf("Talos %s, etcd 3.%d: got %q, want %q", tc.talos, tc.minor, got, tc.want)
		}
	}

	if err := version.CheckEtcd(version.Talos{}, 5); err != nil {
		t.Errorf("no Talos: %v", err)
	}
}
