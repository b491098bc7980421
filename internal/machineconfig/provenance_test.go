// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/version"
)

// explained is a leaf as a reader sees it.
type explained struct {
	Value, SetBy string
	Covered      []string
}

func explain(t *testing.T, config machineconfig.Config, document, path string) explained {
	t.Helper()

	for _, leaf := range config.Provenance.Leaves {
		if leaf.Document != document || leaf.Path != path {
			continue
		}

		got := explained{Value: leaf.Value.String(), SetBy: leaf.SetBy.String()}
		for _, setting := range leaf.Covered {
			got.Covered = append(got.Covered, setting.Source.String()+" = "+setting.Value.String())
		}

		return got
	}

	t.Fatalf("%s has no leaf %s", document, path)

	return explained{}
}

func layered(t *testing.T, in *machineconfig.Input) {
	t.Helper()

	withStorage(in)

	in.Patches = []*machineconfig.Patch{
		patch(t, "metadata: {name: z-cluster}\nspec: {layer: Cluster, clusterSelector: {matchLabels: {site: lab}}, documents: [{kind: SysctlConfig, sysctlConfig: {params: {vm.swappiness: '1', vm.max_map_count: '1'}}}]}"),
		patch(t, "metadata: {name: a-early}\nspec: {layer: Cluster, priority: -1, clusterName: c1, documents: [{kind: SysctlConfig, sysctlConfig: {params: {vm.max_map_count: '0'}}}]}"),
		patch(t, "metadata: {name: other-cluster}\nspec: {layer: Machine, clusterName: c2, documents: [{kind: SysctlConfig, sysctlConfig: {params: {vm.max_map_count: '666'}}}]}"),
		patch(t, "metadata: {name: control-planes}\nspec: {layer: Role, role: ControlPlane, clusterName: c1, documents: [{kind: SysctlConfig, sysctlConfig: {params: {vm.max_map_count: '666'}}}]}"),
		patch(t, "metadata: {name: workers}\nspec: {layer: Role, role: Worker, clusterName: c1, documents: [{kind: SysctlConfig, sysctlConfig: {params: {vm.max_map_count: '2'}}}]}"),
		patch(t, "metadata: {name: referenced}\nspec: {layer: Machine, documents: [{kind: SysctlConfig, sysctlConfig: {params: {vm.max_map_count: '4'}}}]}"),
		patch(t, "metadata: {name: pool}\nspec: {layer: Pool, clusterName: c1, machineSelector: {matchLabels: {pool: storage}}, documents: [{kind: SysctlConfig, sysctlConfig: {params: {vm.max_map_count: '3'}}}, {kind: UserVolumeConfig, userVolumeConfig: {name: longhorn, provisioning: {maxSize: 75%}}}]}"),
		patch(t, "metadata: {name: same}\nspec: {layer: Machine, clusterName: c1, documents: [{kind: SysctlConfig, sysctlConfig: {params: {vm.swappiness: '1'}}}], deletions: [{kind: NetworkRuleConfig, name: none}]}"),
	}
	in.TalosConfig.Spec.PatchRefs = []bootstrapv1.PatchReference{{Name: "referenced"}}
	in.Provenance = true
}

