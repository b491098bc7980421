// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const legacyNetwork = `machine:
  sysctls: {a/b: x, c: y}
  certSANs: [one, two, three]
  ca: {crt: Zmlyc3Q=, key: a2V5}
  network:
    interfaces:
      - {interface: eth0, mtu: 1500, vlans: [{vlanId: 1}, {vlanId: 0}]}
      - {interface: eth1, mtu: 9000}
      - {interface: eth2}
`

// TestPatchDelete: all forms that Talos has, and targets that are not there.
func TestPatchDelete(t *testing.T) {
	tests := map[string]struct{ base, patch, want string }{
		"a document": {
			base:  docs(doc("LinkConfig", "eth0", "mtu: 1"), doc("LinkConfig", "eth1", "mtu: 2")),
			patch: doc("LinkConfig", "eth0", "$patch: delete"),
			want:  doc("LinkConfig", "eth1", "mtu: 2"),
		},
		"a document without a name": {
			base:  docs(doc("KubePrismConfig", "", "port: 1"), doc("LinkConfig", "eth1", "mtu: 2")),
			patch: doc("KubePrismConfig", "", "$patch: delete"),
			want:  doc("LinkConfig", "eth1", "mtu: 2"),
		},
		"a document that is not there": {
			base:  doc("LinkConfig", "eth1", "mtu: 2"),
			patch: doc("LinkConfig", "eth0", "$patch: delete"),
			want:  doc("LinkConfig", "eth1", "mtu: 2"),
		},
		"a document, which then comes anew": {
			base:  doc("LinkConfig", "eth0", "mtu: 1\nup: true"),
			patch: docs(doc("LinkConfig", "eth0", "$patch: delete"), doc("LinkConfig", "eth0", "up: false")),
			want:  doc("LinkConfig", "eth0", "up: false"),
		},
		"fields, beside others that are set": {
			base:  doc("UserVolumeConfig", "x", longhorn),
			patch: doc("UserVolumeConfig", "x", "provisioning: {maxSize: {$patch: delete}, minSize: 1GiB, diskSelector: {match: {$patch: delete}}}"),
			want:  doc("UserVolumeConfig", "x", "provisioning: {minSize: 1GiB, grow: true}"),
		},
		"a map entry and a struct": {
			base:  legacyNetwork,
			patch: "machine: {sysctls: {a/b: {$patch: delete}}, network: {$patch: delete}, certSANs: {$patch: delete}}",
			want:  "machine: {sysctls: {c: y}, ca: {crt: Zmlyc3Q=, key: a2V5}}",
		},
		"paths that are not there": {
			base:  doc("KubeNodeConfig", "", "labels: {a: b}"),
			patch: docs(doc("KubeNodeConfig", "", "labels: {nope: {$patch: delete}}\ntaints: {x: {$patch: delete}}"), "machine: {kubelet: {image: {$patch: delete}}}"),
			want:  doc("KubeNodeConfig", "", "labels: {a: b}"),
		},
		"a list element by its key": {
			base:  "machine: {network: {interfaces: [{interface: eth0}, {interface: eth1}]}}",
			patch: "machine: {network: {interfaces: [{interface: eth0, $patch: delete}, {interface: eth2}]}}",
			want:  "machine: {network: {interfaces: [{interface: eth1}, {interface: eth2}]}}",
		},
		"a list element by a field that is no text": {
			base:  "machine: {network: {interfaces: [{interface: eth0, mtu: 1}, {interface: eth1, mtu: 2}]}}",
			patch: "machine: {network: {interfaces: [{$patch: delete, mtu: 2}]}}",
			want:  "machine: {network: {interfaces: [{interface: eth0, mtu: 1}]}}",
		},
		"a list element that is not there": {
			base:  "machine: {network: {interfaces: [{interface: eth0}]}}",
			patch: "machine: {network: {interfaces: [{interface: eth9, $patch: delete}]}}",
			want:  "machine: {network: {interfaces: [{interface: eth0}]}}",
		},
		"within free-form values": {
			base:  doc("KubeletConfig", "", "config: {a: {b: 1, c: 2}, list: [{name: x, v: 1}, {name: y}]}"),
			patch: doc("KubeletConfig", "", "config: {a: {b: {$patch: delete}}, list: [{name: x, $patch: delete}]}"),
			want:  doc("KubeletConfig", "", "config: {a: {c: 2}, list: [{name: y}]}"),
		},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := configFrom(t, test.base)
			replayed := leavesByDocument(c)

			mustApply(t, c, mustLoad(t, test.patch), func(change Change) {
				if replayed[change.ID] == nil {
					replayed[change.ID] = map[string]string{}
				}

				replay(t, replayed[change.ID], change)
			})

			if diff := cmp.Diff(encodeAll(t, configFrom(t, test.want)), encodeAll(t, c)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}

			for id, leaves := range leavesByDocument(c) {
				if diff := cmp.Diff(leaves, replayed[id]); diff != "" {
					t.Errorf("changes of %s: (-after +replayed)\n%s", id, diff)
				}
			}
		})
	}
}

func TestDelete(t *testing.T) {
	legacy := ID{Kind: LegacyKind}
	eth0 := ID{Kind: "LinkConfig", Name: "eth0"}

	tests := map[string]struct {
		base    string
		id      ID
		pointer string
		want    string // "" for the base unchanged
		err     string
	}{
		"a document":                   {base: docs("machine: {type: worker}", doc("LinkConfig", "eth0", "mtu: 1")), id: eth0, want: "machine: {type: worker}"},
		"a document that is not there": {base: "machine: {type: worker}", id: eth0},
		"a field":                      {base: doc("LinkConfig", "eth0", "mtu: 1\nup: true"), id: eth0, pointer: "/mtu", want: doc("LinkConfig", "eth0", "up: true")},
		"a field that is not set":      {base: doc("LinkConfig", "eth0", "up: true"), id: eth0, pointer: "/mtu"},
		"below what is not set":        {base: "machine: {type: worker}", id: legacy, pointer: "/machine/network/interfaces/0/vip/ip"},
		"an escaped key":               {base: "machine: {sysctls: {a/b: x, c: y}}", id: legacy, pointer: "/machine/sysctls/a~1b", want: "machine: {sysctls: {c: y}}"},
		"half a certificate":           {base: "machine: {ca: {crt: Zmlyc3Q=, key: a2V5}}", id: legacy, pointer: "/machine/ca/key", want: "machine: {ca: {crt: Zmlyc3Q=, key: ''}}"},
		"an element by index":          {base: "machine: {certSANs: [one, two, three]}", id: legacy, pointer: "/machine/certSANs/1", want: "machine: {certSANs: [one, three]}"},
		"an element by its text":       {base: "machine: {certSANs: [one, two, three]}", id: legacy, pointer: "/machine/certSANs/three", want: "machine: {certSANs: [one, two]}"},
		"an index beyond the end":      {base: "machine: {certSANs: [one]}", id: legacy, pointer: "/machine/certSANs/1"},
		"an element by Talos' key":     {base: "machine: {network: {interfaces: [{interface: eth0}, {interface: eth1}]}}", id: legacy, pointer: "/machine/network/interfaces/eth0", want: "machine: {network: {interfaces: [{interface: eth1}]}}"},
		"a field of a keyed element":   {base: "machine: {network: {interfaces: [{interface: eth0}, {interface: eth1, mtu: 1}]}}", id: legacy, pointer: "/machine/network/interfaces/eth1/mtu", want: "machine: {network: {interfaces: [{interface: eth0}, {interface: eth1}]}}"},
		"Talos' key before the index":  {base: "machine: {network: {interfaces: [{interface: e, vlans: [{vlanId: 1}, {vlanId: 0}]}]}}", id: legacy, pointer: "/machine/network/interfaces/e/vlans/0", want: "machine: {network: {interfaces: [{interface: e, vlans: [{vlanId: 1}]}]}}"},
		"an element by its URL":        {base: doc("RegistryMirrorConfig", "x", "endpoints: [{url: 'https://a/v2'}, {url: 'https://b'}]"), id: ID{Kind: "RegistryMirrorConfig", Name: "x"}, pointer: "/endpoints/https:~1~1a~1v2", want: doc("RegistryMirrorConfig", "x", "endpoints: [{url: 'https://b'}]")},
		"an element of a free-form list": {
			base: doc("KubeletConfig", "", "config: {a: [x, {b: 1, c: 2}]}"), id: ID{Kind: "KubeletConfig"}, pointer: "/config/a/1/b",
			want: doc("KubeletConfig", "", "config: {a: [x, {c: 2}]}"),
		},
		"a scalar of a free-form list": {base: doc("KubeletConfig", "", "config: {a: [x, y]}"), id: ID{Kind: "KubeletConfig"}, pointer: "/config/a/x", want: doc("KubeletConfig", "", "config: {a: [y]}")},

		"the legacy document": {base: "machine: {type: worker}", id: legacy, err: "(Config): the legacy document cannot be deleted as a whole; delete fields of it"},
		"the name":            {base: doc("LinkConfig", "eth0", ""), id: eth0, pointer: "/name", err: "(LinkConfig/eth0): /name: what identifies the document cannot be deleted; delete the document"},
		"an unknown field":    {base: doc("LinkConfig", "eth0", ""), id: eth0, pointer: "/mtuu", err: `(LinkConfig/eth0): /mtuu: unknown field; did you mean "mtu"?`},
		"into a scalar":       {base: doc("LinkConfig", "eth0", "mtu: 1"), id: eth0, pointer: "/mtu/x", err: "(LinkConfig/eth0): /mtu/x: the path leads into a plain value"},
		"no pointer":          {base: doc("LinkConfig", "eth0", ""), id: eth0, pointer: "mtu", err: "(LinkConfig/eth0): a path begins with /, such as /provisioning/minSize (JSON pointer)"},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := configFrom(t, test.base)
			changes := 0

			done, err := c.Delete(test.id, test.pointer, func(Change) { changes++ })

			var text string
			if err != nil {
				text = err.Error()
			}

			if diff := cmp.Diff(test.err, text); diff != "" {
				t.Fatalf("error: (-want +got)\n%s", diff)
			}

			want := test.want
			if want == "" {
				want = test.base
			}

			if diff := cmp.Diff(encodeAll(t, configFrom(t, want)), encodeAll(t, c)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}

			if done != (test.want != "") || done != (changes > 0) {
				t.Errorf("got done %v and %d changes, want done %v", done, changes, test.want != "")
			}
		})
	}
}

// TestDeleteMoves: what is behind a removed element keeps its history.
func TestDeleteMoves(t *testing.T) {
	c := configFrom(t, "machine: {network: {interfaces: [{interface: eth0}, {interface: eth1, mtu: 1}]}}")

	var got []string

	if _, err := c.Delete(ID{Kind: LegacyKind}, "/machine/network/interfaces/eth0", func(change Change) {
		got = append(got, change.Op.String()+" "+change.From+" "+change.Pointer)
	}); err != nil {
		t.Fatal(err)
	}

	want := []string{
		"delete  /machine/network/interfaces/0/interface",
		"move /machine/network/interfaces/1/interface /machine/network/interfaces/0/interface",
		"move /machine/network/interfaces/1/mtu /machine/network/interfaces/0/mtu",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestCheckDeletion(t *testing.T) {
	tests := map[string]struct {
		id      ID
		pointer string
		want    string
	}{
		"document":                {id: ID{Kind: "KubePrismConfig"}},
		"named document":          {id: ID{Kind: "UserVolumeConfig", Name: "x"}},
		"field":                   {id: ID{Kind: "UserVolumeConfig", Name: "x"}, pointer: "/provisioning/maxSize"},
		"field of the legacy one": {id: ID{Kind: LegacyKind}, pointer: "/machine/network/interfaces/eth0"},
		"entry of a map":          {id: ID{Kind: "KubeNodeConfig"}, pointer: "/labels/example.com~1rack"},
		"free-form value":         {id: ID{Kind: "KubeletConfig"}, pointer: "/config/anything"},
		"kind mistyped": {
			id:   ID{Kind: "KubeFlanelCNIConfig"},
			want: "(KubeFlanelCNIConfig): unknown kind: this version of Ichor knows no such Talos document; did you mean KubeFlannelCNIConfig?",
		},
		"kind of another system": {
			id:   ID{Kind: "Deployment", Name: "x"},
			want: "(Deployment/x): unknown kind: this version of Ichor knows no such Talos document",
		},
		"name of the legacy document's version": {
			id: ID{Kind: "v1alpha1"}, want: "(v1alpha1): unknown kind: this version of Ichor knows no such Talos document",
		},
		"no kind": {want: "kind is missing; set apiVersion and kind, or machine/cluster for the legacy document"},
		"name of a kind without": {
			id:   ID{Kind: "HostnameConfig", Name: "foo"},
			want: "(HostnameConfig/foo): documents of this kind have no name, and a config has at most one: remove name",
		},
		"name of the legacy document": {
			id: ID{Kind: LegacyKind, Name: "foo"}, pointer: "/machine",
			want: "(Config/foo): documents of this kind have no name, and a config has at most one: remove name",
		},
		"name missing":             {id: ID{Kind: "VolumeConfig"}, want: "(VolumeConfig): name is missing: say which VolumeConfig is meant"},
		"name missing, of a field": {id: ID{Kind: "VolumeConfig"}, pointer: "/mount", want: "(VolumeConfig): name is missing: say which VolumeConfig is meant"},
		"field mistyped": {
			id: ID{Kind: "UserVolumeConfig", Name: "x"}, pointer: "/provisionning",
			want: `(UserVolumeConfig/x): /provisionning: unknown field; did you mean "provisioning"?`,
		},
		"identity": {
			id: ID{Kind: "UserVolumeConfig", Name: "x"}, pointer: "/name",
			want: "(UserVolumeConfig/x): /name: what identifies the document cannot be deleted; delete the document",
		},
		"the legacy document as a whole": {
			id:   ID{Kind: LegacyKind},
			want: "(Config): the legacy document cannot be deleted as a whole; delete fields of it",
		},
		"no pointer": {
			id: ID{Kind: "KubePrismConfig"}, pointer: "port",
			want: "(KubePrismConfig): a path begins with /, such as /provisioning/minSize (JSON pointer)",
		},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := CheckDeletion(test.id, test.pointer); err != nil {
				got = err.Error()
			}

			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestElementPointer: the pointer deletes what `$patch: delete` would.
func TestElementPointer(t *testing.T) {
	legacy := ID{Kind: LegacyKind}

	tests := map[string]struct {
		base             string
		id               ID
		list, key, value string
		want, rest       string // the pointer, and the base without the element
		err              string
	}{
		"by Talos' key": {
			base: "machine: {network: {interfaces: [{interface: eth0}, {interface: eth1}]}}", id: legacy, list: "/machine/network/interfaces", key: "interface", value: "eth0",
			want: "/machine/network/interfaces/eth0", rest: "machine: {network: {interfaces: [{interface: eth1}]}}",
		},
		"by another field of such a list": {
			base: "machine: {network: {interfaces: [{interface: eth0, mtu: 1}, {interface: eth1, mtu: 2}]}}", id: legacy, list: "/machine/network/interfaces", key: "mtu", value: "2",
			want: "/machine/network/interfaces/mtu=2", rest: "machine: {network: {interfaces: [{interface: eth0, mtu: 1}]}}",
		},
		"by a field that is not the first": {
			base: "machine: {files: [{path: /var/a, op: create}, {path: /var/b, op: create}]}", id: legacy, list: "/machine/files", key: "path", value: "/var/a",
			want: "/machine/files/path=~1var~1a", rest: "machine: {files: [{path: /var/b, op: create}]}",
		},
		"by a value that looks like an index": {
			base: doc("NetworkRuleConfig", "x", "portSelector: {ports: [1], protocol: tcp}\ningress: [{subnet: 10.0.0.0/8}, {subnet: 11.0.0.0/8}]"), id: ID{Kind: "NetworkRuleConfig", Name: "x"},
			list: "/ingress", key: "subnet", value: "11.0.0.0/8",
			want: "/ingress/subnet=11.0.0.0~18", rest: doc("NetworkRuleConfig", "x", "portSelector: {ports: [1], protocol: tcp}\ningress: [{subnet: 10.0.0.0/8}]"),
		},
		"within free-form values": {
			base: doc("KubeletConfig", "", "config: {list: [x, {name: x, v: 1}, {name: y}]}"), id: ID{Kind: "KubeletConfig"}, list: "/config/list", key: "name", value: "y",
			want: "/config/list/name=y", rest: doc("KubeletConfig", "", "config: {list: [x, {name: x, v: 1}]}"),
		},
		"that is not there": {
			base: "machine: {files: [{path: /var/a, op: create}]}", id: legacy, list: "/machine/files", key: "path", value: "/var/c",
			want: "/machine/files/path=~1var~1c", rest: "machine: {files: [{path: /var/a, op: create}]}",
		},
		"by a field that there is not": {base: "machine: {}", id: legacy, list: "/machine/files", key: "pth", err: `elements of this list have no field "pth" to select one by`},
		"of what is no list":           {base: "machine: {}", id: legacy, list: "/machine/sysctls", key: "a", err: "there is no list"},
		"of what is not there":         {base: "machine: {}", id: legacy, list: "/machine/nope", key: "a", err: "there is no such list"},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ElementPointer(test.id, test.list, test.key, test.value)

			text := ""
			if err != nil {
				text = err.Error()
			}

			if diff := cmp.Diff([]string{test.want, test.err}, []string{got, text}); diff != "" {
				t.Fatalf("(-want +got)\n%s", diff)
			}

			if err != nil {
				return
			}

			c := configFrom(t, test.base)
			if _, err := c.Delete(test.id, got, nil); err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(encodeAll(t, configFrom(t, test.rest)), encodeAll(t, c)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestDeleteByNumberedKey: a number that is the key of a list's elements is no index.
func TestDeleteByNumberedKey(t *testing.T) {
	const base = "machine: {network: {interfaces: [{interface: e, vlans: [{vlanId: 5}, {vlanId: 6}]}]}}"

	c := configFrom(t, base)

	if _, err := c.Delete(ID{Kind: LegacyKind}, "/machine/network/interfaces/e/vlans/1", nil); err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(encodeAll(t, configFrom(t, base)), encodeAll(t, c)); diff != "" {
		t.Errorf("VLAN 1 is not there, and another one went (-want +got)\n%s", diff)
	}
}
