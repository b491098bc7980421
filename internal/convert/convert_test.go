// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
	"github.com/maesh-dev/ichor/internal/cli/manifest"
	"github.com/maesh-dev/ichor/internal/convert"
)

var update = flag.Bool("update", false, "write the golden files anew")

// documents takes texts apart, each as a file of its own: "a.yaml", "b.yaml", ...
func documents(texts ...string) []convert.Document {
	var out []convert.Document

	for i, text := range texts {
		for _, each := range manifest.Split(string(rune('a'+i))+".yaml", []byte(text)) {
			out = append(out, convert.Document{File: each.File, Index: each.Document, Data: each.Data})
		}
	}

	return out
}

func options() convert.Options {
	return convert.Options{Name: "test", Layer: bootstrapv1.PatchLayerCluster, Secrets: true}
}

// spec is what is told of a patch: its documents and deletions.
type spec struct {
	Documents []machineconfigv1alpha1.Document `json:"documents,omitempty"`
	Deletions []bootstrapv1.PatchDeletion      `json:"deletions,omitempty"`
}

func TestConvert(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		in     []string
		want   string
		secret map[string]string
	}{
		"a modern document": {
			in:   []string{"apiVersion: v1alpha1\nkind: UserVolumeConfig\nname: data\nprovisioning:\n  diskSelector: {match: 'disk.transport == \"nvme\"'}\n  minSize: 10GiB\n  grow: false\n"},
			want: "documents:\n- kind: UserVolumeConfig\n  userVolumeConfig: {name: data, provisioning: {diskSelector: {match: 'disk.transport == \"nvme\"'}, minSize: 10GiB, grow: false}}\n",
		},
		"the legacy document, with its version": {
			in:   []string{"version: v1alpha1\ndebug: false\nmachine:\n  sysctls: {a.b: '1'}\ncluster:\n  proxy: {disabled: true}\n"},
			want: "documents:\n- kind: Config\n  config: {debug: false, machine: {sysctls: {a.b: '1'}}, cluster: {proxy: {disabled: true}}}\n",
		},
		"JSON": {
			in:   []string{`{"apiVersion": "v1alpha1", "kind": "SysctlConfig", "params": {"vm.swappiness": "0"}}`},
			want: "documents:\n- kind: SysctlConfig\n  sysctlConfig: {params: {vm.swappiness: '0'}}\n",
		},
		"documents of several files, one of them twice": {
			in: []string{
				"apiVersion: v1alpha1\nkind: SysctlConfig\nparams: {a.b: '1'}\n---\nmachine: {install: {wipe: true}}\n",
				"apiVersion: v1alpha1\nkind: SysctlConfig\nparams: {a.b: '2'}\n",
			},
			want: `documents:
- {kind: SysctlConfig, sysctlConfig: {params: {a.b: '1'}}}
- {kind: Config, config: {machine: {install: {wipe: true}}}}
- {kind: SysctlConfig, sysctlConfig: {params: {a.b: '2'}}}
`,
		},
		"words that YAML may read as something else": {
			in:   []string{"apiVersion: v1alpha1\nkind: HostnameConfig\nauto: off\nhostname: 007\n"},
			want: "documents:\n- kind: HostnameConfig\n  hostnameConfig: {auto: 'off', hostname: '007'}\n",
		},
		"words in another case": {
			in:   []string{"apiVersion: v1alpha1\nkind: BondConfig\nname: bond0\nbondMode: Active-Backup\nadLACPActive: ON\n"},
			want: "documents:\n- kind: BondConfig\n  bondConfig: {name: bond0, bondMode: active-backup, adLACPActive: 'on'}\n",
		},
		"octal modes": {
			in:   []string{"machine:\n  files:\n  - {path: /var/a, op: create, permissions: 0644, content: x}\n  - {path: /var/b, op: create, permissions: 0o600, content: z}\n"},
			want: "documents:\n- kind: Config\n  config: {machine: {files: [{path: /var/a, op: create, permissions: 420, content: x}, {path: /var/b, op: create, permissions: 384, content: z}]}}\n",
		},
		"numbers and switches where Talos takes text": {
			in:   []string{"machine:\n  sysctls: {vm.max_map_count: 262144, a.b: true}\n  kubelet:\n    extraArgs: {v: 4, feature-gates: [A=true, B=false]}\n"},
			want: "documents:\n- kind: Config\n  config: {machine: {sysctls: {vm.max_map_count: '262144', a.b: 'true'}, kubelet: {extraArgs: {v: ['4'], feature-gates: [A=true, B=false]}}}}\n",
		},
		"explicit zeros": {
			in:   []string{"machine:\n  network:\n    interfaces: [{interface: eth0, mtu: 0, dhcp: false}]\n    nameservers: []\n  install: {image: ''}\n"},
			want: "documents:\n- kind: Config\n  config: {machine: {network: {interfaces: [{interface: eth0, mtu: 0, dhcp: false}], nameservers: []}, install: {image: ''}}}\n",
		},
		"null says nothing in a field, and empties an entry of a map": {
			in:   []string{"machine:\n  install: null\n  nodeLabels: {a: , b: x}\n"},
			want: "documents:\n- kind: Config\n  config: {machine: {nodeLabels: {a: '', b: x}}}\n",
		},
		"anchors, aliases and merge keys": {
			in:   []string{"machine:\n  kubelet:\n    extraArgs: &args {v: '2'}\ncluster:\n  scheduler:\n    extraArgs: *args\n  controllerManager:\n    extraArgs:\n      <<: *args\n      bind-address: 0.0.0.0\n"},
			want: "documents:\n- kind: Config\n  config:\n    machine: {kubelet: {extraArgs: {v: ['2']}}}\n    cluster: {scheduler: {extraArgs: {v: ['2']}}, controllerManager: {extraArgs: {v: ['2'], bind-address: [0.0.0.0]}}}\n",
		},
		"Windows line ends and a byte order mark": {
			in:   []string{"\xef\xbb\xbfmachine:\r\n  sysctls:\r\n    a.b: \"1\"\r\n---\r\napiVersion: v1alpha1\r\nkind: SysctlConfig\r\nparams: {c.d: x}\r\n"},
			want: "documents:\n- {kind: Config, config: {machine: {sysctls: {a.b: '1'}}}}\n- {kind: SysctlConfig, sysctlConfig: {params: {c.d: x}}}\n",
		},
		"documents without content": {
			in:   []string{"---\n# nothing\n---\nmachine: {sysctls: {a.b: '1'}}\n---\n"},
			want: "documents:\n- {kind: Config, config: {machine: {sysctls: {a.b: '1'}}}}\n",
		},
		"a document to delete": {
			in:   []string{"apiVersion: v1alpha1\nkind: LinkConfig\nname: eth0\n$patch: delete\n---\napiVersion: v1alpha1\nkind: KubeFlannelCNIConfig\n$patch: delete\n"},
			want: "deletions: [{kind: LinkConfig, name: eth0}, {kind: KubeFlannelCNIConfig}]\n",
		},
		"fields, entries and elements to delete, beside what is set": {
			in: []string{`machine:
  install: {$patch: delete}
  nodeLabels: {node.kubernetes.io/exclude-from-external-load-balancers: {$patch: delete}}
  sysctls: {a.b: {$patch: delete}, c.d: x}
  network:
    interfaces:
      - {interface: eth0, $patch: delete}
      - {interface: eth1, dhcp: true}
  files:
    - {$patch: delete, path: /var/a}
cluster:
  apiServer:
    admissionControl:
      - {name: PodSecurity, $patch: delete}
`},
			want: `documents:
- kind: Config
  config: {machine: {sysctls: {c.d: x}, network: {interfaces: [{interface: eth1, dhcp: true}]}}}
deletions:
- {kind: Config, path: /machine/install}
- {kind: Config, path: /machine/nodeLabels/node.kubernetes.io~1exclude-from-external-load-balancers}
- {kind: Config, path: /machine/sysctls/a.b}
- {kind: Config, path: /machine/network/interfaces/eth0}
- {kind: Config, path: /machine/files/path=~1var~1a}
- {kind: Config, path: /cluster/apiServer/admissionControl/PodSecurity}
`,
		},
		"the same deletion twice": {
			in:   []string{"machine: {install: {$patch: delete}}\n", "machine: {install: {$patch: delete}}\n"},
			want: "deletions: [{kind: Config, path: /machine/install}]\n",
		},
		"a deletion of what an earlier document sets": {
			in:   []string{"machine: {sysctls: {a.b: x}}\n---\nmachine: {sysctls: {a.b: {$patch: delete}}}\n"},
			want: "documents: [{kind: Config, config: {machine: {sysctls: {a.b: x}}}}]\ndeletions: [{kind: Config, path: /machine/sysctls/a.b}]\n",
		},
		"credentials": {
			in: []string{"apiVersion: v1alpha1\nkind: WireguardConfig\nname: wg0\nprivateKey: |\n  cHJpdmF0ZQ==\npeers:\n- {publicKey: cHVibGlj, presharedKey: c2hhcmVk}\n"},
			want: `documents:
- kind: WireguardConfig
  wireguardConfig:
    name: wg0
    privateKeySecretRef: {name: test, key: WireguardConfig.wg0.privateKey}
    peers: [{publicKey: cHVibGlj, presharedKeySecretRef: {name: test, key: WireguardConfig.wg0.peers.0.presharedKey}}]
`,
			secret: map[string]string{"WireguardConfig.wg0.privateKey": "cHJpdmF0ZQ==", "WireguardConfig.wg0.peers.0.presharedKey": "c2hhcmVk"},
		},
		"credentials of one field in two documents": {
			in: []string{"apiVersion: v1alpha1\nkind: WireguardConfig\nname: wg0\nprivateKey: one\n", "apiVersion: v1alpha1\nkind: WireguardConfig\nname: wg0\nprivateKey: two\n"},
			want: `documents:
- {kind: WireguardConfig, wireguardConfig: {name: wg0, privateKeySecretRef: {name: test, key: WireguardConfig.wg0.privateKey}}}
- {kind: WireguardConfig, wireguardConfig: {name: wg0, privateKeySecretRef: {name: test, key: WireguardConfig.wg0.privateKey-2}}}
`,
			secret: map[string]string{"WireguardConfig.wg0.privateKey": "one", "WireguardConfig.wg0.privateKey-2": "two"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			result, err := convert.Convert(documents(tc.in...), options())
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(tree(t, tc.want), treeOf(t, spec{result.Patch.Spec.Documents, result.Patch.Spec.Deletions})); diff != "" {
				t.Errorf("the patch (-want +got):\n%s", diff)
			}

			var secret map[string]string
			if result.Secret != nil {
				secret = result.Secret.StringData
			}

			if diff := cmp.Diff(tc.secret, secret); diff != "" {
				t.Errorf("the Secret (-want +got):\n%s", diff)
			}
		})
	}
}

