// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"os"
	"strings"
	"testing"

	machinerysecrets "github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"go.yaml.in/yaml/v4"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	sigsyaml "sigs.k8s.io/yaml"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/version"
)

const namespace = "default"

// registryPassword and the other values that no output may show.
const registryPassword = "correct-horse-battery-staple"

func testBundle(t testing.TB) *machinerysecrets.Bundle {
	t.Helper()

	data, err := os.ReadFile("testdata/bundle.yaml")
	if err != nil {
		t.Fatal(err)
	}

	bundle := &machinerysecrets.Bundle{}
	if err = yaml.Unmarshal(data, bundle); err != nil {
		t.Fatal(err)
	}

	return bundle
}

// input is what a worker of a plain cluster is rendered from.
func input(t testing.TB, contract string, controlPlane bool) machineconfig.Input {
	t.Helper()

	parsed, err := version.ParseContract(contract)
	if err != nil {
		t.Fatal(err)
	}

	name, machineLabels := "w1", map[string]string{"pool": "storage", "node.cluster.x-k8s.io/pool": "storage"}
	if controlPlane {
		name, machineLabels = "cp1", map[string]string{clusterv1.MachineControlPlaneLabel: ""}
	}

	credentials, err := machineconfig.ResolveCredentials(nil, nil)
	if err != nil {
		t.Fatal(err)
	}

	return machineconfig.Input{
		Cluster: &clusterv1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: "c1", Namespace: namespace, Labels: map[string]string{"site": "lab"}},
			Spec: clusterv1.ClusterSpec{
				ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "api.example.com", Port: 6443},
				ClusterNetwork: clusterv1.ClusterNetwork{
					Pods:          clusterv1.NetworkRanges{CIDRBlocks: []string{"10.244.0.0/16"}},
					Services:      clusterv1.NetworkRanges{CIDRBlocks: []string{"10.96.0.0/12"}},
					ServiceDomain: "cluster.local",
				},
			},
		},
		Machine: machineconfig.Machine{
			Name: name, Kind: machineconfig.KindMachine, Labels: machineLabels,
			KubernetesVersion: "v1.34.2", InfrastructureName: name + "-infra", ControlPlane: controlPlane,
		},
		Bundle:      testBundle(t),
		Contract:    parsed,
		TalosConfig: &bootstrapv1.TalosConfig{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}},
		Credentials: credentials,
	}
}

// withInstall installs Talos on a disk.
func withInstall(in *machineconfig.Input) {
	in.TalosConfig.Spec.Install = bootstrapv1.InstallSpec{Disk: "/dev/sda", Image: "registry.example.com/installer:v1"}
	in.TalosConfig.Spec.Hostname.Source = bootstrapv1.HostnameSourceMachineName
}

// withRegistries adds a mirror with a password and a certificate authority.
func withRegistries(t testing.TB, in *machineconfig.Input) {
	t.Helper()

	clusterConfig(in).Spec.Registries = []bootstrapv1.Registry{
		{
			Host:      "docker.io",
			Endpoints: []bootstrapv1.RegistryEndpoint{{URL: "https://mirror.example.com/v2/docker.io", OverridePath: new(true)}},
		},
		{
			Host: "mirror.example.com", Username: "puller",
			AuthSecretRef: &corev1.LocalObjectReference{Name: "mirror"},
			TLS:           bootstrapv1.RegistryTLS{CASecretRef: &corev1.LocalObjectReference{Name: "mirror-ca"}},
		},
	}

	resolve(t, in, nil)
}

// secretWith is a user's Secret.
func secretWith(data map[string][]byte) machineconfig.Object {
	return machineconfig.SecretObject(&corev1.Secret{Type: corev1.SecretTypeOpaque, Data: data})
}

// resolve gives the Secrets of the registries, and the one named "roots" with trust roots.
func resolve(t testing.TB, in *machineconfig.Input, roots map[string][]byte) {
	t.Helper()

	credentials, err := machineconfig.ResolveCredentials(in.ClusterConfig, map[string]machineconfig.Object{
		"mirror":    secretWith(map[string][]byte{"password": []byte(registryPassword + "\n")}),
		"mirror-ca": secretWith(map[string][]byte{"ca.crt": in.Bundle.Certs.K8s.Crt}),
		"roots":     secretWith(roots),
	})
	if err != nil {
		t.Fatal(err)
	}

	in.Credentials = credentials
}

