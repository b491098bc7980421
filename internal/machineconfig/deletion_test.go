// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/maesh-dev/ichor/internal/machineconfig"
)

// TestMistypedDeletions: none of them finds anything, which without a word would be taken for done. No machine has the documents.
func TestMistypedDeletions(t *testing.T) {
	t.Parallel()

	in := input(t, "v1.14", false)
	in.Patches = append(in.Patches, patch(t, `
metadata: {name: p}
spec:
  layer: Cluster
  clusterName: c1
  deletions:
  - {kind: UserVolumeConfig, name: x, path: /provisioning}
  - {kind: KubeFlanelCNIConfig}
  - {kind: HostnameConfig, name: foo}
  - {kind: VolumeConfig}
  - {kind: UserVolumeConfig, name: x, path: /provisionning}
  - {kind: UserVolumeConfig, name: x}
`))

	const at = "Cluster layer: TalosConfigPatch p "

	want := []string{
		at + "spec.deletions[1] | KubeFlanelCNIConfig |  | RenderFailed",
		at + "spec.deletions[2] | HostnameConfig/foo |  | RenderFailed",
		at + "spec.deletions[3] | VolumeConfig |  | RenderFailed",
		at + "spec.deletions[4] | UserVolumeConfig/x | /provisionning | RenderFailed",
	}

	_, rendering := machineconfig.Render(in)

	for name, err := range map[string]error{"the patch": in.Patches[0].Err(), "the render": rendering} {
		var got []string
		for _, fault := range machineconfig.Errors(err) {
			got = append(got, fmt.Sprintf("%s | %s | %s | %s", fault.Source, fault.Document, fault.Field, fault.Reason))
		}

		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
