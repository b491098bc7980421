// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
)

// doc writes a modern document.
func doc(kind, name, body string) string {
	head := "apiVersion: v1alpha1\nkind: " + kind + "\n"
	if name != "" {
		head += "name: " + name + "\n"
	}

	return head + strings.TrimLeft(body, "\n")
}

func docs(documents ...string) string { return strings.Join(documents, "\n---\n") }

// configFrom starts from documents as text.
func configFrom(t testing.TB, text string) *Config {
	t.Helper()

	if text == "" {
		return &Config{}
	}

	var documents []config.Document
	for _, d := range mustLoad(t, text).documents {
		documents = append(documents, d.doc)
	}

	return configOf(t, documents...)
}

const longhorn = `
provisioning:
  diskSelector:
    match: disk.size > 10u
  minSize: 10GiB
  maxSize: 50%
  grow: true
`

func TestApply(t *testing.T) {
	tests := map[string]struct{ base, patch, want string }{
		"a sparse patch keeps the disk selector and sizes": {
			base:  doc("UserVolumeConfig", "longhorn", longhorn),
			patch: doc("UserVolumeConfig", "longhorn", "filesystem: {type: ext4}"),
			want:  doc("UserVolumeConfig", "longhorn", longhorn+"filesystem: {type: ext4}"),
		},
		"a size in bytes replaces one in percent": {
			base:  doc("UserVolumeConfig", "longhorn", "provisioning: {maxSize: 50%}"),
			patch: doc("UserVolumeConfig", "longhorn", "provisioning: {maxSize: 20GiB}"),
			want:  doc("UserVolumeConfig", "longhorn", "provisioning: {maxSize: 20GiB}"),
		},
		"a size in percent replaces one in bytes": {
			base:  doc("UserVolumeConfig", "longhorn", "provisioning: {maxSize: 20GiB}"),
			patch: doc("UserVolumeConfig", "longhorn", "provisioning: {maxSize: 50%}"),
			want:  doc("UserVolumeConfig", "longhorn", "provisioning: {maxSize: 50%}"),
		},
		"a negative size loses its sign": {
			base:  doc("UserVolumeConfig", "longhorn", "provisioning: {maxSize: -5GiB}"),
			patch: doc("UserVolumeConfig", "longhorn", "provisioning: {maxSize: 5GiB}"),
			want:  doc("UserVolumeConfig", "longhorn", "provisioning: {maxSize: 5GiB}"),
		},
		"an empty size takes the size away": {
			base:  doc("UserVolumeConfig", "longhorn", "provisioning: {minSize: 1GiB, maxSize: 20GiB}"),
			patch: doc("UserVolumeConfig", "longhorn", `provisioning: {maxSize: ""}`),
			want:  doc("UserVolumeConfig", "longhorn", "provisioning: {minSize: 1GiB}"),
		},
		"an installer patch keeps the selector": {
			base:  doc("UnattendedInstallConfig", "", "provisioning: {diskSelector: {match: disk.rotational}}"),
			patch: doc("UnattendedInstallConfig", "", "installer: {image: example.com/installer:v1}"),
			want:  doc("UnattendedInstallConfig", "", "provisioning: {diskSelector: {match: disk.rotational}}\ninstaller: {image: example.com/installer:v1}"),
		},
		"a URL is replaced as a whole": {
			base:  doc("KmsgLogConfig", "log", "url: tcp://user:pass@old:1/path?query=1#frag"),
			patch: doc("KmsgLogConfig", "log", "url: tcp://new:2"),
			want:  doc("KmsgLogConfig", "log", "url: tcp://new:2"),
		},
		"the legacy endpoint is replaced as a whole": {
			base:  "cluster: {controlPlane: {endpoint: 'https://u:p@old:6443/x?y=z'}}",
			patch: "cluster: {controlPlane: {endpoint: 'https://new'}}",
			want:  "cluster: {controlPlane: {endpoint: 'https://new'}}",
		},
		"the zero of an enum takes effect": {
			base:  doc("NetworkDefaultActionConfig", "", "ingress: block"),
			patch: doc("NetworkDefaultActionConfig", "", "ingress: accept"),
			want:  doc("NetworkDefaultActionConfig", "", "ingress: accept"),
		},
		"port 0 takes effect": {
			base:  doc("KubePrismConfig", "", "port: 7445"),
			patch: doc("KubePrismConfig", "", "port: 0"),
			want:  doc("KubePrismConfig", "", "port: 0"),
		},
		"mtu 0 takes effect": {
			base:  doc("LinkConfig", "eth0", "mtu: 9000\nup: true"),
			patch: doc("LinkConfig", "eth0", "mtu: 0"),
			want:  doc("LinkConfig", "eth0", "up: true"),
		},
		"an empty string takes effect": {
			base:  doc("KubeletConfig", "", "image: example.com/kubelet:v1"),
			patch: doc("KubeletConfig", "", `image: ""`),
			want:  doc("KubeletConfig", "", `image: ""`),
		},
		"a null says nothing": {
			base:  doc("KubeletConfig", "", "image: example.com/kubelet:v1"),
			patch: doc("KubeletConfig", "", "image: null\nextraArgs:\nconfig: ~"),
			want:  doc("KubeletConfig", "", "image: example.com/kubelet:v1"),
		},
		"a null label is an empty one": {
			base:  doc("KubeNodeConfig", "", "labels: {a: x, b: y}"),
			patch: doc("KubeNodeConfig", "", "labels: {a: , c: null}"),
			want:  doc("KubeNodeConfig", "", `labels: {a: "", b: y, c: ""}`),
		},
		"two documents of one identity merge in order": {
			base: doc("UserVolumeConfig", "longhorn", longhorn),
			patch: docs(doc("UserVolumeConfig", "longhorn", "provisioning: {minSize: 20GiB}"),
				doc("UserVolumeConfig", "longhorn", "provisioning: {maxSize: 30GiB}")),
			want: doc("UserVolumeConfig", "longhorn", strings.NewReplacer("10GiB", "20GiB", "50%", "30GiB").Replace(longhorn)),
		},
		"two documents of one identity that is new merge in order": {
			patch: docs(doc("UserVolumeConfig", "longhorn", longhorn), doc("UserVolumeConfig", "longhorn", "provisioning: {grow: false}")),
			want:  doc("UserVolumeConfig", "longhorn", strings.Replace(longhorn, "true", "false", 1)),
		},
		"a document that is not there is appended, the legacy one put first": {
			base:  doc("KubePrismConfig", "", "port: 1"),
			patch: docs(doc("KubeNodeConfig", "", "labels: {a: b}"), "machine: {type: worker}"),
			want:  docs("machine: {type: worker}", doc("KubePrismConfig", "", "port: 1"), doc("KubeNodeConfig", "", "labels: {a: b}")),
		},
		"names tell documents apart": {
			base:  docs(doc("LinkConfig", "eth0", "mtu: 1"), doc("LinkConfig", "eth1", "mtu: 2")),
			patch: doc("LinkConfig", "eth1", "mtu: 3"),
			want:  docs(doc("LinkConfig", "eth0", "mtu: 1"), doc("LinkConfig", "eth1", "mtu: 3")),
		},
		"lists append": {
			base:  doc("RegistryMirrorConfig", "docker.io", "endpoints: [{url: 'https://a'}]"),
			patch: doc("RegistryMirrorConfig", "docker.io", "endpoints: [{url: 'https://b'}]"),
			want:  doc("RegistryMirrorConfig", "docker.io", "endpoints: [{url: 'https://a'}, {url: 'https://b'}]"),
		},
		"lists that Talos replaces are replaced": {
			base:  doc("KubeNetworkConfig", "", "podSubnets: [10.0.0.0/8]\nserviceSubnets: [10.96.0.0/12]"),
			patch: doc("KubeNetworkConfig", "", "podSubnets: [10.1.0.0/16]"),
			want:  doc("KubeNetworkConfig", "", "podSubnets: [10.1.0.0/16]\nserviceSubnets: [10.96.0.0/12]"),
		},
		"free-form values that Talos replaces are replaced": {
			base:  doc("KubeAuditPolicyConfig", "", "configuration: {rules: [{level: None}], omitStages: [X]}"),
			patch: doc("KubeAuditPolicyConfig", "", "configuration: {rules: [{level: Metadata}]}"),
			want:  doc("KubeAuditPolicyConfig", "", "configuration: {rules: [{level: Metadata}]}"),
		},
		"free-form values merge deeply, zeros and nulls included": {
			base:  doc("KubeletConfig", "", "config: {maxPods: 110, authentication: {anonymous: {enabled: true}, x: y}, list: [a], gone: 1}"),
			patch: doc("KubeletConfig", "", "config: {maxPods: 0, authentication: {anonymous: {enabled: false}}, list: [b], gone: null}"),
			want:  doc("KubeletConfig", "", "config: {maxPods: 0, authentication: {anonymous: {enabled: false}, x: y}, list: [a, b], gone: null}"),
		},
		"a free-form scalar of another type replaces": {
			base:  doc("KubeletConfig", "", "config: {maxPods: 110}"),
			patch: doc("KubeletConfig", "", `config: {maxPods: "200"}`),
			want:  doc("KubeletConfig", "", `config: {maxPods: "200"}`),
		},
		"a date in free-form values stays text": {
			base:  doc("KubeletConfig", "", "config: {a: 1}"),
			patch: doc("KubeletConfig", "", "config: {date: 2026-01-02}"),
			want:  doc("KubeletConfig", "", "config: {a: 1, date: '2026-01-02'}"),
		},
		"arguments are replaced per key": {
			base:  doc("KubeletConfig", "", "extraArgs: {a: x, b: [y, z]}"),
			patch: doc("KubeletConfig", "", "extraArgs: {b: w}"),
			want:  doc("KubeletConfig", "", "extraArgs: {a: x, b: w}"),
		},
		"legacy interfaces merge by name, and their vlans by id": {
			base: "machine: {network: {interfaces: [{interface: eth0, mtu: 9000, vlans: [{vlanId: 1, mtu: 1400}]}, {interface: eth1}]}}",
			patch: "machine: {network: {interfaces: [{interface: eth0, dhcp: true, vlans: [{vlanId: 1, dhcp: true}, {vlanId: 2}]}," +
				" {interface: eth2}]}}",
			want: "machine: {network: {interfaces: [{interface: eth0, mtu: 9000, dhcp: true, vlans: [{vlanId: 1, mtu: 1400, dhcp: true}, {vlanId: 2}]}," +
				" {interface: eth1}, {interface: eth2}]}}",
		},
		"legacy interfaces merge by selector": {
			base:  "machine: {network: {interfaces: [{deviceSelector: {driver: virtio, physical: true}, mtu: 9000}]}}",
			patch: "machine: {network: {interfaces: [{deviceSelector: {driver: virtio, physical: true}, dhcp: true}]}}",
			want:  "machine: {network: {interfaces: [{deviceSelector: {driver: virtio, physical: true}, mtu: 9000, dhcp: true}]}}",
		},
		"admission plugins merge by name": {
			base:  "cluster: {apiServer: {admissionControl: [{name: PodSecurity, configuration: {a: 1}}]}}",
			patch: "cluster: {apiServer: {admissionControl: [{name: PodSecurity, configuration: {b: 2}}, {name: Other}]}}",
			want:  "cluster: {apiServer: {admissionControl: [{name: PodSecurity, configuration: {a: 1, b: 2}}, {name: Other}]}}",
		},
		"extension config files merge by path": {
			base:  doc("ExtensionServiceConfig", "x", "configFiles: [{mountPath: /a, content: old}]"),
			patch: doc("ExtensionServiceConfig", "x", "configFiles: [{mountPath: /a, content: new}, {mountPath: /b, content: b}]"),
			want:  doc("ExtensionServiceConfig", "x", "configFiles: [{mountPath: /a, content: new}, {mountPath: /b, content: b}]"),
		},
		"image verification rules are replaced by pattern": {
			base:  doc("ImageVerificationConfig", "", "rules: [{image: a, skip: true}, {image: b}]"),
			patch: doc("ImageVerificationConfig", "", "rules: [{image: a, deny: true}, {image: c}]"),
			want:  doc("ImageVerificationConfig", "", "rules: [{image: a, deny: true}, {image: b}, {image: c}]"),
		},
		"legacy inline manifests are replaced by name": {
			base:  "cluster: {inlineManifests: [{name: cni, contents: old}, {name: x, contents: x}]}",
			patch: "cluster: {inlineManifests: [{name: cni, contents: new}, {name: y, contents: y}]}",
			want:  "cluster: {inlineManifests: [{name: cni, contents: new}, {name: x, contents: x}, {name: y, contents: y}]}",
		},
		"half a certificate keeps the other half": {
			base:  "machine: {ca: {crt: Zmlyc3Q=, key: a2V5}}",
			patch: "machine: {ca: {crt: c2Vjb25k}}",
			want:  "machine: {ca: {crt: c2Vjb25k, key: a2V5}}",
		},
		"a static hostname clears auto": {
			base:  doc("HostnameConfig", "", "auto: stable"),
			patch: doc("HostnameConfig", "", "hostname: w1"),
			want:  doc("HostnameConfig", "", "hostname: w1"),
		},
		"auto clears a static hostname": {
			base:  doc("HostnameConfig", "", "hostname: w1"),
			patch: doc("HostnameConfig", "", "auto: stable"),
			want:  doc("HostnameConfig", "", "auto: stable"),
		},
		"auto off with a hostname is kept as it is said": {
			base:  doc("HostnameConfig", "", "auto: stable"),
			patch: doc("HostnameConfig", "", "auto: \"off\"\nhostname: w1"),
			want:  doc("HostnameConfig", "", "auto: \"off\"\nhostname: w1"),
		},
		"auto off alone keeps the hostname": {
			base:  doc("HostnameConfig", "", "hostname: w1"),
			patch: doc("HostnameConfig", "", `auto: "off"`),
			want:  doc("HostnameConfig", "", "auto: \"off\"\nhostname: w1"),
		},
		"aliases and merge keys are spelled out": {
			base:  doc("KubeNodeConfig", "", "labels: {a: x}"),
			patch: doc("KubeNodeConfig", "", "annotations: &common {one: \"1\"}\nlabels: {<<: *common, b: y}"),
			want:  doc("KubeNodeConfig", "", "annotations: {one: \"1\"}\nlabels: {a: x, b: y, one: \"1\"}"),
		},
		"JSON is YAML": {
			base:  doc("KubePrismConfig", "", "port: 1"),
			patch: `{"apiVersion":"v1alpha1","kind":"KubePrismConfig","port":2}`,
			want:  doc("KubePrismConfig", "", "port: 2"),
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

			if diff := cmp.Diff(leavesByDocument(c), replayed); diff != "" {
				t.Errorf("changes: (-after +replayed)\n%s", diff)
			}
		})
	}
}