// withAllSettings sets everything in TalosConfig and TalosClusterConfig that the contract has a place for.
func withAllSettings(t testing.TB, in *machineconfig.Input) {
	withStorage(in)
	withRegistries(t, in)

	in.TalosConfig.Spec.Platform = bootstrapv1.PlatformMetal
	in.TalosConfig.Spec.Hostname.Source = bootstrapv1.HostnameSourceInfrastructureMachineName
	in.TalosConfig.Spec.Install = bootstrapv1.InstallSpec{Disk: "/dev/nvme0n1", Wipe: new(true), ExtraKernelArgs: []string{"console=ttyS0"}}

	roots := map[string][]byte{"talos.crt": in.Bundle.Certs.OS.Crt, "kubernetes.crt": in.Bundle.Certs.K8s.Crt}

	if in.Contract == version.Newest() {
		in.TalosConfig.Spec.Install = bootstrapv1.InstallSpec{DiskSelector: "disk.size > 100u * GB && !disk.rotational", Wipe: new(true)}
		roots["aggregator.crt"] = in.Bundle.Certs.K8sAggregator.Crt
	}

	in.Machine.Taints = []clusterv1.MachineTaint{{
		Key: "dedicated", Value: "storage", Effect: corev1.TaintEffectNoSchedule, Propagation: clusterv1.MachineTaintPropagationOnInitialization,
	}}

	spec := &clusterConfig(in).Spec
	spec.AcceptedCAsSecretRef = ref("roots")
	spec.CertSANs = []string{"api.example.org", "192.0.2.10"}
	spec.AllowSchedulingOnControlPlanes = bootstrapv1.Enabled
	spec.Network = bootstrapv1.NetworkSpec{
		CNI:       bootstrapv1.CNISpec{Type: bootstrapv1.CNIManifests, URLs: []string{"https://example.com/cni.yaml"}},
		KubeProxy: bootstrapv1.Disabled, KubePrismPort: new(int32(7446)),
	}
	spec.Talos = bootstrapv1.TalosSpec{
		Version: in.Contract.String() + ".0", SchematicID: schematic("a"), CloudProvider: bootstrapv1.CloudProviderExternal,
		Installer: bootstrapv1.InstallerSpec{Registry: "registry.example.com/factory", Platform: "nocloud", SecureBoot: bootstrapv1.Enabled},
		Pools: []bootstrapv1.TalosPool{{
			Name: "storage", MachineSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"pool": "storage"}},
			SchematicID: schematic("b"), Installer: bootstrapv1.InstallerSpec{Platform: "metal"},
		}},
	}

	resolve(t, in, roots)
}

// schematic is an Image Factory ID.
func schematic(digit string) string { return strings.Repeat(digit, 64) }

// withStorage has Longhorn prepared.
func withStorage(in *machineconfig.Input) {
	in.Storages = []bootstrapv1.TalosStorage{{
		ObjectMeta: metav1.ObjectMeta{Name: "longhorn", Namespace: namespace},
		Spec: bootstrapv1.TalosStorageSpec{
			ClusterTargeting: bootstrapv1.ClusterTargeting{ClusterName: "c1"},
			Preset:           bootstrapv1.StoragePresetLonghornV1,
			Volume: bootstrapv1.StorageVolume{
				Type: bootstrapv1.StorageVolumePartition, DiskSelector: `disk.transport == "nvme" && !system_disk`, MinSize: "100GiB",
			},
			DiskTags: []string{"nvme"},
		},
	}}
}

func clusterConfig(in *machineconfig.Input) *bootstrapv1.TalosClusterConfig {
	if in.ClusterConfig == nil {
		in.ClusterConfig = &bootstrapv1.TalosClusterConfig{
			ObjectMeta: metav1.ObjectMeta{Name: "c1", Namespace: namespace},
			Spec:       bootstrapv1.TalosClusterConfigSpec{ClusterTargeting: bootstrapv1.ClusterTargeting{ClusterName: "c1"}},
		}
	}

	return in.ClusterConfig
}

// patch makes a TalosConfigPatch of its YAML; metadata.namespace and a clusterName are added where they are missing.
func patch(t testing.TB, text string) *machineconfig.Patch {
	t.Helper()

	object := &bootstrapv1.TalosConfigPatch{}
	if err := sigsyaml.UnmarshalStrict([]byte(text), object); err != nil {
		t.Fatalf("patch: %v", err)
	}

	if object.Namespace == "" {
		object.Namespace = namespace
	}

	return machineconfig.ParsePatch(object)
}
