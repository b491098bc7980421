// SPDX-License-Identifier: Apache-2.0

package version_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/maesh-dev/ichor/internal/version"
)

func TestCheckValues(t *testing.T) {
	t.Parallel()

	const advice = ": set another value, or upgrade the machine first"

	tests := map[string]struct {
		talos  string
		kind   string
		values map[string]string
		want   string
	}{
		"nothing set":      {talos: "v1.12.0", kind: "VolumeConfig"},
		"kind without any": {talos: "v1.12.0", kind: "HostnameConfig", values: map[string]string{"/hostname": "-5GiB"}},
		"positive size":    {talos: "v1.12.0", kind: "RawVolumeConfig", values: map[string]string{"/provisioning/maxSize": "5GiB"}},
		"negative size, new enough": {
			talos: "v1.13.0", kind: "UserVolumeConfig", values: map[string]string{"/provisioning/maxSize": "-5GiB"},
		},
		"negative size": {
			talos: "v1.12.3", kind: "SwapVolumeConfig", values: map[string]string{"/provisioning/maxSize": "-5%"},
			want: "field /provisioning/maxSize of SwapVolumeConfig: a negative size needs Talos v1.13 or newer, and the machine runs v1.12.3" + advice,
		},
		"old system volume": {talos: "v1.12.3", kind: "VolumeConfig", values: map[string]string{"/name": "IMAGECACHE"}},
		// That no Talos has it is for Talos to say.
		"unknown system volume":         {talos: "v1.12.3", kind: "VolumeConfig", values: map[string]string{"/name": "ROOT"}},
		"new system volume, new enough": {talos: "v1.14.0", kind: "VolumeConfig", values: map[string]string{"/name": "LOG"}},
		"name of a user volume":         {talos: "v1.12.3", kind: "UserVolumeConfig", values: map[string]string{"/name": "LOG"}},
		"two values too new": {
			talos: "v1.12.3", kind: "VolumeConfig", values: map[string]string{"/name": "ETCD", "/provisioning/maxSize": "-1GiB"},
			want: "field /provisioning/maxSize of VolumeConfig: a negative size needs Talos v1.13 or newer, and the machine runs v1.12.3" + advice +
				"\nfield /name of VolumeConfig: a volume other than STATE, EPHEMERAL and IMAGECACHE needs Talos v1.14 or newer, and the machine runs v1.12.3" + advice,
		},
		"file system": {
			talos: "v1.13.2", kind: "UserVolumeConfig", values: map[string]string{"/filesystem/type": "btrfs"},
			want: "field /filesystem/type of UserVolumeConfig: btrfs needs Talos v1.14 or newer, and the machine runs v1.13.2" + advice,
		},
		"bond": {
			talos: "v1.12.3", kind: "BondConfig", values: map[string]string{"/failOverMac": "active"},
			want: "field /failOverMac of BondConfig: a mode by its name needs Talos v1.13 or newer, and the machine runs v1.12.3" + advice,
		},
		"unknown kind": {talos: "v1.14.1", kind: "UserVolume", want: `talos has no document kind "UserVolume"`},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			err := version.CheckValues(mustTalos(t, tc.talos), tc.kind, func(pointer string) (string, bool) {
				value, set := tc.values[pointer]

				return value, set
			})
			if diff := cmp.Diff(tc.want, errorText(err)); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}

			if tooNew := (&version.TooNewError{}); errors.As(err, &tooNew) && tooNew.Value == "" {
				t.Error("the error does not tell the value")
			}
		})
	}

	if version.CheckValues(version.Talos{}, "HostnameConfig", nil) == nil {
		t.Error("an unset Talos takes everything")
	}
}
