// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/container"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"go.yaml.in/yaml/v4"

	"github.com/maesh-dev/ichor/internal/version"
)

func TestMisplaced(t *testing.T) {
	t.Parallel()

	const (
		modernNode    = "---\napiVersion: v1alpha1\nkind: KubeNodeConfig\nlabels: {a: b}\n"
		modernKubelet = "---\napiVersion: v1alpha1\nkind: KubeletConfig\nimage: k\n"
		hostname      = "---\napiVersion: v1alpha1\nkind: HostnameConfig\nhostname: a\n"
		install       = "---\napiVersion: v1alpha1\nkind: UnattendedInstallConfig\ninstaller: {image: i}\n"
		proxy         = "---\napiVersion: v1alpha1\nkind: KubeProxyConfig\nenabled: false\n"
		kubeNetwork   = "---\napiVersion: v1alpha1\nkind: KubeNetworkConfig\ndnsDomain: cluster.local\n"
		flannel       = "---\napiVersion: v1alpha1\nkind: KubeFlannelCNIConfig\nbackendType: vxlan\n"
	)

	cases := map[string]struct {
		contract string
		config   string
		want     map[string]string // what is said, by document and field
	}{
		"each in its place, contract 1.14": {contract: "v1.14", config: "machine: {type: worker, sysctls: {a: b}}\n" + modernKubelet + modernNode},
		"each in its place, contract 1.13": {contract: "v1.13", config: "machine: {kubelet: {image: k}, nodeLabels: {a: b}}\n" + hostname},
		"modern documents alone":           {contract: "v1.14", config: "machine: {type: worker}\n" + modernKubelet},
		"fields of the kubelet": {
			contract: "v1.14",
			config:   "machine: {kubelet: {image: k, extraConfig: {maxPods: 200}, nodeIP: {validSubnets: [10.0.0.0/8]}}}\n" + modernKubelet,
			want: map[string]string{
				"Config /machine/kubelet/image":       "config contract v1.14 has this in a document of its own: write it as KubeletConfig (image)",
				"Config /machine/kubelet/extraConfig": "config contract v1.14 has this in a document of its own: write it as KubeletConfig (config)",
				"Config /machine/kubelet/nodeIP":      "config contract v1.14 has this in a document of its own: write it as KubeNodeConfig (nodeIP)",
			},
		},
		"an empty kubelet": {
			contract: "v1.14", config: "machine: {kubelet: {}}\n" + modernKubelet,
			want: map[string]string{
				"Config /machine/kubelet": "config contract v1.14 has this in a document of its own: write it as KubeletConfig, and KubeNodeConfig for what concerns the Node",
			},
		},
		"labels and taints of the node": {
			contract: "v1.14", config: "machine: {nodeLabels: {a: b}, nodeTaints: {c: NoSchedule}}\n" + modernNode,
			want: map[string]string{
				"Config /machine/nodeLabels": "config contract v1.14 has this in a document of its own: write it as KubeNodeConfig (labels)",
				"Config /machine/nodeTaints": "config contract v1.14 has this in a document of its own: write it as KubeNodeConfig (taints)",
			},
		},
		"install": {
			contract: "v1.14", config: "machine: {install: {disk: /dev/sda}}\n" + install,
			want: map[string]string{
				"Config /machine/install": "config contract v1.14 has this in a document of its own: write it as spec.install of the TalosConfig, or UnattendedInstallConfig (installer, provisioning)",
			},
		},
		"kube-proxy": {
			contract: "v1.14", config: "cluster: {proxy: {disabled: true}}\n" + proxy,
			want: map[string]string{
				"Config /cluster/proxy/disabled": "config contract v1.14 has this in a document of its own: write it as spec.network.kubeProxy of the TalosClusterConfig, or KubeProxyConfig (enabled)",
			},
		},
		"CNI, which two documents refuse": {
			contract: "v1.14", config: "cluster: {network: {cni: {name: none}}}\n" + kubeNetwork + flannel,
			want: map[string]string{
				"Config /cluster/network/cni": "config contract v1.14 has this in a document of its own: write it as spec.network.cni of the TalosClusterConfig, or KubeFlannelCNIConfig",
			},
		},
		"hostname, contract 1.12": {
			contract: "v1.12", config: "machine: {network: {hostname: a}}\n" + hostname,
			want: map[string]string{
				"Config /machine/network/hostname": "config contract v1.12 has this in a document of its own: write it as HostnameConfig (hostname)",
			},
		},
		"encryption of one volume in two places": {
			contract: "v1.13",
			config: "machine: {systemDiskEncryption: {state: {provider: luks2}, ephemeral: {provider: luks2}}}\n" +
				"---\napiVersion: v1alpha1\nkind: VolumeConfig\nname: STATE\nencryption: {provider: luks2}\n" +
				"---\napiVersion: v1alpha1\nkind: VolumeConfig\nname: EPHEMERAL\nprovisioning: {maxSize: 10GiB}\n",
			want: map[string]string{
				"Config /machine/systemDiskEncryption/state": "config contract v1.13 has this in a document of its own: write it as VolumeConfig STATE (encryption)",
			},
		},
		"modern hostname, contract 1.11": {
			contract: "v1.11", config: "machine: {network: {hostname: a}}\n" + hostname,
			want: map[string]string{
				"HostnameConfig ": "config contract v1.11 has this in the legacy document: write it as Config /machine/network/hostname",
			},
		},
		"modern kubelet, contract 1.13": {
			contract: "v1.13", config: "machine: {kubelet: {image: k}}\n" + modernKubelet,
			want: map[string]string{
				"KubeletConfig ": "config contract v1.13 has this in the legacy document: write it as Config /machine/kubelet/image",
			},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			contract, err := version.ParseContract(tc.contract)
			if err != nil {
				t.Fatal(err)
			}

			provider, err := configloader.NewFromBytes([]byte("version: v1alpha1\n" + tc.config))
			if err != nil {
				t.Fatal(err)
			}

			got := map[string]string{}
			for _, found := range misplaced(contract, provider.Documents()) {
				got[found.document.String()+" "+found.field] = found.err.Error()
			}

			want := tc.want
			if want == nil {
				want = map[string]string{}
			}

			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMovedSettings wants every row to be right: its pointer exists in the legacy document, and Talos refuses it beside the kind. And it
// wants a row for every kind that refuses anything beside it, so that a newer machinery cannot bring one unnoticed.
func TestMovedSettings(t *testing.T) {
	t.Parallel()

	samples := map[string]string{
		"/machine/kubelet/clusterDNS": "[10.96.0.10]", "/machine/kubelet/extraArgs": "{v: 4}", "/machine/kubelet/extraConfig": "{maxPods: 200}",
		"/machine/kubelet/credentialProviderConfig": "{kind: CredentialProviderConfig}", "/machine/kubelet/extraMounts": "[{destination: /a, source: /a, type: bind}]",
		"/machine/kubelet/nodeIP": "{validSubnets: [10.0.0.0/8]}", "/machine/kubelet/registerWithFQDN": "true", "/machine/kubelet/skipNodeRegistration": "true",
		"/machine/kubelet/defaultRuntimeSeccompProfileEnabled": "true",
		"/machine/nodeLabels": "{a: b}", "/machine/nodeAnnotations": "{a: b}", "/machine/nodeTaints": "{a: NoSchedule}",
		"/cluster/allowSchedulingOnControlPlanes": "true", "/cluster/allowSchedulingOnMasters": "true",
		"/cluster/apiServer/extraArgs": "{v: 4}", "/cluster/apiServer/env": "{A: b}", "/cluster/apiServer/resources": "{}", "/cluster/apiServer/certSANs": "[a]",
		"/cluster/apiServer/admissionControl": "[{name: PodSecurity, configuration: {a: b}}]", "/cluster/apiServer/auditPolicy": "{kind: Policy}",
		"/cluster/apiServer/authorizationConfig": "[{type: Node, name: node}]", "/cluster/controlPlane/localAPIServerPort": "6444",
		"/cluster/controllerManager/extraArgs": "{v: 4}", "/cluster/controllerManager/env": "{A: b}", "/cluster/controllerManager/resources": "{}",
		"/cluster/scheduler/extraArgs": "{v: 4}", "/cluster/scheduler/env": "{A: b}", "/cluster/scheduler/resources": "{}", "/cluster/scheduler/config": "{a: b}",
		"/machine/controlPlane/controllerManager": "{disabled: true}", "/machine/controlPlane/scheduler": "{disabled: true}",
		"/cluster/proxy/disabled": "true", "/cluster/proxy/extraArgs": "{v: 4}",
		"/cluster/network/cni": "{name: none}", "/cluster/network/podSubnets": "[10.244.0.0/16]", "/cluster/network/serviceSubnets": "[10.96.0.0/12]",
		"/cluster/coreDNS/disabled": "true", "/machine/features/kubePrism": "{enabled: true}", "/machine/features/stableHostname": "true",
		"/machine/features/kubernetesTalosAPIAccess": "{enabled: true}", "/machine/features/hostDNS": "{enabled: true}", "/machine/features/imageCache": "{localEnabled: true}",
		"/machine/network/nameservers": "[10.0.0.1]", "/machine/network/searchDomains": "[a.example]", "/machine/network/disableSearchDomain": "true",
		"/machine/network/kubespan": "{enabled: true}", "/machine/time/disabled": "true", "/machine/time/servers": "[a.example]", "/machine/time/bootTimeout": "1m",
		"/cluster/discovery": "{enabled: true}", "/machine/baseRuntimeSpecOverrides": "{a: b}", "/machine/install": "{disk: /dev/sda}",
		"/machine/systemDiskEncryption/state": "{provider: luks2}", "/machine/systemDiskEncryption/ephemeral": "{provider: luks2}",
	}

	covered := map[string]bool{}

	for _, row := range movedSettings {
		kind, _, _ := strings.Cut(row.kind, "/")
		covered[kind] = true

		sample, ok := samples[row.pointer]
		if !ok {
			sample = "x" // the image of a component, and what else is text

			if slices.ContainsFunc(movedSettings, func(other moved) bool { return strings.HasPrefix(other.pointer, row.pointer+"/") }) {
				sample = "{}"
			}
		}

		legacyDocument := legacyWith(t, row.pointer, sample)

		settings, err := tree(legacyDocument)
		if err != nil {
			t.Fatal(err)
		}

		if !isSet(settings, row.pointer) {
			t.Errorf("%s is not a setting of the legacy document", row.pointer)
		}

		validator, ok := emptyDocument(t, row.kind).(container.V1Alpha1ConflictValidator)
		if !ok || validator.V1Alpha1ConflictValidate(legacyDocument) == nil {
			t.Errorf("%s: not refused beside %s", row.pointer, row.kind)
		}
	}

	for _, kind := range version.Kinds() {
		if kind == v1alpha1.Version {
			continue
		}

		if _, ok := emptyDocument(t, kind).(container.V1Alpha1ConflictValidator); ok && !covered[kind] && protectedKinds[kind] == nil {
			t.Errorf("no row for %s: read its V1Alpha1ConflictValidate and add one for each setting", kind)
		}
	}

	for kind := range maps.Keys(covered) {
		if protectedKinds[kind] != nil {
			t.Errorf("%s is refused before: remove its rows", kind)
		}
	}
}

// emptyDocument is one with the settings that its conflicts depend on.
func emptyDocument(t *testing.T, kind string) config.Document {
	t.Helper()

	kind, name, named := strings.Cut(kind, "/")
	text := "apiVersion: v1alpha1\nkind: " + kind + "\n"

	if named {
		text += "name: " + name + "\nencryption: {provider: luks2}\n"
	}

	if kind == network.ResolverKind {
		text += "hostDNS: {enabled: true}\n"
	}

	provider, err := configloader.NewFromBytes([]byte(text), configloader.WithNoValidation())
	if err != nil {
		t.Fatalf("%s: %v", kind, err)
	}

	return provider.Documents()[0]
}

func legacyWith(t *testing.T, pointer, sample string) *v1alpha1.Config {
	t.Helper()

	var value any
	if err := yaml.Unmarshal([]byte(sample), &value); err != nil {
		t.Fatal(err)
	}

	for _, token := range slices.Backward(strings.Split(pointer[1:], "/")) {
		value = map[string]any{token: value}
	}

	value.(map[string]any)["version"] = "v1alpha1" //nolint:forcetypeassert // made above

	data, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}

	provider, err := configloader.NewFromBytes(data)
	if err != nil {
		t.Fatalf("%s: %v", pointer, err)
	}

	return provider.RawV1Alpha1()
}