func leavesByDocument(c *Config) map[ID]map[string]string {
	out := map[ID]map[string]string{}
	for _, d := range c.docs {
		out[d.id] = leafMap(d.flat())
	}

	return out
}

func encodeAll(t testing.TB, c *Config) string {
	t.Helper()

	b, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}

	return string(b)
}

func TestApplyRefusesAnotherShape(t *testing.T) {
	tests := map[string]struct{ base, patch, want string }{
		"map and scalar": {
			base:  "config: {evictionHard: {memory.available: 1Gi}}",
			patch: "config: {evictionHard: none}",
			want: "document 0 (KubeletConfig): /config/evictionHard: a plain value cannot replace a map; " +
				"if that is meant, delete the old value first",
		},
		"list and map": {
			base:  "config: {a/b: {list: [x]}}",
			patch: "config: {a/b: {list: {x: y}}}",
			want: "document 0 (KubeletConfig): /config/a~1b/list: a map cannot replace a list; " +
				"if that is meant, delete the old value first",
		},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := configFrom(t, doc("KubeletConfig", "", test.base)).Apply(mustLoad(t, doc("KubeletConfig", "", test.patch)), nil)
			if err == nil {
				t.Fatal("want an error")
			}

			if diff := cmp.Diff(test.want, err.Error()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestApplyTwice: the only patches that change something when applied again are those that append to lists.
func TestApplyTwice(t *testing.T) {
	tests := map[string]struct {
		patch string
		same  bool
	}{
		"scalars and maps":  {patch: doc("KubeNodeConfig", "", "labels: {a: b}\nnodeIP: {validSubnets: []}"), same: true},
		"a keyed list":      {patch: "machine: {network: {interfaces: [{interface: eth0, mtu: 1}]}}", same: true},
		"a replaced list":   {patch: doc("KubeNetworkConfig", "", "podSubnets: [10.0.0.0/8]"), same: true},
		"an appending list": {patch: doc("RegistryMirrorConfig", "x", "endpoints: [{url: 'https://a'}]"), same: false},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := &Config{}
			mustApply(t, c, mustLoad(t, test.patch), nil)
			once := encodeAll(t, c)
			mustApply(t, c, mustLoad(t, test.patch), nil)

			if same := once == encodeAll(t, c); same != test.same {
				t.Errorf("got same %v, want %v:\n%s", same, test.same, encodeAll(t, c))
			}
		})
	}
}

// TestReached: a document that is set to what it was is reached, one that no patch names is not.
func TestReached(t *testing.T) {
	c := configFrom(t, docs("machine: {type: worker}", doc("KubePrismConfig", "", "port: 1"), doc("LinkConfig", "eth0", "mtu: 1")))
	mustApply(t, c, mustLoad(t, docs(doc("KubePrismConfig", "", "port: 1"), doc("LinkConfig", "eth0", "mtu: 2"), doc("LinkConfig", "eth1", ""))), nil)

	want := []ID{{Kind: "KubePrismConfig"}, {Kind: "LinkConfig", Name: "eth0"}, {Kind: "LinkConfig", Name: "eth1"}}
	if diff := cmp.Diff(want, c.Reached()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestPointersOfArguments: an argument is listed by its items where it is written as a list.
func TestPointersOfArguments(t *testing.T) {
	c := configFrom(t, doc("KubeletConfig", "", "extraArgs: {a: x, b: [y], c: [y, z], d: [], e: ''}"))

	want := []string{
		"/extraArgs/a", "/extraArgs/b/0", "/extraArgs/c/0", "/extraArgs/c/1", "/extraArgs/d/0", "/extraArgs/e",
	}

	var got []string

	for _, pointer := range c.ReachedPointers(ID{Kind: "KubeletConfig"}) {
		if strings.HasPrefix(pointer, "/extraArgs") {
			got = append(got, pointer)
		}
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}

	if pointers := c.ReachedPointers(ID{Kind: "KubePrismConfig"}); pointers != nil {
		t.Errorf("pointers of a document that is not there: %v", pointers)
	}
}

func TestValue(t *testing.T) {
	c := configFrom(t, doc("LinkConfig", "eth0", "mtu: 9000"))
	id := ID{Kind: "LinkConfig", Name: "eth0"}

	if value, ok := c.Value(id, "/mtu"); !ok || value.Reveal() != "9000" {
		t.Errorf("got %s, %v", value, ok)
	}

	if _, ok := c.Value(id, "/up"); ok {
		t.Error("a field that is not set has a value")
	}

	if _, ok := c.Value(ID{Kind: "LinkConfig", Name: "eth1"}, "/mtu"); ok {
		t.Error("a document that is not there has a value")
	}
}
