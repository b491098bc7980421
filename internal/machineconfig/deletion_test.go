// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"fmt"
	"strings"
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

// TestForbiddenDeletions: what the base has and no patch may remove is refused with the patch already.
func TestForbiddenDeletions(t *testing.T) {
	t.Parallel()

	const (
		bundle = "belongs to the cluster's secrets bundle"
		change = "change it instead of removing it"
	)

	for deletion, want := range map[string]string{
		"{kind: DiscoveryIdentityConfig}":                       bundle,
		"{kind: DiscoveryIdentityConfig, path: /clusterID}":     bundle,
		"{kind: KubeServiceAccountConfig}":                      bundle,
		"{kind: KubeClusterConfig}":                             "comes from the Cluster and the Machine",
		"{kind: KubeAuthenticationConfig}":                      change,
		"{kind: KubeletConfig}":                                 change,
		"{kind: KubeAuthorizerConfig, name: rbac}":              change,
		"{kind: KubeAuthorizerConfig, name: node}":              change,
		"{kind: Config, path: /machine/token}":                  bundle,
		"{kind: Config, path: /machine/ca/key}":                 bundle,
		"{kind: Config, path: /cluster/etcd/ca}":                bundle,
		"{kind: Config, path: /machine}":                        "has /machine/type, which no patch may remove",
		"{kind: Config}":                                        "the legacy document cannot be deleted as a whole",
		"{kind: KubeAuthorizerConfig, name: hook}":              "",
		"{kind: KubeletConfig, path: /config/maxPods}":          "",
		"{kind: Config, path: /machine/sysctls}":                "",
		"{kind: Config, path: /machine/kubelet}":                "",
		"{kind: KubeAdmissionControlConfig, name: PodSecurity}": "",
	} {
		p := patch(t, "metadata: {name: p}\nspec: {layer: Cluster, clusterName: c1, deletions: ["+deletion+"]}")

		switch err := p.Check(); {
		case want == "" && err != nil:
			t.Errorf("%s: got %v", deletion, err)
		case want != "" && (err == nil || !strings.HasPrefix(err.Error(), "Cluster layer: TalosConfigPatch p spec.deletions[0]: ") || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: got %v, want %q", deletion, err, want)
		}
	}
}
