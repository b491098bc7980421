// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
)

// TestTwoForms renders a document in the Cluster layer beside a legacy one in the Pool layer. Talos joins the two on the node.
func TestTwoForms(t *testing.T) {
	t.Parallel()

	const (
		document = "{apiVersion: v1alpha1, kind: "
		mirror   = document + "RegistryMirrorConfig, name: docker.io, endpoints: [{url: 'https://mirror.example.com'}], skipFallback: true}"
		pod      = "{apiVersion: v1, kind: Pod, metadata: {name: probe}, spec: {containers: [{name: c, image: a}]}}"
	)

	for name, tc := range map[string]struct {
		modern, legacy string // documents, as Talos has them
		at, other      string // the legacy field, and the other's document and field; none when both are fine
		write          string
	}{
		"sysctl":          {document + "SysctlConfig, params: {vm.swappiness: '1'}}", "{machine: {sysctls: {vm.swappiness: '60'}}}", "/machine/sysctls/vm.swappiness", "SysctlConfig /params/vm.swappiness", "SysctlConfig (params)"},
		"sysctl, slashes": {document + "SysctlConfig, params: {net/ipv4/ip_forward: '1'}}", "{machine: {sysctls: {net.ipv4.ip_forward: '0'}}}", "/machine/sysctls/net.ipv4.ip_forward", "SysctlConfig /params/net~1ipv4~1ip_forward", "SysctlConfig (params)"},
		"same sysctl":     {document + "SysctlConfig, params: {vm.swappiness: '1'}}", "{machine: {sysctls: {vm.swappiness: '1', vm.overcommit_memory: '2'}}}", "", "", ""},
		"sysfs":           {document + "SysfsConfig, params: {kernel.mm.ksm.run: '1'}}", "{machine: {sysfs: {kernel.mm.ksm.run: '0'}}}", "/machine/sysfs/kernel.mm.ksm.run", "SysfsConfig /params/kernel.mm.ksm.run", "SysfsConfig (params)"},
		"environment":     {document + "EnvironmentConfig, variables: {http_proxy: 'http://a'}}", "{machine: {env: {http_proxy: 'http://b'}}}", "/machine/env/http_proxy", "EnvironmentConfig /variables/http_proxy", "EnvironmentConfig (variables)"},
		"module":          {document + "KernelModuleConfig, name: loop, parameters: [max_loop=8]}", "{machine: {kernel: {modules: [{name: btrfs}, {name: loop}]}}}", "/machine/kernel/modules/1", "KernelModuleConfig/loop", "KernelModuleConfig"},
		"same module":     {document + "KernelModuleConfig, name: loop}", "{machine: {kernel: {modules: [{name: loop}]}}}", "", "", ""},
		"udev rule":       {document + "UdevRulesConfig, rules: [KERNEL==\"a\"]}", "{machine: {udev: {rules: [KERNEL==\"a\", KERNEL==\"b\"]}}}", "/machine/udev/rules/1", "UdevRulesConfig, whose rules", "UdevRulesConfig (rules)"},
		"same udev rule":  {document + "UdevRulesConfig, rules: [KERNEL==\"a\"]}", "{machine: {udev: {rules: [KERNEL==\"a\"]}}}", "", "", ""},
		"mirror":          {mirror, "{machine: {registries: {mirrors: {docker.io: {endpoints: ['https://other.example.com'], skipFallback: true}}}}}", "/machine/registries/mirrors/docker.io", "RegistryMirrorConfig/docker.io", "RegistryMirrorConfig"},
		"mirror, flag":    {mirror, "{machine: {registries: {mirrors: {docker.io: {endpoints: ['https://mirror.example.com']}}}}}", "/machine/registries/mirrors/docker.io", "RegistryMirrorConfig/docker.io", "RegistryMirrorConfig"},
		"same mirror":     {mirror, "{machine: {registries: {mirrors: {docker.io: {endpoints: ['https://mirror.example.com'], skipFallback: true}, ghcr.io: {endpoints: ['https://other.example.com']}}}}}", "", "", ""},
		"credentials":     {document + "RegistryAuthConfig, name: a.example.com, username: a, password: p1}", "{machine: {registries: {config: {a.example.com: {auth: {username: a, password: p2}}}}}}", "/machine/registries/config/a.example.com/auth", "RegistryAuthConfig/a.example.com", "RegistryAuthConfig"},
		"TLS":             {document + "RegistryTLSConfig, name: a.example.com, insecureSkipVerify: false}", "{machine: {registries: {config: {a.example.com: {tls: {insecureSkipVerify: true}}}}}}", "/machine/registries/config/a.example.com/tls", "RegistryTLSConfig/a.example.com", "RegistryTLSConfig"},
		"same TLS":        {document + "RegistryTLSConfig, name: a.example.com, insecureSkipVerify: true}", "{machine: {registries: {config: {a.example.com: {tls: {insecureSkipVerify: true}}}}}}", "", "", ""},
		"static pod":      {document + "KubeStaticPodConfig, name: probe, pod: " + pod + "}", "{machine: {pods: [" + strings.Replace(pod, "image: a", "image: b", 1) + "]}}", "/machine/pods/0", "KubeStaticPodConfig/probe /pod", "KubeStaticPodConfig"},
		"same static pod": {document + "KubeStaticPodConfig, name: probe, pod: " + pod + "}", "{machine: {pods: [" + pod + "]}}", "", "", ""},
		"mtu":             {document + "LinkConfig, name: eth0, mtu: 9000}", "{machine: {network: {interfaces: [{interface: eth0, mtu: 1500, addresses: [10.0.0.2/24]}]}}}", "/machine/network/interfaces/0/mtu", "LinkConfig/eth0 /mtu", "LinkConfig (mtu)"},
		"addresses alone": {document + "LinkConfig, name: eth0, mtu: 9000}", "{machine: {network: {interfaces: [{interface: eth0, addresses: [10.0.0.2/24]}]}}}", "", "", ""},
		"bond":            {document + "BondConfig, name: bond0, links: [eth0], bondMode: active-backup}", "{machine: {network: {interfaces: [{interface: bond0, bond: {mode: 802.3ad, interfaces: [eth1]}}]}}}", "/machine/network/interfaces/0", "BondConfig/bond0", "BondConfig"},
		"VLAN":            {document + "VLANConfig, name: eth0.7, parent: eth0, vlanID: 7}", "{machine: {network: {interfaces: [{interface: eth0, vlans: [{vlanId: 7, addresses: [10.0.0.2/24]}]}]}}}", "/machine/network/interfaces/0/vlans/0", "VLANConfig/eth0.7", "VLANConfig"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			in := input(t, "v1.14", false)
			in.Patches = []*machineconfig.Patch{
				talosPatch(t, "all", bootstrapv1.PatchLayerCluster, tc.modern), talosPatch(t, "some", bootstrapv1.PatchLayerPool, tc.legacy),
			}

			_, err := machineconfig.Render(in)
			if tc.at == "" {
				if err != nil {
					t.Fatalf("got %v", err)
				}

				return
			}

			faults := machineconfig.Errors(err)
			if len(faults) != 1 {
				t.Fatalf("got %v, want one Error", err)
			}

			if want := "Pool layer: TalosConfigPatch some spec.documents[0]: Config: " + tc.at + ": "; !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}

			for _, want := range []string{tc.other, "; the other one is set in the Cluster layer: TalosConfigPatch all spec.documents[0]"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q in it", err, want)
				}
			}

			if text := strings.Replace(err.Error(), "write all of it", "write it", 1); !strings.Contains(text, "write it as "+tc.write) {
				t.Errorf("got %v, want it to say what to write: %s", err, tc.write)
			}

			if strings.Contains(err.Error(), "p1") || strings.Contains(err.Error(), "p2") {
				t.Errorf("shows a value: %v", err)
			}
		})
	}
}

