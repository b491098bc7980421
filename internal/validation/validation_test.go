// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/validation"
)

const takenFromNowhere = "holds secrets of a cluster or a machine's bootstrap data, which nothing may be taken from: " +
	"put the value into a Secret of its own and refer to that"

// look reads an object of the kind and looks at it.
func look(t *testing.T, kind, spec string) validation.Report {
	t.Helper()

	read := func(into any) {
		if err := yaml.UnmarshalStrict([]byte("metadata: {name: x, namespace: default}\nspec: "+spec), into); err != nil {
			t.Fatal(err)
		}
	}

	switch kind {
	case "TalosConfig":
		object := &bootstrapv1.TalosConfig{}
		read(object)

		return validation.TalosConfig(object)
	case "TalosConfigTemplate":
		object := &bootstrapv1.TalosConfigTemplate{}
		read(object)

		return validation.TalosConfigTemplate(object)
	case "TalosClusterConfig":
		object := &bootstrapv1.TalosClusterConfig{}
		read(object)

		return validation.TalosClusterConfig(object)
	case "TalosConfigPatch":
		object := &bootstrapv1.TalosConfigPatch{}
		read(object)

		return validation.TalosConfigPatch(object)
	case "TalosStorage":
		object := &bootstrapv1.TalosStorage{}
		read(object)

		return validation.TalosStorage(object)
	default:
		t.Fatalf("no kind %s", kind)

		return validation.Report{}
	}
}