func tree(t *testing.T, text string) any {
	t.Helper()

	var out any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}

	return out
}

func treeOf(t *testing.T, object any) any {
	t.Helper()

	data, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}

	return tree(t, string(data))
}

func TestObjects(t *testing.T) {
	t.Parallel()

	o := options()
	o.Namespace, o.Layer, o.Role = "fleet", bootstrapv1.PatchLayerRole, bootstrapv1.MachineRoleWorker

	result, err := convert.Convert(documents("# of mine\napiVersion: v1alpha1\nkind: WireguardConfig\nname: wg0\nprivateKey: hunter2\n"), o)
	if err != nil {
		t.Fatal(err)
	}

	want := `
- apiVersion: bootstrap.ichor.maesh.dev/v1alpha1
  kind: TalosConfigPatch
  metadata: {name: test, namespace: fleet}
  spec:
    layer: Role
    role: Worker
    documents: [{kind: WireguardConfig, wireguardConfig: {name: wg0, privateKeySecretRef: {name: test, key: WireguardConfig.wg0.privateKey}}}]
- apiVersion: v1
  kind: Secret
  metadata: {name: test, namespace: fleet, labels: {clusterctl.cluster.x-k8s.io/move: ""}}
  type: Opaque
  stringData: {WireguardConfig.wg0.privateKey: hunter2}
`
	if diff := cmp.Diff(tree(t, want), treeOf(t, []any{result.Patch, result.Secret})); diff != "" {
		t.Errorf("the objects (-want +got):\n%s", diff)
	}
}

