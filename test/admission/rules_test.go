// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What is refused when an object is created, and what is not. An empty want is accepted. No refusal has the word that stands for a secret.
func TestRules(t *testing.T) {
	tests := map[string]struct{ kind, spec, want string }{
		"Talos that nobody knows":               {"TalosClusterConfig", "{clusterName: a, talos: {version: v1.99.0}}", `spec.talos.version: Invalid value: talos version "v1.99.0": not known to this release, which knows Talos v1.12 to v1.14`},
		"Talos that is too old":                 {"TalosClusterConfig", "{clusterName: a, talos: {version: v1.11.3}}", "older than v1.12.0, the oldest that nodes may run"},
		"Talos that is known":                   {"TalosClusterConfig", "{clusterName: a, talos: {version: v1.14.1}}", ""},
		"contract that nobody knows":            {"TalosConfig", "{configContract: v1.99}", `spec.configContract: Invalid value: config contract "v1.99": not known to this release; must be from v1.0 to v1.14`},
		"contract of an older cluster":          {"TalosConfig", "{configContract: v1.9}", ""},
		"contract newer than Talos":             {"TalosClusterConfig", "{clusterName: a, talos: {version: v1.13.4, configContract: v1.14}}", "spec.talos.configContract: Invalid value: config contract v1.14: Talos v1.13.4 cannot read it"},
		"pool's Talos older than the contract":  {"TalosClusterConfig", "{clusterName: a, talos: {version: v1.14.1, configContract: v1.14, pools: [{name: p, version: v1.13.4, machineSelector: {}}]}}", "spec.talos.pools[p].version"},
		"operator that does not exist":          {"TalosClusterConfig", "{clusterSelector: {matchExpressions: [{key: a, operator: Is}]}}", "spec.clusterSelector.matchExpressions[0].operator"},
		"pool's label that cannot be":           {"TalosClusterConfig", "{clusterName: a, talos: {pools: [{name: p, machineSelector: {matchLabels: {'a b': c}}}]}}", "spec.talos.pools[p].machineSelector.matchLabels"},
		"mirror that is no address":             {"TalosClusterConfig", "{clusterName: a, registries: [{host: ghcr.io, endpoints: [{url: 'https://:5000'}]}]}", ""},
		"manifest that is no address":           {"TalosClusterConfig", "{clusterName: a, network: {cni: {type: Manifests, urls: ['https://%zz']}}}", "spec.network.cni.urls[0]"},
		"SAN that is no name":                   {"TalosClusterConfig", "{clusterName: a, certSANs: ['a b']}", "spec.certSANs[0]"},
		"network that is none":                  {"TalosClusterConfig", "{clusterName: a, talosAPI: {cidrs: [10.0.0.0/99]}}", "spec.talosAPI.cidrs[0]"},
		"Secret that cannot exist":              {"TalosClusterConfig", "{clusterName: a, secretsRef: {name: My_Bundle}}", "spec.secretsRef.name: Invalid value: no Secret can have this name"},
		"disk expression that is none":          {"TalosConfig", "{install: {diskSelector: 'disk.size >'}}", "spec.install.diskSelector: Invalid value: not an expression over a disk"},
		"disk expression over an unknown field": {"TalosConfig", "{install: {diskSelector: 'disk.sise > 1u'}}", "undefined field 'sise'"},
		"disk expression":                       {"TalosConfig", "{install: {diskSelector: 'disk.size > 1u'}}", ""},
		"disk expression for an old format":     {"TalosConfig", "{configContract: v1.13, install: {diskSelector: 'disk.size > 1u'}}", "config contract v1.13 knows no disk expressions: set disk instead"},
		"kernel arguments for the new format":   {"TalosConfig", "{configContract: v1.14, install: {disk: /dev/sda, extraKernelArgs: [a]}}", "spec.install.extraKernelArgs"},
		"kernel arguments, format not said":     {"TalosConfig", "{install: {disk: /dev/sda, extraKernelArgs: [a]}}", ""},
		"patch that cannot exist":               {"TalosConfig", "{patchRefs: [{name: My_Patch}]}", "spec.patchRefs[My_Patch].name"},
		"contract in a template":                {"TalosConfigTemplate", "{template: {spec: {configContract: v1.99}}}", "spec.template.spec.configContract"},
		"label in a template":                   {"TalosConfigTemplate", "{template: {metadata: {labels: {'a b': c}}}}", "spec.template.metadata.labels"},
		"label that a worker may not set":       {"TalosConfigPatch", "{layer: Role, role: Worker, clusterName: a, documents: [{kind: KubeNodeConfig, kubeNodeConfig: {labels: {node-role.kubernetes.io/worker: ''}}}]}", "spec.documents[0].kubeNodeConfig.labels[node-role.kubernetes.io/worker]: Invalid value: a worker's kubelet may not set this label"},
		"the same in the legacy document":       {"TalosConfigPatch", "{layer: Role, role: Worker, clusterName: a, documents: [{kind: Config, config: {machine: {nodeLabels: {node-restriction.kubernetes.io/x: ''}}}}]}", "spec.documents[0].config.machine.nodeLabels[node-restriction.kubernetes.io/x]"},
		"the same for control planes":           {"TalosConfigPatch", "{layer: Role, role: ControlPlane, clusterName: a, documents: [{kind: KubeNodeConfig, kubeNodeConfig: {labels: {node-role.kubernetes.io/x: ''}}}]}", ""},
		"label that cannot be":                  {"TalosConfigPatch", "{layer: Cluster, clusterName: a, documents: [{kind: KubeNodeConfig, kubeNodeConfig: {labels: {'my label': x}}}]}", "spec.documents[0].kubeNodeConfig.labels[my label]"},
		"expression that is none":               {"TalosConfigPatch", "{layer: Cluster, clusterName: a, documents: [{kind: SysctlConfig, sysctlConfig: {params: {a.b: c}}}, {kind: UserVolumeConfig, userVolumeConfig: {name: data, provisioning: {diskSelector: {match: 'disk.size >'}}}}]}", "spec.documents[1].userVolumeConfig.provisioning.diskSelector.match: Invalid value: UserVolumeConfig/data: "},
		"expression for a number":               {"TalosConfigPatch", "{layer: Cluster, clusterName: a, documents: [{kind: OOMConfig, oomConfig: {cgroupRankingExpression: 'true'}}]}", "spec.documents[0].oomConfig.cgroupRankingExpression"},
		"sparse volume":                         {"TalosConfigPatch", "{layer: Cluster, clusterName: a, documents: [{kind: UserVolumeConfig, userVolumeConfig: {name: data, provisioning: {maxSize: 50%}}}]}", ""},
		"sparse kubelet":                        {"TalosConfigPatch", "{layer: Cluster, clusterName: a, documents: [{kind: KubeletConfig, kubeletConfig: {extraArgs: {v: ['2']}}}]}", ""},
		"password in a URL":                     {"TalosConfigPatch", "{layer: Cluster, clusterName: a, documents: [{kind: Config, config: {machine: {files: [{content: 'fetch https://u:hunter2@host/', path: /var/x, permissions: 420, op: create}]}}}]}", "spec.documents[0].config.machine.files[0].content: Invalid value: has a user or password in a URL"},
		"Secret in a manifest":                  {"TalosConfigPatch", "{layer: Cluster, clusterName: a, documents: [{kind: Config, config: {cluster: {inlineManifests: [{name: s, contents: '{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {a: hunter2}}'}]}}}]}", "spec.documents[0].config.cluster.inlineManifests[0].contents: Invalid value: has a manifest of kind Secret with data"},
		"file outside /var":                     {"TalosConfigPatch", "{layer: Cluster, clusterName: a, documents: [{kind: Config, config: {machine: {files: [{content: x, path: /opt/x, permissions: 420, op: create}]}}}]}", "spec.documents[0].config.machine.files[0].path"},
		"flag that Talos sets":                  {"TalosConfigPatch", "{layer: Cluster, clusterName: a, documents: [{kind: KubeletConfig, kubeletConfig: {extraArgs: {kubeconfig: [/x]}}}]}", "spec.documents[0].kubeletConfig.extraArgs.kubeconfig: Invalid value: set by Talos itself"},
		"hostname that is none":                 {"TalosConfigPatch", "{layer: Machine, clusterName: a, documents: [{kind: HostnameConfig, hostnameConfig: {hostname: worker..1}}]}", "spec.documents[0].hostnameConfig.hostname"},
		"control plane's document for workers":  {"TalosConfigPatch", "{layer: Role, role: Worker, clusterName: a, documents: [{kind: KubeAPIServerConfig, kubeAPIServerConfig: {certExtraSANs: [a.example.com]}}]}", "spec.documents[0]: Invalid value: allowed on control-plane machines only"},
		"deletion of what no Talos has":         {"TalosConfigPatch", "{layer: Cluster, clusterName: a, deletions: [{kind: Config, path: /machine/tokn}]}", `spec.deletions[0]: Invalid value: /machine/tokn: unknown field; did you mean "token"?`},
		"deletion without a name":               {"TalosConfigPatch", "{layer: Cluster, clusterName: a, deletions: [{kind: UserVolumeConfig}]}", "spec.deletions[0]: Invalid value: name is missing: say which UserVolumeConfig is meant"},
		"deletion of an unknown kind":           {"TalosConfigPatch", "{layer: Cluster, clusterName: a, deletions: [{kind: SysctlsConfig}]}", "spec.deletions[0]: Invalid value: unknown kind"},
		"deletion":                              {"TalosConfigPatch", "{layer: Cluster, clusterName: a, deletions: [{kind: Config, path: /machine/sysctls}]}", ""},
		"machine selector without values":       {"TalosConfigPatch", "{layer: Pool, clusterName: a, machineSelector: {matchExpressions: [{key: a, operator: In}]}, deletions: [{kind: Config, path: /machine/sysctls}]}", "spec.machineSelector.matchExpressions[0].values"},
		"two faults at once, the first":         {"TalosConfigPatch", "{layer: Cluster, clusterName: A, deletions: [{kind: SysctlsConfig}]}", "spec.clusterName: Invalid value: no Cluster can have this name"},
		"two faults at once, the second":        {"TalosConfigPatch", "{layer: Cluster, clusterName: A, deletions: [{kind: SysctlsConfig}]}", "spec.deletions[0]: Invalid value: unknown kind"},
		"storage on a disk that cannot be":      {"TalosStorage", "{clusterName: a, preset: longhorn-v1, volume: {type: Disk, diskSelector: 'disk.sise > 1u'}}", "spec.volume.diskSelector"},
		"storage smaller than its minimum":      {"TalosStorage", "{clusterName: a, preset: longhorn-v1, volume: {type: Partition, diskSelector: system_disk, minSize: 20GiB, maxSize: 10GiB}}", "spec.volume.minSize: Invalid value: 20GiB is more than maxSize 10GiB"},
		"tag that Longhorn ignores":             {"TalosStorage", "{clusterName: a, preset: longhorn-v1, diskTags: ['nvme fast']}", "spec.diskTags[0]"},
		"raw device on a directory":             {"TalosStorage", "{clusterName: a, preset: longhorn-v2}", "spec.volume.type: Invalid value: must be Partition with preset longhorn-v2"},
		"key service with a password":           {"TalosStorage", "{clusterName: a, preset: longhorn-v1, volume: {type: Disk, diskSelector: '!system_disk', encryption: {keys: [{slot: 0, source: KMS, kmsEndpoint: 'https:///x'}]}}}", "spec.volume.encryption.keys[0].kmsEndpoint"},
		"storage":                               {"TalosStorage", "{clusterName: a, preset: longhorn-v1}", ""},
		"cluster settings":                      {"TalosClusterConfig", "{clusterSelector: {}}", ""},
		"TalosConfig of nothing":                {"TalosConfig", "{}", ""},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			err := admin.Create(t.Context(), object(test.kind, "rule", test.spec), client.DryRunAll, client.FieldValidation("Strict"))
			if test.want == "" {
				g.Expect(err).NotTo(HaveOccurred())

				return
			}

			g.Expect(err).To(MatchError(ContainSubstring(test.want)))
			g.Expect(apierrors.IsInvalid(err)).To(BeTrue())
			g.Expect(err.Error()).NotTo(ContainSubstring("hunter2"))
			g.Expect(err.Error()).To(HavePrefix("admission webhook \"validation." + strings.ToLower(test.kind) + ".bootstrap.ichor.maesh.dev\" denied the request: " + test.kind))
		})
	}

	NewWithT(t).Expect(logs.String()).NotTo(ContainSubstring("hunter2"))
}