// Several faults are told at once, each where it is, in order. The whole texts are those that the API server shows.
func TestFaults(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		kind, spec string
		want       []string
	}{
		"all at once": {
			"TalosClusterConfig",
			`{clusterName: A_b, clusterSelector: {matchExpressions: [{key: a, operator: Is}]}, certSANs: ["a b"],
			  talos: {version: v1.99.0, configContract: v1.99, pools: [{name: p, version: v1.11.0, machineSelector: {matchLabels: {"a b": c}}}]},
			  network: {cni: {type: Manifests, urls: ["./a.yaml", "https://u:pw@host/x"]}}, talosAPI: {cidrs: [10.0.0.0], endpoints: ["a:b:c"]}}`,
			[]string{
				`spec.certSANs[0]: Invalid value: must be an address or a DNS name, for example "talos.example.com"`,
				`spec.clusterName: Invalid value: no Cluster can have this name: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
				`spec.clusterSelector.matchExpressions[0].operator: Invalid value: not a valid selector operator`,
				`spec.network.cni.urls[0]: Invalid value: not a URL of the form https://host/path without credentials`,
				`spec.network.cni.urls[1]: Invalid value: not a URL of the form https://host/path without credentials`,
				`spec.talos.configContract: Invalid value: config contract "v1.99": not known to this release; must be from v1.0 to v1.14`,
				`spec.talos.pools[p].machineSelector.matchLabels: Invalid value: name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
				`spec.talos.pools[p].version: Invalid value: talos version "v1.11.0": older than v1.12.0, the oldest that nodes may run`,
				`spec.talos.version: Invalid value: talos version "v1.99.0": not known to this release, which knows Talos v1.12 to v1.14`,
				`spec.talosAPI.cidrs[0]: Invalid value: must be a network, for example "10.0.0.0/8" or "fd00::/8"`,
				`spec.talosAPI.endpoints[0]: Invalid value: must be a host or host:port, for example "lb.example.com:50000"`,
			},
		},
		"the cluster's own Secrets, in a cluster config": {
			"TalosClusterConfig", "{clusterName: a, secretsRef: {name: mine}, acceptedCAsSecretRef: {name: a-ca}, registries: [{host: r.example.com, " +
				"authSecretRef: {name: mine}, tls: {caSecretRef: {name: corp-ca}, clientCertificateSecretRef: {name: a-etcd}}}]}",
			[]string{
				`spec.acceptedCAsSecretRef: Invalid value: secret "a-ca" ` + takenFromNowhere,
				`spec.registries[r.example.com].authSecretRef: Invalid value: secret "mine" ` + takenFromNowhere,
				`spec.registries[r.example.com].tls.clientCertificateSecretRef: Invalid value: secret "a-etcd" ` + takenFromNowhere,
			},
		},
		"the cluster's own Secret, in a patch": {
			"TalosConfigPatch", "{layer: Cluster, clusterName: a, documents: [{kind: Config, config: {machine: {files: [" +
				"{path: /var/a, op: create, permissions: 420, contentFrom: {secretKeyRef: {name: a-talosconfig, key: talosconfig}}}, " +
				"{path: /var/b, op: create, permissions: 420, contentFrom: {configMapKeyRef: {name: a-talosconfig, key: k}}}, " +
				"{path: /var/c, op: create, permissions: 420, contentFrom: {secretKeyRef: {name: corp-ca, key: k}}}]}}}]}",
			[]string{`spec.documents[0].config.machine.files[0].contentFrom: Invalid value: secret "a-talosconfig" ` + takenFromNowhere},
		},
		"contract newer than Talos, of the cluster and of a pool": {
			"TalosClusterConfig", "{clusterName: a, talos: {version: v1.13.4, configContract: v1.14, pools: [{name: old, version: v1.12.1, machineSelector: {}}]}}",
			[]string{
				`spec.talos.configContract: Invalid value: config contract v1.14: Talos v1.13.4 cannot read it; set a contract of at most v1.13, or boot Talos v1.14 or newer`,
				`spec.talos.pools[old].version: Invalid value: config contract v1.14: Talos v1.12.1 cannot read it; set a contract of at most v1.12, or boot Talos v1.14 or newer`,
			},
		},
		"registries": {
			"TalosClusterConfig",
			`{clusterName: a, registries: [{host: "r:99999", authSecretRef: {name: A}}, {host: ghcr.io, endpoints: [{url: "https://u:pw@m"}, {url: "m"}], tls: {caSecretRef: {name: B}, clientCertificateSecretRef: {name: C}}}],
			  talos: {installer: {registry: "r:0/x"}}, secretsRef: {name: D}, acceptedCAsSecretRef: {name: E}}`,
			[]string{
				"spec.acceptedCAsSecretRef.name: Invalid value: no Secret can have this name",
				"spec.registries[ghcr.io].endpoints[0].url: Invalid value: credentials in a URL would be stored in plain text: give the mirror host its own entry with authSecretRef",
				"spec.registries[ghcr.io].endpoints[1].url: Invalid value: not a URL of the form https://host[:port][/path]",
				"spec.registries[ghcr.io].tls.caSecretRef.name: Invalid value: no Secret can have this name",
				"spec.registries[ghcr.io].tls.clientCertificateSecretRef.name: Invalid value: no Secret can have this name",
				"spec.registries[r:99999].authSecretRef.name: Invalid value: no Secret can have this name",
				"spec.registries[r:99999].host: Invalid value: must be a host name or host:port, with a port of at most 65535",
				"spec.secretsRef.name: Invalid value: no Secret can have this name",
				"spec.talos.installer.registry: Invalid value: must begin with a host name or host:port, with a port of at most 65535",
			},
		},
		"hosts that are fine": {
			"TalosClusterConfig",
			`{clusterName: a, certSANs: ["*.example.com", 10.0.0.1, "fd00::1", rack_1.example.com, example.com.], registries: [{host: "*"}, {host: "[fd00::1]:5000"}, {host: "[fd00::2]"}, {host: "localhost:5000"}],
			  talosAPI: {endpoints: ["lb", "lb:50000", "fd00::1", "[fd00::1]:50000", "10.0.0.1"]}}`,
			nil,
		},
		"install of a TalosConfig": {
			"TalosConfig", "{configContract: v1.13, install: {diskSelector: 'disk.sise > 1u'}, patchRefs: [{name: A}]}",
			[]string{
				"spec.install.diskSelector: Invalid value: not an expression over a disk: ERROR: <input>:1:5: undefined field 'sise'\n | disk.sise > 1u\n | ....^",
				"spec.install.diskSelector: Invalid value: config contract v1.13 knows no disk expressions: set disk instead",
				"spec.patchRefs[A].name: Invalid value: no TalosConfigPatch can have this name",
			},
		},
		"template": {
			"TalosConfigTemplate", "{template: {metadata: {labels: {'a b': c}}, spec: {configContract: v1.14, install: {disk: /dev/sda, extraKernelArgs: [a]}}}}",
			[]string{
				"spec.template.metadata.labels: Invalid value: name part must consist of",
				"spec.template.spec.install.extraKernelArgs: Invalid value: config contract v1.14 has no place for kernel arguments",
			},
		},
		"documents and deletions": {
			"TalosConfigPatch",
			`{layer: Role, role: Worker, clusterName: a,
			  documents: [
			    {kind: KubeNodeConfig, kubeNodeConfig: {labels: {node-role.kubernetes.io/worker: "", "my label": x, example.com/ok: y}, annotations: {"a b": c}, taints: {dedicated: "x:Never"}}},
			    {kind: UserVolumeConfig, userVolumeConfig: {name: data, provisioning: {diskSelector: {match: "disk.transprt == 1"}}}},
			    {kind: Config, config: {cluster: {etcd: {extraArgs: {data-dir: [/x]}}}, machine: {files: [{content: x, path: /opt/x, permissions: 420, op: create}]}}},
			    {kind: HostnameConfig, hostnameConfig: {hostname: worker 1}},
			    {kind: HTTPProbeConfig, httpProbeConfig: {name: p, url: "https://u:pw@host/"}}],
			  deletions: [{kind: KubeAuthorizerConfig}, {kind: Config, path: /machine/tokn}, {kind: SysctlsConfig}, {kind: Config, path: /machine/token}]}`,
			[]string{
				"spec.deletions[0]: Invalid value: name is missing: say which KubeAuthorizerConfig is meant",
				"spec.deletions[1]: Invalid value: /machine/tokn: unknown field; did you mean \"token\"?",
				"spec.deletions[2]: Invalid value: unknown kind",
				"spec.deletions[3]: Invalid value: /machine/token: belongs to the cluster's secrets bundle",
				"spec.documents[0].kubeNodeConfig.annotations[a b]: Invalid value: ",
				"spec.documents[0].kubeNodeConfig.labels[my label]: Invalid value: ",
				"spec.documents[0].kubeNodeConfig.labels[node-role.kubernetes.io/worker]: Invalid value: a worker's kubelet may not set this label",
				"spec.documents[0].kubeNodeConfig.taints.dedicated: Invalid value: ",
				"spec.documents[1].userVolumeConfig.provisioning.diskSelector.match: Invalid value: UserVolumeConfig/data: ",
				"spec.documents[2].config.cluster.etcd.extraArgs[data-dir]: Invalid value: set by Talos itself",
				`spec.documents[2].config.machine.files[0].path: Invalid value: "/opt/x" is not under /var`,
				"spec.documents[3].hostnameConfig.hostname: Invalid value: not a hostname",
				"spec.documents[4].httpProbeConfig.url: Invalid value: HTTPProbeConfig/p: has a user or password in a URL",
			},
		},
		"sparse documents, which Talos' own validation refuses": {
			"TalosConfigPatch",
			`{layer: Cluster, clusterName: a, documents: [
			    {kind: KubeletConfig, kubeletConfig: {extraArgs: {v: ["2"]}}},
			    {kind: UserVolumeConfig, userVolumeConfig: {name: data, provisioning: {maxSize: 50%}}},
			    {kind: UnattendedInstallConfig, unattendedInstallConfig: {installer: {image: "registry.example.com/installer:v1"}}}]}`,
			nil,
		},
		"references to what is not read": {
			"TalosConfigPatch",
			`{layer: Cluster, clusterName: a, documents: [
			    {kind: WireguardConfig, wireguardConfig: {name: wg0, privateKeySecretRef: {name: s, key: k}, peers: [{publicKey: "a", presharedKeySecretRef: {name: s, key: k}}]}},
			    {kind: KubeStaticPodConfig, kubeStaticPodConfig: {name: p, podFrom: {configMapKeyRef: {name: pods, key: p}}}},
			    {kind: Config, config: {machine: {env: {A: b}, envFrom: {TOKEN: {secretKeyRef: {name: s, key: k}}}}}}]}`,
			nil,
		},
		"what is wrong beside references": {
			"TalosConfigPatch",
			`{layer: Cluster, clusterName: a, documents: [
			    {kind: Config, config: {machine: {nodeLabels: {"my label": x}, files: [{op: create, path: /opt/x, permissions: 420, contentFrom: {secretKeyRef: {name: s, key: k}}}]}}}]}`,
			[]string{
				`spec.documents[0].config.machine.files[0].path: Invalid value: "/opt/x" is not under /var`,
				"spec.documents[0].config.machine.nodeLabels[my label]: Invalid value: ",
			},
		},
		"a field and its reference": {
			"TalosConfigPatch",
			`{layer: Cluster, clusterName: a, documents: [
			    {kind: Config, config: {machine: {files: [{op: create, path: /var/x, permissions: 420, content: x, contentFrom: {secretKeyRef: {name: s, key: k}}}]}}}]}`,
			[]string{"spec.documents[0].config.machine.files[0].contentFrom: Invalid value: "},
		},
		"control-plane documents of a worker's patch": {
			"TalosConfigPatch", "{layer: Role, role: Worker, clusterName: a, documents: [{kind: KubeAPIServerConfig, kubeAPIServerConfig: {certExtraSANs: [a.example.com]}}]}",
			[]string{"spec.documents[0]: Invalid value: allowed on control-plane machines only"},
		},
		"storage": {
			"TalosStorage",
			"{clusterName: a, preset: longhorn-v1, machineSelector: {matchExpressions: [{key: a, operator: In}]}, diskTags: ['nvme fast'], volume: {type: Partition, diskSelector: 'disk.sise', minSize: 20GiB, maxSize: 0GiB}, storageReserved: '-1'}",
			[]string{
				"spec.diskTags[0]: Invalid value: ",
				"spec.machineSelector.matchExpressions[0].values: Invalid value: must be specified when `operator` is 'In' or 'NotIn'",
				"spec.storageReserved: Invalid value: -1 must be a whole number of bytes",
				"spec.volume.diskSelector: Invalid value: ERROR: <input>:1:5: undefined field 'sise'",
			},
		},
		"raw storage on a directory": {
			"TalosStorage", "{clusterName: a, preset: longhorn-v2}",
			[]string{"spec.volume.type: Invalid value: must be Partition with preset longhorn-v2"},
		},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var got []string

			report := look(t, test.kind, test.spec)
			for i, fault := range report.Faults {
				text := fault.Error().Error()
				// A text that ends early in the table is a beginning.
				if i < len(test.want) && strings.HasPrefix(text, test.want[i]) {
					text = test.want[i]
				}

				got = append(got, text)
			}

			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}

			if strings.Contains(strings.Join(got, "\n"), "u:pw") {
				t.Error("a fault shows the password")
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		kind, spec string
		want       []string
	}{
		"nothing": {"TalosClusterConfig", "{clusterName: a}", []string{}},
		"a pool's Talos is older than the format that the cluster will get": {
			"TalosClusterConfig", "{clusterName: a, talos: {version: v1.14.1, pools: [{name: old, version: v1.13.4, machineSelector: {}}]}}",
			[]string{"spec.talos.pools[old].version: Talos v1.13.4 cannot read config contract v1.14"},
		},
		"registries": {
			"TalosClusterConfig", "{clusterName: a, registries: [{host: docker.io, authSecretRef: {name: s}, endpoints: [{url: 'https://m.example.com'}], tls: {insecureSkipVerify: true}}]}",
			[]string{
				"spec.registries[docker.io].tls.insecureSkipVerify: whoever is between",
				"System layer: TalosClusterConfig x spec.registries[docker.io]: endpoints[0].url: host m.example.com has no entry of its own",
				"System layer: TalosClusterConfig x spec.registries[docker.io]: credentials belong to the host that is contacted",
			},
		},
		"install where nothing is installed": {
			"TalosConfig", "{platform: Cloud, install: {disk: /dev/sda}}",
			[]string{"spec.platform: is Cloud, where Talos is not installed"},
		},
		"a label that workers may not have, for all machines": {
			"TalosConfigPatch", "{layer: Cluster, clusterName: a, documents: [{kind: KubeNodeConfig, kubeNodeConfig: {labels: {node-role.kubernetes.io/worker: ''}}}]}",
			[]string{"Cluster layer: TalosConfigPatch x spec.documents[0]: KubeNodeConfig: /labels/node-role.kubernetes.io~1worker: the patch selects workers too, which then get no config"},
		},
		"the same for machines that a selector chooses": {
			"TalosConfigPatch", "{layer: Pool, clusterName: a, machineSelector: {matchLabels: {pool: cp}}, documents: [{kind: KubeNodeConfig, kubeNodeConfig: {labels: {node-role.kubernetes.io/worker: ''}}}]}",
			[]string{},
		},
		"a variable that says that it is a secret": {
			"TalosConfigPatch", "{layer: Cluster, clusterName: a, documents: [{kind: Config, config: {machine: {env: {API_TOKEN: hunter2}}}}]}",
			[]string{"Cluster layer: TalosConfigPatch x spec.documents[0]: Config: /machine/env/API_TOKEN: the name of the variable API_TOKEN says that it holds a secret"},
		},
		"storage that leaves nothing on a small disk": {
			"TalosStorage", "{clusterName: a, preset: longhorn-v1, storageReserved: 20Gi, volume: {type: Partition, diskSelector: system_disk, minSize: 10GiB}}",
			[]string{"TalosStorage x: spec.storageReserved 20Gi is not less than spec.volume.minSize"},
		},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			report := look(t, test.kind, test.spec)
			if len(report.Faults) > 0 {
				t.Errorf("refused: %v", report.Faults)
			}

			got := report.Sentences()
			for i := range got {
				// As above.
				if i < len(test.want) && strings.HasPrefix(got[i], test.want[i]) {
					got[i] = test.want[i]
				}
			}

			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}

			if strings.Contains(strings.Join(got, "\n"), "hunter2") {
				t.Error("a warning shows the secret")
			}
		})
	}
}

// A machine's Secret has the TalosConfig's name, and the names that clusters give their own are not for it, whether the cluster exists or not.
func TestReservedNames(t *testing.T) {
	tests := map[string]struct {
		name string
		want string
	}{
		"bundle":                       {"a-talos", "a"},
		"talosconfig":                  {"a-talosconfig", "a"},
		"authority":                    {"a-ca", "a"},
		"etcd's":                       {"a-etcd", "a"},
		"etcd's, for an outer cluster": {"a-apiserver-etcd-client", "a"},
		"front proxy's":                {"a-b-proxy", "a-b"},
		"key of service accounts":      {"a-sa", "a"},
		"kubeconfig":                   {"a-kubeconfig", "a"},
		"as MachineSets name them":     {"a-md-0-x7f2k-ckz9p", ""},
		"without a cluster":            {"-ca", ""},
		"no suffix":                    {"aca", ""},
		"in the middle":                {"a-ca-1", ""},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object := &bootstrapv1.TalosConfig{}
			object.Name = test.name

			var want, got []string
			if test.want != "" {
				want = []string{"metadata.name: Invalid value: the machine's Secret has the TalosConfig's name, and a Cluster " + test.want + " would take " +
					test.name + " for one of its own Secrets: give it another name"}
			}

			for _, fault := range validation.TalosConfig(object).Faults {
				got = append(got, fault.Error().Error())
			}

			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
