// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"maps"
	"strings"
	"testing"
)

// wrongAlone has what a node cannot use whatever it is merged with: both a render and admission refuse it.
var wrongAlone = map[string]struct{ contract, document, want string }{
	"state for the API server": {
		"v1.13", "{cluster: {apiServer: {extraVolumes: [{hostPath: /system/secrets/etcd, mountPath: /etcd}]}}}",
		`Config: /cluster/apiServer/extraVolumes/0/hostPath: "/system/secrets/etcd" gives the program /system, which is Talos' own`,
	},
	"all of the machine for the scheduler": {
		"v1.12", "{cluster: {scheduler: {extraVolumes: [{hostPath: /, mountPath: /host}]}}}",
		`Config: /cluster/scheduler/extraVolumes/0/hostPath: "/" gives the program /system`,
	},
	"over the API server's secrets": {
		"v1.13", "{cluster: {apiServer: {extraVolumes: [{hostPath: /var/auth, mountPath: /system/secrets/kubernetes/kube-apiserver/}]}}}",
		"Config: /cluster/apiServer/extraVolumes/0/mountPath: ",
	},
	"over the controller manager's root": {
		"v1.12", "{cluster: {controllerManager: {extraVolumes: [{hostPath: /var/auth, mountPath: /}]}}}",
		"Config: /cluster/controllerManager/extraVolumes/0/mountPath: ",
	},
	"over the kubelet's certificates": {
		"v1.13", "{machine: {kubelet: {extraMounts: [{source: /var/x, destination: /var/lib/kubelet, type: bind}]}}}",
		`Config: /machine/kubelet/extraMounts/0/destination: "/var/lib/kubelet" lies over /var/lib/kubelet/pki`,
	},
	"etcd's data for the kubelet": {
		"v1.12", "{machine: {kubelet: {extraMounts: [{source: /var/lib/../lib/etcd, destination: /var/x, type: bind}]}}}",
		"Config: /machine/kubelet/extraMounts/0/source: ",
	},
	"state for a container": {
		"v1.14", "{apiVersion: v1alpha1, kind: ContainerConfig, name: c, image: registry.example.com/agent:1.2.3, mounts: [{hostPath: {source: /system/state, destination: /state}}]}",
		"ContainerConfig/c: /mounts/0/hostPath/source: ",
	},
	"file in the kubelet's certificates": {
		"v1.12", "{machine: {files: [{path: /var/lib/kubelet/pki/kubelet.key, op: create, content: a, permissions: 0600}]}}",
		"Config: /machine/files/0/path: ",
	},
	"anonymous requests to the kubelet": {
		"v1.12", "{machine: {kubelet: {extraArgs: {anonymous-auth: 'true'}}}}",
		"Config: /machine/kubelet/extraArgs/anonymous-auth: set by Talos itself",
	},
	"a kubelet that asks nobody": {
		"v1.14", "{apiVersion: v1alpha1, kind: KubeletConfig, extraArgs: {authorization-mode: [Webhook, AlwaysAllow]}}",
		"KubeletConfig: /extraArgs/authorization-mode: set by Talos itself",
	},
	"no authorization": {
		"v1.13", "{cluster: {apiServer: {extraArgs: {authorization-mode: 'Node, AlwaysAllow'}}}}",
		"Config: /cluster/apiServer/extraArgs/authorization-mode: has the mode AlwaysAllow, which asks nobody",
	},
	"sysctl with a space":        {"v1.14", "{apiVersion: v1alpha1, kind: SysctlConfig, params: {'vm.swappiness ': '1'}}", "SysctlConfig: /params/vm.swappiness : is no name of a kernel parameter"},
	"sysctl as an assignment":    {"v1.12", "{machine: {sysctls: {'vm.swappiness = 1': ''}}}", "Config: /machine/sysctls/vm.swappiness = 1: is no name"},
	"sysctl that leaves /proc":   {"v1.14", "{apiVersion: v1alpha1, kind: SysctlConfig, params: {../../etc/x: '1'}}", "SysctlConfig: /params/..~1..~1etc~1x: is no name"},
	"sysctl in two spellings":    {"v1.14", "{apiVersion: v1alpha1, kind: SysctlConfig, params: {net/ipv4/ip_forward: '1', net.ipv4.ip_forward: '0'}}", "SysctlConfig: /params/net~1ipv4~1ip_forward: is the same parameter as net.ipv4.ip_forward"},
	"sysfs with an empty part":   {"v1.14", "{apiVersion: v1alpha1, kind: SysfsConfig, params: {kernel..mm: '1'}}", "SysfsConfig: /params/kernel..mm: is no name of a value below /sys"},
	"legacy sysfs":               {"v1.13", "{machine: {sysfs: {/sys/kernel/mm: '1'}}}", "Config: /machine/sysfs/~1sys~1kernel~1mm: is no name"},
	"module with parameters":     {"v1.14", "{apiVersion: v1alpha1, kind: KernelModuleConfig, name: loop max_loop=8}", "KernelModuleConfig/loop max_loop=8: /name: is no name of a kernel module"},
	"legacy module as a file":    {"v1.12", "{machine: {kernel: {modules: [{name: drbd}, {name: drbd.ko}]}}}", "Config: /machine/kernel/modules/1/name: is no name"},
	"udev rules in one entry":    {"v1.14", "{apiVersion: v1alpha1, kind: UdevRulesConfig, rules: [\"KERNEL==\\\"a\\\", MODE=\\\"0660\\\"\\nKERNEL==\\\"b\\\"\"]}", "UdevRulesConfig: /rules/0: has several lines"},
	"legacy udev rules":          {"v1.12", "{machine: {udev: {rules: [KERNEL==\"a\", \"KERNEL==\\\"a\\\" \\\\\\n MODE=\\\"0660\\\"\"]}}}", "Config: /machine/udev/rules/1: has several lines"},
	"header with a colon":        {"v1.14", "{apiVersion: v1alpha1, kind: KubeExternalManifestConfig, name: a, url: 'https://example.com/a.yaml', headers: {'X-A:': b}}", "KubeExternalManifestConfig/a: /headers/X-A:: is no name of an HTTP header"},
	"legacy header of two lines": {"v1.13", "{cluster: {extraManifests: ['https://example.com/a.yaml'], extraManifestHeaders: {X-A: \"hunter2\\nX-B: c\"}}}", "Config: /cluster/extraManifestHeaders/X-A: has a value that no HTTP header can have"},
	"broken TOML": {
		"v1.14", "{apiVersion: v1alpha1, kind: CRICustomizationConfig, name: a, content: \"[plugins]\\n  key = hunter2\\n\"}",
		"CRICustomizationConfig/a: /content: is not TOML (line 2, column 9), and containerd would not start",
	},
	"TOML with a table twice": {
		"v1.14", "{apiVersion: v1alpha1, kind: CRICustomizationConfig, name: a, content: \"[plugins]\\n[plugins]\\n\"}", "CRICustomizationConfig/a: /content: is not TOML",
	},
	"broken TOML in a file": {
		"v1.12", "{machine: {files: [{path: /etc/cri/conf.d/20-customization.part, op: create, content: 'hunter2', permissions: 0644}]}}",
		"Config: /machine/files/0/content: is not TOML",
	},
}