func TestProvenance(t *testing.T) {
	t.Parallel()

	in := input(t, "v1.14", false)
	layered(t, &in)

	config, err := machineconfig.Render(in)
	if err != nil {
		t.Fatal(err)
	}

	want := explained{
		Value: "4",
		SetBy: "Pool layer: TalosConfigPatch referenced spec.documents[0]",
		Covered: []string{
			"Pool layer: TalosConfigPatch pool spec.documents[0] = 3",
			"Role layer: TalosConfigPatch workers spec.documents[0] = 2",
			"Cluster layer: TalosConfigPatch z-cluster spec.documents[0] = 1",
			"Cluster layer: TalosConfigPatch a-early spec.documents[0] = 0",
		},
	}
	if diff := cmp.Diff(want, explain(t, config, "SysctlConfig", "/params/vm.max_map_count")); diff != "" {
		t.Errorf("vm.max_map_count differs (-want +got):\n%s", diff)
	}

	want = explained{
		Value:   "75%",
		SetBy:   "Pool layer: TalosConfigPatch pool spec.documents[1]",
		Covered: []string{"System layer: TalosStorage longhorn = 100%"},
	}
	if diff := cmp.Diff(want, explain(t, config, "UserVolumeConfig/longhorn", "/provisioning/maxSize")); diff != "" {
		t.Errorf("maxSize differs (-want +got):\n%s", diff)
	}

	want = explained{Value: `disk.transport == "nvme" && !system_disk`, SetBy: "System layer: TalosStorage longhorn"}
	if diff := cmp.Diff(want, explain(t, config, "UserVolumeConfig/longhorn", "/provisioning/diskSelector/match")); diff != "" {
		t.Errorf("diskSelector differs (-want +got):\n%s", diff)
	}

	wantIneffective := []machineconfig.Source{
		{Layer: machineconfig.LayerMachine, Kind: machineconfig.KindTalosConfigPatch, Name: "same", Path: "spec.documents[0]"},
		{Layer: machineconfig.LayerMachine, Kind: machineconfig.KindTalosConfigPatch, Name: "same", Path: "spec.deletions[0]"},
	}
	if diff := cmp.Diff(wantIneffective, config.Provenance.Ineffective); diff != "" {
		t.Errorf("ineffective sources differ (-want +got):\n%s", diff)
	}
}

// TestOrigins asks where values of the base come from.
func TestOrigins(t *testing.T) {
	t.Parallel()

	const bundle = "Base layer: Secret c1-talos"

	cases := map[string]map[[2]string]string{
		"v1.13": {
			{"Config", "/machine/type"}:                  "Base layer: Machine cp1 metadata.labels",
			{"Config", "/machine/token"}:                 bundle,
			{"Config", "/machine/kubelet/image"}:         "Base layer: Machine cp1 spec.version",
			{"Config", "/cluster/ca/key"}:                bundle,
			{"Config", "/cluster/controlPlane/endpoint"}: "Base layer: Cluster c1 spec.controlPlaneEndpoint",
			{"Config", "/cluster/network/podSubnets/0"}:  "Base layer: Cluster c1 spec.clusterNetwork",
			{"Config", "/debug"}:                         "Base layer: Talos v1.13 defaults",
		},
		"v1.14": {
			{"KubeAPIServerConfig", "/image"}:             "Base layer: Machine cp1 spec.version",
			{"KubeClusterConfig", "/clusterName"}:         "Base layer: Cluster c1 metadata.name",
			{"DiscoveryIdentityConfig", "/clusterSecret"}: bundle,
			{"KubeletConfig", "/kind"}:                    "Base layer: Talos v1.14 defaults",
			{"FilesystemTrimConfig", "/interval"}:         "Base layer: Talos v1.14 defaults",
		},
	}

	for contract, leaves := range cases {
		in := input(t, contract, true)
		in.Provenance = true

		config, err := machineconfig.Render(in)
		if err != nil {
			t.Fatal(err)
		}

		for at, want := range leaves {
			if got := explain(t, config, at[0], at[1]).SetBy; got != want {
				t.Errorf("%s: %s %s is set by %q, want %q", contract, at[0], at[1], got, want)
			}
		}
	}
}

// TestProvenanceIsComplete asks for every leaf of every contract: each has a source, and the record changes no byte.
func TestProvenanceIsComplete(t *testing.T) {
	t.Parallel()

	for _, contract := range version.Supported() {
		in := input(t, contract.String(), true)
		withInstall(&in)
		withRegistries(t, &in)
		withStorage(&in)

		without, err := machineconfig.Render(in)
		if err != nil {
			t.Fatal(err)
		}

		in.Provenance = true

		with, err := machineconfig.Render(in)
		if err != nil {
			t.Fatal(err)
		}

		if !bytes.Equal(without.Bytes, with.Bytes) {
			t.Errorf("%s: the config differs with provenance", contract)
		}

		if len(with.Provenance.Leaves) < 50 {
			t.Errorf("%s: only %d leaves", contract, len(with.Provenance.Leaves))
		}

		for _, leaf := range with.Provenance.Leaves {
			if leaf.SetBy.Kind == "" || leaf.SetBy.Name == "" || leaf.SetBy.Layer == "" {
				t.Errorf("%s: %s %s has no source: %+v", contract, leaf.Document, leaf.Path, leaf.SetBy)
			}
		}
	}
}