// A TalosConfig whose data Secret would stand in the place of a cluster's own Secret does not come in.
func TestReservedNames(t *testing.T) {
	g := NewWithT(t)

	err := admin.Create(t.Context(), object("TalosConfig", "b-talos", "{}"), client.DryRunAll)
	g.Expect(err).To(MatchError(ContainSubstring("metadata.name: Invalid value: the machine's Secret has the TalosConfig's name, and a Cluster b would take b-talos")))
	g.Expect(apierrors.IsInvalid(err)).To(BeTrue())

	generated := object("TalosConfig", "", "{}")
	generated.SetGenerateName("b-")
	g.Expect(admin.Create(t.Context(), generated, client.DryRunAll)).To(Succeed())
}

// What is allowed and suspicious is a warning that kubectl shows.
func TestWarnings(t *testing.T) {
	tests := map[string]struct{ kind, spec, want string }{
		"label for all machines": {"TalosConfigPatch", "{layer: Cluster, clusterName: warned, documents: [{kind: KubeNodeConfig, kubeNodeConfig: {labels: {node-role.kubernetes.io/x: ''}}}]}", "the patch selects workers too, which then get no config"},
		"name of a secret":       {"TalosConfigPatch", "{layer: Cluster, clusterName: a, documents: [{kind: Config, config: {machine: {env: {API_TOKEN: hunter2}}}}]}", "the name of the variable API_TOKEN says that it holds a secret"},
		"mirror":                 {"TalosClusterConfig", "{clusterName: a, registries: [{host: docker.io, endpoints: [{url: 'https://lonely.example.com'}]}]}", "host lonely.example.com has no entry of its own"},
		"older pool":             {"TalosClusterConfig", "{clusterName: a, talos: {version: v1.14.1, pools: [{name: old, version: v1.13.4, machineSelector: {}}]}}", "spec.talos.pools[old].version: Talos v1.13.4 cannot read config contract v1.14"},
		"install in a cloud":     {"TalosConfigTemplate", "{template: {spec: {platform: Cloud, install: {disk: /dev/sda}}}}", "spec.template.spec.platform: is Cloud"},
		"storage":                {"TalosStorage", "{clusterName: a, preset: longhorn-v1, storageReserved: 20Gi, volume: {type: Partition, diskSelector: system_disk, minSize: 10GiB}}", "spec.storageReserved 20Gi is not less than spec.volume.minSize"},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(warnings.all()).NotTo(ContainSubstring(test.want))
			g.Expect(admin.Create(t.Context(), object(test.kind, "warned", test.spec), client.DryRunAll)).To(Succeed())
			g.Expect(warnings.all()).To(ContainSubstring(test.want))
			g.Expect(warnings.all()).NotTo(ContainSubstring("hunter2"))
		})
	}
}
