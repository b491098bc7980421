// SPDX-License-Identifier: Apache-2.0

package convert_test

// head begins a modern document.
func head(kind, rest string) string { return "apiVersion: v1alpha1\nkind: " + kind + "\n" + rest }

// faulty are documents that cannot be converted.
var faulty = map[string]string{
	"secrets and identity of the cluster": "machine:\n  type: worker\n  token: hunter2\n  ca:\n    crt: hunter2\n    key: hunter2\n  acceptedCAs: []\n" +
		"cluster:\n  id: a\n  clusterName: a\n  secret: hunter2\n  controlPlane: {endpoint: 'https://hunter2:6443'}\n  etcd: {ca: {crt: aHVudGVyMg==, key: aHVudGVyMg==}}\n",
	"documents that belong to the cluster": head("KubeEtcdEncryptionConfig", "config: {a: hunter2}\n---\n") + head("KubeAPIServerCAConfig", "---\n") +
		head("KubeClusterConfig", "endpoint: https://a\n---\n") + head("SideroLinkConfig", "apiUrl: https://a?jointoken=hunter2\n---\n") + head("DiscoveryIdentityConfig", "$patch: delete\n"),
	"a passphrase":                  head("VolumeConfig", "name: STATE\nencryption: {provider: luks2, keys: [{slot: 0, static: {passphrase: hunter2}}]}\n"),
	"a login in a URL":              head("RegistryMirrorConfig", "name: docker.io\nendpoints: [{url: 'https://user:hunter2@mirror.example.com'}]\n"),
	"a masked value":                "machine:\n  registries: {}\n  sysctls: {a: '********'}\n",
	"an empty credential":           head("WireguardConfig", "name: wg0\nprivateKey: ''\n"),
	"without a file for secrets":    head("WireguardConfig", "name: wg0\nprivateKey: hunter2\npeers: [{presharedKey: hunter3}]\n"),
	"many mistakes in one document": "machine:\n  kubelt: {}\n  install: {disk: [a], wipe: maybe}\n  network:\n    interfaces: [{interface: eth0, mtu: big}, {iface: eth1}]\n  token: hunter2\n",

	"a JSON patch":                       "- op: replace\n  path: /machine/network/hostname\n  value: hunter2\n",
	"a JSON patch that removes":          `[{"op": "remove", "path": "/cluster/apiServer/admissionControl/0"}]`,
	"a list":                             "- machine: {}\n",
	"words":                              "just words\n",
	"a Kubernetes manifest":              "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n",
	"a Secret":                           "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {a: hunter2}\n",
	"a TalosConfigPatch":                 "apiVersion: bootstrap.ichor.maesh.dev/v1alpha1\nkind: TalosConfigPatch\nmetadata: {name: a}\n",
	"an object of another provider":      "apiVersion: bootstrap.cluster.x-k8s.io/v1alpha3\nkind: TalosConfigTemplate\nmetadata: {name: a}\n",
	"a kubeconfig":                       "apiVersion: v1\nkind: Config\nusers: [{user: {token: hunter2}}]\n",
	"a talosconfig":                      "context: a\ncontexts: {a: {key: hunter2}}\n",
	"a secrets bundle":                   "cluster: {id: a, secret: hunter2}\nsecrets: {bootstraptoken: hunter2}\ncerts: {os: {key: hunter2}}\n",
	"the input of a config maker":        "clusterName: a\ntalosVersion: v1.12.0\nnodes: []\n",
	"a kind of another API version":      "apiVersion: v1beta1\nkind: UserVolumeConfig\nname: a\n",
	"a kind that is mistyped":            head("UserVolumeConfg", "name: a\n"),
	"a kind in another case":             head("hostnameConfig", "hostname: a\n"),
	"no kind":                            "apiVersion: v1alpha1\nname: a\n",
	"a key of machine at the top":        "sysctls: {a.b: '1'}\n",
	"a key of cluster at the top":        "proxy: {disabled: true}\n",
	"machine mistyped":                   "machne: {sysctls: {a.b: '1'}}\n",
	"a version that there is not":        "version: v1beta1\nmachine: {sysctls: {a.b: '1'}}\n",
	"a field in another case":            head("UserVolumeConfig", "name: a\nprovisioning: {minsize: 1GiB}\n"),
	"a wrong indentation":                "machine:\n  network:\n  hostname: a\n",
	"a wrong type":                       "machine: {sysctls: [a]}\n",
	"a size that is none":                head("UserVolumeConfig", "name: a\nprovisioning: {minSize: 10 gigs}\n"),
	"a duration that is none":            head("TimeSyncConfig", "bootTimeout: 5\n"),
	"a key twice":                        "machine: {sysctls: {a: '1', a: '2'}}\n",
	"a word that is not one of the few":  head("BondConfig", "name: bond0\nbondMode: lacp\n"),
	"a name is missing":                  head("UserVolumeConfig", "$patch: delete\n"),
	"a template in quotes":               head("HostnameConfig", "hostname: '{{ .Name }}'\n"),
	"a template without quotes":          head("HostnameConfig", "hostname: {{ .Name }}\n"),
	"two documents without a separator":  "machine: {sysctls: {a: b}}\n...\n" + head("HostnameConfig", "hostname: a\n"),
	"an unknown word after $patch":       "machine: {sysctls: {$patch: replace}}\n",
	"the legacy document to be deleted":  "version: v1alpha1\n$patch: delete\n",
	"a deletion of a field that is none": "machine: {sysctl: {a: {$patch: delete}}}\n",
	"a deletion within an element":       "machine: {network: {interfaces: [{interface: eth0, mtu: {$patch: delete}}]}}\n",
	"a deletion without a selector":      "machine: {network: {interfaces: [{$patch: delete}]}}\n",
	"a document deleted and set again":   head("HostnameConfig", "$patch: delete\n---\n") + head("HostnameConfig", "hostname: a\n"),
	"a field deleted and set again":      "machine: {install: {$patch: delete}}\n---\nmachine: {install: {disk: /dev/sda}}\n",
	"an element deleted and set again":   "machine: {network: {interfaces: [{interface: eth0, $patch: delete}, {interface: eth1}, {interface: eth0, mtu: 9000}]}}\n",
	"nothing is set but nulls":           "machine:\ncluster: ~\n",
	"nothing is set":                     "version: v1alpha1\n",
	"YAML that is none":                  "machine: [\n",
}