// TestFind: what admission and a render say of the patch is told of the place in the file.
func TestFind(t *testing.T) {
	t.Parallel()

	result, err := convert.Convert(documents(
		"machine:\n  network:\n    interfaces:\n    - {interface: eth0, $patch: delete}\n    - interface: eth1\n      mtu: 9000\n  sysctls:\n    a.b: x\n",
		"\n---\napiVersion: v1alpha1\nkind: WireguardConfig\nname: wg0\nprivateKey: x\n",
	), options())
	if err != nil {
		t.Fatal(err)
	}

	for path, want := range map[string]string{
		"spec.documents[0].config.machine.sysctls[a.b]":              "a.yaml:8 Config /machine/sysctls/a.b",
		"spec.documents[0].config.machine.network.interfaces[0].mtu": "a.yaml:6 Config /machine/network/interfaces/0/mtu",
		"spec.documents[0].config.machine.kubelet":                   "a.yaml:1 Config /machine/kubelet",
		"spec.documents[1].wireguardConfig.privateKeySecretRef.name": "b.yaml:6 WireguardConfig/wg0 /privateKey",
		"spec.documents[1].wireguardConfig.name":                     "b.yaml:5 WireguardConfig/wg0 /name",
		"spec.documents[1]":                                          "b.yaml:3 WireguardConfig/wg0 ",
		"spec.deletions[0].path":                                     "a.yaml:4 Config /machine/network/interfaces",
		"spec.documents[2]":                                          "nowhere",
		"spec.deletions[7]":                                          "nowhere",
		"metadata.name":                                              "nowhere",
	} {
		got := "nowhere"
		if place, ok := result.Find(path); ok {
			got = strings.Join([]string{place.String(), place.Document, place.Pointer}, " ")
		}

		if got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

func faultsOf(t *testing.T, err error) []string {
	t.Helper()

	refused, ok := errors.AsType[*convert.Error](err)
	if !ok {
		t.Fatalf("got %v, want an Error", err)
	}

	lines := make([]string, 0, len(refused.Faults))
	for _, fault := range refused.Faults {
		lines = append(lines, fault.String())
	}

	return lines
}

// TestFaults: everything that is said of documents that cannot be converted.
func TestFaults(t *testing.T) {
	t.Parallel()

	var b strings.Builder

	for _, name := range slices.Sorted(maps.Keys(faulty)) {
		o := options()
		o.Secrets = !strings.HasPrefix(name, "without a file for secrets")

		result, err := convert.Convert(documents(faulty[name]), o)
		if err == nil {
			t.Fatalf("%s: got no error, and %v", name, treeOf(t, result.Patch))
		}

		if strings.Contains(err.Error(), "hunter") {
			t.Errorf("%s: the error shows a secret", name)
		}

		fmt.Fprintf(&b, "%s\n", name)

		for _, line := range faultsOf(t, err) {
			fmt.Fprintf(&b, "    %s\n", line)
		}
	}

	if *update {
		if err := os.WriteFile("testdata/faults.txt", []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	want, err := os.ReadFile("testdata/faults.txt")
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("run the test with -update if the difference is meant (-want +got):\n%s", diff)
	}
}

// TestBounds: what no patch can hold ends early.
func TestBounds(t *testing.T) {
	t.Parallel()

	bomb := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for _, pair := range []string{"ab", "bc", "cd", "de", "ef", "fg", "gh"} {
		bomb += string(pair[1]) + ": &" + string(pair[1]) + " [" + strings.TrimSuffix(strings.Repeat("*"+string(pair[0])+", ", 10), ", ") + "]\n"
	}

	for name, tc := range map[string]struct{ in, want string }{
		"too large":              {"machine: {env: {A: " + strings.Repeat("x", 5<<20) + "}}", "the documents have more than 4 MiB: no patch can be that large"},
		"too many documents":     {strings.Repeat("apiVersion: v1alpha1\nkind: OOMConfig\n---\n", 300), "there are 300 documents, and a TalosConfigPatch holds 128, with as many deletions"},
		"too many entries":       {"machine: {sysctls: {" + strings.Repeat("a: b, ", 1025) + "}}", "/machine/sysctls: has 1025 entries, and no list or map of a TalosConfigPatch can have more than 1024"},
		"too many values":        {"machine: {files: [" + strings.Repeat("{content: ["+strings.Repeat("a,", 1000)+"]},", 21) + "]}", "with this document there are more than 20000 values, too many for one patch"},
		"too large as an object": {"machine: {env: {A: " + strings.Repeat("x", 1<<20) + "}}", "the patch would have 1024 KiB"},
		"aliases that explode":   {bomb, "nested too deeply, or its aliases expand to too much"},
		"nested too deeply":      {"machine: " + strings.Repeat("{a: ", 200) + "1" + strings.Repeat("}", 200), "nested too deeply"},
		"nothing":                {"# only words\n", "there is no Talos document among the files"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, err := convert.Convert(documents(tc.in), options())
			if err == nil || !slices.ContainsFunc(faultsOf(t, err), func(line string) bool { return strings.Contains(line, tc.want) }) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
