// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configpatcher"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"

	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
	"github.com/maesh-dev/ichor/internal/convert"
	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
	"github.com/maesh-dev/ichor/internal/version"
)

// plainPatches are patches that machinery's own patcher loses nothing of, with the oldest contract that they are for; 0 for any.
var plainPatches = map[string]struct {
	patch         string
	since, before int
}{
	"sysctls and labels": {patch: "machine:\n  sysctls: {vm.max_map_count: 262144}\n  kernel: {modules: [{name: nvme_tcp, parameters: [a=1]}]}\n", before: 14},
	"a whole network": {before: 14, patch: `machine:
  network:
    interfaces:
      - interface: bond0
        bond: {mode: 802.3ad, interfaces: [eth0, eth1], lacpRate: fast, miimon: 100}
        vlans: [{vlanId: 10, addresses: [10.0.0.5/24], routes: [{network: 0.0.0.0/0, gateway: 10.0.0.1}]}]
      - {deviceSelector: {driver: virtio*, hardwareAddr: '00:11:*'}, dhcp: true, dhcpOptions: {routeMetric: 100}}
    extraHostEntries: [{ip: 10.0.0.1, aliases: [a, b]}]
`},
	"control plane of older formats": {before: 14, patch: `cluster:
  network: {cni: {name: none}}
  proxy: {disabled: true}
  apiServer: {extraArgs: {oidc-issuer-url: 'https://login.example.com', audit-log-maxage: 7}, certSANs: [a.example.com]}
  controllerManager: {extraArgs: {bind-address: 0.0.0.0}}
  etcd: {advertisedSubnets: [10.0.0.0/8]}
  discovery: {enabled: false}
`},
	"files": {patch: "machine:\n  files:\n  - {path: /var/etc/a, permissions: 0644, op: create, content: \"a\\nb\\n\"}\n"},
	"documents of their own": {patch: `apiVersion: v1alpha1
kind: UserVolumeConfig
name: data
provisioning: {diskSelector: {match: disk.size > 100u * GiB}, minSize: 10GiB, maxSize: 50%, grow: true}
filesystem: {type: ext4}
---
apiVersion: v1alpha1
kind: NetworkRuleConfig
name: kubelet
portSelector: {ports: [10250, 30000-32767], protocol: tcp}
ingress: [{subnet: 10.0.0.0/8, except: 10.1.0.0/16}]
---
apiVersion: v1alpha1
kind: WatchdogTimerConfig
device: /dev/watchdog0
timeout: 3m
`},
	"documents of 1.14, one in two parts": {since: 14, patch: `apiVersion: v1alpha1
kind: KubeNodeConfig
labels: {rack: a, zone: }
taints: {dedicated: storage:NoSchedule}
---
apiVersion: v1alpha1
kind: KubeletConfig
extraArgs: {v: 2, feature-gates: [A=true, B=false]}
---
apiVersion: v1alpha1
kind: KubeNodeConfig
labels: {rack: b}
`},
	"a credential": {patch: `apiVersion: v1alpha1
kind: WireguardConfig
name: wg0
privateKey: 4MG8VQdTXVs4wvwSZxdsdPdRLRYGxtVjp5XAq28GF3E=
peers: [{publicKey: 2aT8S6iJ8AV0HPoJcoYMP8fqqpXr1qgBZ2hRMe3GM2E=, presharedKey: 4MG8VQdTXVs4wvwSZxdsdPdRLRYGxtVjp5XAq28GF3E=, allowedIPs: [10.1.0.0/24]}]
`},
	"deletions": {since: 14, patch: `apiVersion: v1alpha1
kind: KubeProxyConfig
$patch: delete
---
apiVersion: v1alpha1
kind: KubePrismConfig
port: {$patch: delete}
`},
	"deletions of older formats": {before: 14, patch: "machine:\n  features: {kubePrism: {$patch: delete}}\ncluster:\n  apiServer: {admissionControl: [{name: PodSecurity, $patch: delete}]}\n"},
}

// TestSameAsMachinery: a converted patch, applied by the renderer's merge, gives what machinery's own patcher makes of the file.
func TestSameAsMachinery(t *testing.T) {
	t.Parallel()

	for name, tc := range plainPatches {
		for _, contract := range version.Supported() {
			if !contract.AtLeast(tc.since) || tc.before > 0 && contract.AtLeast(tc.before) {
				continue
			}

			t.Run(name+" "+contract.String(), func(t *testing.T) {
				t.Parallel()

				loaded, err := configpatcher.LoadPatch([]byte(tc.patch))
				if err != nil {
					t.Fatal(err)
				}

				want, err := configpatcher.Apply(configpatcher.WithConfig(generated(t, contract)), []configpatcher.Patch{loaded})
				if err != nil {
					t.Fatal(err)
				}

				provider, err := want.Config()
				if err != nil {
					t.Fatal(err)
				}

				result, err := convert.Convert(documents(tc.patch), options())
				if err != nil {
					t.Fatal(err)
				}

				merged := merge.New(generated(t, contract))
				apply(t, merged, result)

				got, err := merged.Encode()
				if err != nil {
					t.Fatal(err)
				}

				encoded, err := provider.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
				if err != nil {
					t.Fatal(err)
				}

				if diff := cmp.Diff(string(encoded), string(got)); diff != "" {
					t.Errorf("(-machinery +converted):\n%s", diff)
				}
			})
		}
	}
}

// apply does to a config what a render does with the patch.
func apply(t *testing.T, merged *merge.Config, result *convert.Result) {
	t.Helper()

	for i := range result.Patch.Spec.Documents {
		data, err := result.Patch.Spec.Documents[i].TalosJSON(valuesOf(result))
		if err != nil {
			t.Fatal(err)
		}

		patch, err := merge.Load(data)
		if err == nil {
			err = merged.Apply(patch, nil)
		}

		if err != nil {
			t.Fatal(err)
		}
	}

	for _, deletion := range result.Patch.Spec.Deletions {
		if _, err := merged.Delete(merge.ID{Kind: deletion.Kind, Name: deletion.Name}, deletion.Path, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func valuesOf(result *convert.Result) machineconfigv1alpha1.Values {
	return func(source machineconfigv1alpha1.Source) (string, bool) {
		if result.Secret == nil || source.Kind != machineconfigv1alpha1.SourceSecret || source.Name != result.Secret.Name {
			return "", false
		}

		value, ok := result.Secret.StringData[source.Key]

		return value, ok
	}
}

var bundle = func() *secrets.Bundle {
	bundle, err := secrets.NewBundle(secrets.NewFixedClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), version.Newest().Machinery(), secrets.WithECDSAServiceAccountKey())
	if err != nil {
		panic(err)
	}

	return bundle
}()

// generated is a control-plane config as Talos makes it.
func generated(t *testing.T, contract version.Contract) config.Provider {
	t.Helper()

	endpoint := url.URL{Scheme: "https", Host: "192.0.2.1:6443"}

	input, err := generate.NewInput("test", endpoint.String(), "1.34.0", generate.WithVersionContract(contract.Machinery()), generate.WithSecretsBundle(bundle),
		generate.WithInstallDisk("/dev/sda"))
	if err != nil {
		t.Fatal(err)
	}

	provider, err := input.Config(machine.TypeControlPlane)
	if err != nil {
		t.Fatal(err)
	}

	return provider
}
