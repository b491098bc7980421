// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
)

// badObjects are mistakes outside patches.
var badObjects = map[string]badInput{
	"Kubernetes too new for Talos": {
		change: func(t *testing.T, in *machineconfig.Input) {
			talosVersion("v1.14.1")(t, in)
			in.Machine.KubernetesVersion = "v1.39.0"
		},
		at: "Base layer: Machine w1 spec.version | | ",
	},
	"Kubernetes too old for Talos": {
		change: func(t *testing.T, in *machineconfig.Input) {
			talosVersion("v1.14.1")(t, in)
			in.Machine.KubernetesVersion = "v1.28.3"
		},
		at: "Base layer: Machine w1 spec.version | | ",
	},
	"Kubernetes version without a patch number": {
		change: change(func(in *machineconfig.Input) { in.Machine.KubernetesVersion = "v1.34" }),
		at:     "Base layer: Machine w1 spec.version | | ",
	},
	"no Kubernetes version": {
		change: change(func(in *machineconfig.Input) { in.Machine.KubernetesVersion = "" }),
		at:     "Base layer: Machine w1 spec.version | | ",
	},
	"no control-plane endpoint": {
		change: change(func(in *machineconfig.Input) { in.Cluster.Spec.ControlPlaneEndpoint.Host = "" }),
		at:     "Base layer: Cluster c1 spec.controlPlaneEndpoint | | ",
	},
	"pod network is an address": {
		change: change(func(in *machineconfig.Input) { in.Cluster.Spec.ClusterNetwork.Pods.CIDRBlocks = []string{"10.244.0.0"} }),
		at:     "Base layer: Cluster c1 spec.clusterNetwork.pods.cidrBlocks[0] | | ",
	},
	"two service networks of one family": {
		change: change(func(in *machineconfig.Input) {
			in.Cluster.Spec.ClusterNetwork.Services.CIDRBlocks = []string{"10.96.0.0/12", "10.112.0.0/12"}
		}),
		at: "Base layer: Cluster c1 spec.clusterNetwork.services.cidrBlocks[1] | | ",
	},
	"service network with host bits": {
		change: change(func(in *machineconfig.Input) {
			in.Cluster.Spec.ClusterNetwork.Services.CIDRBlocks = []string{"10.96.0.1/12"}
		}),
		at: "Base layer: Cluster c1 spec.clusterNetwork.services.cidrBlocks[0] | | ",
	},
	"Talos version that nobody knows": {
		change: talosVersion("v1.99.0"),
		at:     "System layer: TalosClusterConfig c1 spec.talos | | version",
	},
	"contract newer than the Talos that boots": {
		change: talosVersion("v1.13.4"),
		at:     "System layer: TalosClusterConfig c1 spec.talos | | version",
	},
	"pool selector with an unknown operator": {
		change: change(func(in *machineconfig.Input) {
			clusterConfig(in).Spec.Talos.Pools = []bootstrapv1.TalosPool{{
				Name: "gpu", MachineSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "gpu", Operator: "Is"}}},
			}}
		}),
		at: "System layer: TalosClusterConfig c1 spec.talos.pools[gpu] | | machineSelector",
	},
	"install without a platform": {
		change: func(t *testing.T, in *machineconfig.Input) {
			talosVersion("v1.14.1")(t, in)
			in.TalosConfig.Spec.Install.Disk = "/dev/sda"
		},
		at: "System layer: TalosConfig w1 spec.install | | image",
	},
	"install of an unknown Talos": {
		change: change(func(in *machineconfig.Input) { in.TalosConfig.Spec.Install.Disk = "/dev/sda" }),
		at:     "System layer: TalosConfig w1 spec.install | | image",
	},
	"kernel arguments with contract 1.14": {
		change: change(func(in *machineconfig.Input) {
			withInstall(in)
			in.TalosConfig.Spec.Install.ExtraKernelArgs = []string{"console=ttyS0"}
		}),
		at: "System layer: TalosConfig w1 spec.install | | extraKernelArgs",
	},
	"disk expression with contract 1.13": {
		contract: "v1.13",
		change: change(func(in *machineconfig.Input) {
			withInstall(in)
			in.TalosConfig.Spec.Install.Disk, in.TalosConfig.Spec.Install.DiskSelector = "", `disk.transport == "nvme"`
		}),
		at: "System layer: TalosConfig w1 spec.install | | diskSelector",
	},
	"disk expression that is none": {
		change: change(func(in *machineconfig.Input) {
			withInstall(in)
			in.TalosConfig.Spec.Install.Disk, in.TalosConfig.Spec.Install.DiskSelector = "", `disk.size >`
		}),
		at: "System layer: TalosConfig w1 spec.install | | diskSelector",
	},
	"disk expression over an unknown field": {
		change: change(func(in *machineconfig.Input) {
			withInstall(in)
			in.TalosConfig.Spec.Install.Disk, in.TalosConfig.Spec.Install.DiskSelector = "", `disk.vendor == "x"`
		}),
		at: "System layer: TalosConfig w1 spec.install | | diskSelector",
	},
	"metal without an install disk, contract 1.13": {
		contract: "v1.13",
		change:   change(func(in *machineconfig.Input) { in.TalosConfig.Spec.Platform = bootstrapv1.PlatformMetal }),
		at:       "System layer: TalosConfig w1 spec.install | Config | /machine/install/disk",
	},
	"machine name for a pool": {
		change: change(func(in *machineconfig.Input) {
			in.Machine.Kind = machineconfig.KindMachinePool
			in.TalosConfig.Spec.Hostname.Source = bootstrapv1.HostnameSourceMachineName
		}),
		at: "System layer: TalosConfig w1 spec.hostname | | source",
	},
	"named after infrastructure that is not there": {
		change: change(func(in *machineconfig.Input) {
			in.Machine.InfrastructureName = ""
			in.TalosConfig.Spec.Hostname.Source = bootstrapv1.HostnameSourceInfrastructureMachineName
		}),
		at: "System layer: TalosConfig w1 spec.hostname | | source",
	},
	"password in a mirror's URL": {
		change: func(t *testing.T, in *machineconfig.Input) {
			withRegistries(t, in)
			clusterConfig(in).Spec.Registries[0].Endpoints[0].URL = "https://puller:" + registryPassword + "@mirror.example.com"
		},
		at: "System layer: TalosClusterConfig c1 spec.registries[docker.io] | | endpoints[0].url",
	},
	"mirror without a scheme": {
		change: func(t *testing.T, in *machineconfig.Input) {
			withRegistries(t, in)
			clusterConfig(in).Spec.Registries[0].Endpoints[0].URL = "mirror.example.com:5000"
		},
		at: "System layer: TalosClusterConfig c1 spec.registries[docker.io] | | endpoints[0].url",
	},
	"CNI manifest that is a path": {
		change: change(func(in *machineconfig.Input) {
			clusterConfig(in).Spec.Network.CNI = bootstrapv1.CNISpec{Type: bootstrapv1.CNIManifests, URLs: []string{"./cilium.yaml"}}
		}),
		at: "System layer: TalosClusterConfig c1 spec.network.cni | | urls[0]",
	},
	"reference to a patch that does not exist": {
		change: change(func(in *machineconfig.Input) {
			in.TalosConfig.Spec.PatchRefs = []bootstrapv1.PatchReference{{Name: "gpu"}}
		}),
		at: "Pool layer: TalosConfig w1 spec.patchRefs[0] | | ",
	},
	"reference to a patch of the other role": {
		change: func(t *testing.T, in *machineconfig.Input) {
			in.Patches = append(in.Patches, patch(t, "metadata: {name: cp}\nspec: {layer: Role, role: ControlPlane, documents: [{kind: SysctlConfig, sysctlConfig: {params: {a.b: c}}}]}"))
			in.TalosConfig.Spec.PatchRefs = []bootstrapv1.PatchReference{{Name: "cp"}}
		},
		at: "Pool layer: TalosConfig w1 spec.patchRefs[0] | | ",
	},
	"machine selector with a wrong value": {
		change: func(t *testing.T, in *machineconfig.Input) {
			in.Patches = append(in.Patches, patch(t, "metadata: {name: p}\nspec: {layer: Pool, clusterName: c1, machineSelector: {matchExpressions: [{key: pool, operator: In}]}, documents: [{kind: SysctlConfig, sysctlConfig: {params: {a.b: c}}}]}"))
		},
		at: "Pool layer: TalosConfigPatch p spec | | ",
	},
	"storage tag that Longhorn would ignore": {
		change: change(func(in *machineconfig.Input) { withStorage(in); in.Storages[0].Spec.DiskTags = []string{"nvme fast"} }),
		at:     "System layer: TalosStorage longhorn | | spec.diskTags[0]",
	},
	"aggregator certificate with contract 1.13": {
		contract: "v1.13", controlPlane: true,
		change: func(t *testing.T, in *machineconfig.Input) {
			clusterConfig(in).Spec.AcceptedCAsSecretRef = &corev1.LocalObjectReference{Name: "roots"}

			credentials, err := machineconfig.ResolveCredentials(in.ClusterConfig, map[string]machineconfig.Object{"roots": secretWith(map[string][]byte{"aggregator.crt": in.Bundle.Certs.K8sAggregator.Crt})})
			if err != nil {
				t.Fatal(err)
			}

			in.Credentials = credentials
		},
		at: "Base layer: TalosClusterConfig c1 spec.acceptedCAsSecretRef | | aggregator.crt",
	},
}