func TestWrongAlone(t *testing.T) {
	t.Parallel()

	cases := maps.Clone(wrongAlone)
	maps.Copy(cases, wrongValues)
	maps.Copy(cases, wrongLegacy)

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			rendered := renderTalos(t, tc.contract, tc.document)

			for where, err := range map[string]error{"render": rendered, "admission": admitTalos(t, tc.document)} {
				if err == nil || !strings.HasPrefix(err.Error(), bad+"spec.documents[0]: "+tc.want) {
					t.Errorf("%s: got %v, want %q", where, err, tc.want)

					continue
				}

				if strings.Contains(err.Error(), "hunter2") {
					t.Errorf("%s shows a value: %v", where, err)
				}
			}
		})
	}
}

// TestRightAlone has what looks like the above and is meant.
func TestRightAlone(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct{ contract, document string }{
		"folder of the API server":   {"v1.13", "{cluster: {apiServer: {extraVolumes: [{hostPath: /var/lib/auth, mountPath: /etc/kubernetes/auth, readonly: true}]}}}"},
		"folder of the kubelet":      {"v1.13", "{machine: {kubelet: {extraMounts: [{source: /var/lib/kubelet-plugins, destination: /var/lib/kubelet-plugins, type: bind}]}}}"},
		"no anonymous requests":      {"v1.12", "{cluster: {apiServer: {extraArgs: {anonymous-auth: 'false', authorization-mode: 'Node,RBAC'}}}}"},
		"kubelet's own values":       {"v1.13", "{machine: {kubelet: {extraArgs: {anonymous-auth: 'false', authorization-mode: Webhook, authentication-token-webhook: 'true'}}}}"},
		"etcd without a quota":       {"v1.14", "{cluster: {etcd: {extraArgs: {quota-backend-bytes: '-1'}}}}"},
		"sysctl of a VLAN":           {"v1.14", "{apiVersion: v1alpha1, kind: SysctlConfig, params: {net/ipv6/conf/eth0.100/disable_ipv6: '1', net.ipv4.conf.br-0.rp_filter: '2'}}"},
		"sysctl twice, same value":   {"v1.14", "{apiVersion: v1alpha1, kind: SysctlConfig, params: {net/ipv4/ip_forward: '1', net.ipv4.ip_forward: '1'}}"},
		"udev rule that goes on":     {"v1.14", "{apiVersion: v1alpha1, kind: UdevRulesConfig, rules: [\"KERNEL==\\\"a\\\",\\n  MODE=\\\"0660\\\"\\n\"]}"},
		"paths without a login":      {"v1.14", "{apiVersion: v1alpha1, kind: KubeAuthenticationConfig, configuration: {anonymous: {enabled: true, conditions: [{path: /livez}]}}}"},
		"module with both dashes":    {"v1.14", "{apiVersion: v1alpha1, kind: KernelModuleConfig, name: snd-hda_intel}"},
		"TOML with a dotted table":   {"v1.14", "{apiVersion: v1alpha1, kind: CRICustomizationConfig, name: a, content: \"[plugins.'io.containerd.cri.v1.runtime']\\n  a = true\\n\"}"},
		"container beside the state": {"v1.14", "{apiVersion: v1alpha1, kind: ContainerConfig, name: c, image: registry.example.com/agent:1.2.3, mounts: [{hostPath: {source: /var/log, destination: /logs}}]}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if err := renderTalos(t, tc.contract, tc.document); err != nil {
				t.Error(err)
			}
		})
	}
}
