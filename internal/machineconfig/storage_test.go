// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
)

// TestStorageFaults wants each fault of a TalosStorage said of that TalosStorage and its field.
func TestStorageFaults(t *testing.T) {
	t.Parallel()

	broken := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "pool", Operator: "Is"}}}

	cases := map[string]struct {
		change func(*bootstrapv1.TalosStorageSpec)
		want   []string
	}{
		"machine selector with an unknown operator": {
			change: func(s *bootstrapv1.TalosStorageSpec) { s.MachineSelector = broken },
			want:   []string{"spec.machineSelector"},
		},
		"cluster selector with an unknown operator": {
			change: func(s *bootstrapv1.TalosStorageSpec) { s.ClusterName, s.ClusterSelector = "", broken },
			want:   []string{"spec.clusterSelector"},
		},
		"cluster by name and by selector": {
			change: func(s *bootstrapv1.TalosStorageSpec) { s.ClusterSelector = &metav1.LabelSelector{} },
			want:   []string{"spec"},
		},
		"several fields of the volume": {
			change: func(s *bootstrapv1.TalosStorageSpec) {
				s.Volume.DiskSelector, s.Volume.MinSize = "disk.transprt == 1", "large"
			},
			want: []string{"spec.volume.diskSelector", "spec.volume.minSize"},
		},
		"encryption key": {
			change: func(s *bootstrapv1.TalosStorageSpec) {
				s.Volume.Encryption.Keys = []bootstrapv1.StorageEncryptionKey{{Slot: new(int32(0)), Source: bootstrapv1.StorageEncryptionKeyKMS}}
			},
			want: []string{"spec.volume.encryption.keys[0].kmsEndpoint"},
		},
		"tag": {
			change: func(s *bootstrapv1.TalosStorageSpec) { s.NodeTags = []string{"rack a"} },
			want:   []string{"spec.nodeTags[0]"},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			in := input(t, "v1.14", false)
			withStorage(&in)
			tc.change(&in.Storages[0].Spec)

			_, err := machineconfig.Render(in)

			var got []string

			for _, fault := range machineconfig.Errors(err) {
				got = append(got, fault.Field)

				if fault.Source != (machineconfig.Source{Layer: machineconfig.LayerSystem, Kind: machineconfig.KindTalosStorage, Name: "longhorn"}) {
					t.Errorf("said of %s: %v", fault.Source, fault)
				}

				if fault.Reason != machineconfig.ReasonRenderFailed {
					t.Errorf("reason %s", fault.Reason)
				}
			}

			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("fields (-want +got):\n%s\n%v", diff, err)
			}
		})
	}
}