// TestTwoFormsOfOneObject: an object that contradicts itself is named once, and what the cluster's settings make is named too.
func TestTwoFormsOfOneObject(t *testing.T) {
	t.Parallel()

	in := input(t, "v1.14", false)
	withRegistries(t, &in)

	in.Patches = []*machineconfig.Patch{
		talosPatch(t, "some", bootstrapv1.PatchLayerPool, "{machine: {registries: {mirrors: {docker.io: {endpoints: ['https://other.example.com']}}}}}"),
	}

	_, err := machineconfig.Render(in)
	if want := "; the other one is set in the System layer: TalosClusterConfig c1 spec.registries[docker.io]"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %q at its end", err, want)
	}

	in = input(t, "v1.14", false)
	in.Patches = []*machineconfig.Patch{talosPatch(t, "some", bootstrapv1.PatchLayerPool,
		"machine: {sysctls: {vm.swappiness: '1'}}\n---\n{apiVersion: v1alpha1, kind: SysctlConfig, params: {vm.swappiness: '2'}}")}

	_, err = machineconfig.Render(in)
	if err == nil || strings.Count(err.Error(), "TalosConfigPatch") != 1 {
		t.Errorf("got %v, want the one object in it", err)
	}
}

// talosPatch is a patch of documents as Talos writes them.
func talosPatch(t *testing.T, name string, layer bootstrapv1.PatchLayer, document string) *machineconfig.Patch {
	t.Helper()

	patch, err := machineconfig.TalosPatch(&bootstrapv1.TalosConfigPatch{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec:       bootstrapv1.TalosConfigPatchSpec{ClusterTargeting: bootstrapv1.ClusterTargeting{ClusterName: "c1"}, Layer: layer},
	}, document)
	if err != nil {
		t.Fatal(err)
	}

	return patch
}
