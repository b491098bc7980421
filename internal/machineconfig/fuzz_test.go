// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	sigsyaml "sigs.k8s.io/yaml"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

// referring are documents with a reference to a key, in each form that there is: a credential, a text, an entry of a map and of a list of
// variables, bytes, a pod and pods.
var referring = []string{
	"{kind: WireguardConfig, wireguardConfig: {name: wg0, privateKeySecretRef: {name: s, key: k}}}",
	"{kind: RegistryAuthConfig, registryAuthConfig: {name: r.example.com, username: u, passwordSecretRef: {name: s, key: k}}}",
	"{kind: HCloudVIPConfig, hcloudVIPConfig: {name: 192.0.2.9, link: eth0, apiTokenSecretRef: {name: s, key: k}}}",
	"{kind: RegistryTLSConfig, registryTLSConfig: {name: r.example.com, clientIdentity: {cert: c, keySecretRef: {name: s, key: k}}}}",
	"{kind: EtcFileConfig, etcFileConfig: {name: a.conf, mode: 420, contentsFrom: {secretKeyRef: {name: s, key: k}}}}",
	"{kind: KubeInlineManifestConfig, kubeInlineManifestConfig: {name: m, manifestFrom: {secretKeyRef: {name: s, key: k}}}}",
	"{kind: EnvironmentConfig, environmentConfig: {variablesFrom: {A: {secretKeyRef: {name: s, key: k}}}}}",
	"{kind: KubeExternalManifestConfig, kubeExternalManifestConfig: {name: m, url: 'https://a.example.com', headersFrom: {Authorization: {secretKeyRef: {name: s, key: k}}}}}",
	"{kind: ExtensionServiceConfig, extensionServiceConfig: {name: e, environment: [B=c], environmentFrom: {A: {secretKeyRef: {name: s, key: k}}}}}",
	"{kind: KubeStaticPodConfig, kubeStaticPodConfig: {name: p, podFrom: {secretKeyRef: {name: s, key: k}}}}",
	"{kind: Config, config: {machine: {registries: {config: {r.example.com: {tls: {clientIdentity: {crt: AQID, keySecretRef: {name: s, key: k}}}}}}}}}",
	"{kind: Config, config: {machine: {files: [{path: /var/a, op: create, permissions: 420, contentFrom: {secretKeyRef: {name: s, key: k}}}]}}}",
	"{kind: Config, config: {machine: {podsFrom: [{secretKeyRef: {name: s, key: k}}]}}}",
}

// FuzzReferences: whatever a Secret holds and whatever field refers to it, a render ends with faults that name their place or with a
// config, the same each time; and nothing that is shown has the value.
func FuzzReferences(f *testing.F) {
	around := [][2]string{
		{"", ""},
		{"", "\n"},
		{"a: '", ""},
		{"[", "]"},
		{"-----BEGIN PRIVATE KEY-----\n", "\n-----END PRIVATE KEY-----\n"},
		{"\xff", ""},
		{"", "\x00"},
		{"{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: a, env: [{name: A, value: ", "}]}]}}"},
		{"{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {hostNetwork: ", "}}"},
		{"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {a: ", "}\n"},
		{"https://u:", "@a.example.com"},
	}

	for place := range referring {
		for _, each := range around {
			f.Add(uint8(place), each[0], each[1])
		}
	}

	f.Fuzz(func(t *testing.T, place uint8, before, after string) {
		in := input(t, "v1.14", true)
		in.Provenance = true
		in.Patches = []*machineconfig.Patch{
			patch(t, "metadata: {name: p}\nspec: {layer: Cluster, clusterName: c1, documents: ["+referring[int(place)%len(referring)]+"]}"),
		}
		in.References = machineconfig.NewReferences(secretOf("s", "k", before+registryPassword+after))

		config, err := machineconfig.Render(in)
		if err != nil {
			for _, fault := range machineconfig.Errors(err) {
				if fault.Reason == "" || fault.Source == (machineconfig.Source{}) {
					t.Errorf("the fault %v has no reason or no source", fault)
				}
			}

			if len(machineconfig.Errors(err)) == 0 || strings.Contains(err.Error(), registryPassword) {
				t.Errorf("got %q, want faults of an object, without the value", err)
			}

			return
		}

		masked, err := config.Masked()
		if err != nil {
			t.Fatal(err)
		}

		if shown := fmt.Sprintf("%s %+v %v %v", masked, config.Provenance, config.Warnings, config.Inputs); strings.Contains(shown, registryPassword) {
			t.Errorf("the value is shown:\n%s", shown)
		}

		if again, err := machineconfig.Render(in); err != nil || again.Hash != config.Hash {
			t.Errorf("the second render gives another config, or %v", err)
		}
	})
}

// FuzzProvenance: whatever two patches say, what is recorded of them changes neither the config nor the error, has every value of the
// config once and no other, says of each who set it, and leaves the patches as they were.
func FuzzProvenance(f *testing.F) {
	specs := []string{
		"{documents: [{kind: SysctlConfig, sysctlConfig: {params: {vm.swappiness: '1'}}}]}",
		"{documents: [{kind: SysctlConfig, sysctlConfig: {params: {vm.swappiness: '2', a.b: ''}}}], deletions: [{kind: SysctlConfig, path: /params/a.b}]}",
		"{documents: [{kind: UserVolumeConfig, userVolumeConfig: {name: a, provisioning: {minSize: 1GiB, diskSelector: {match: '!system_disk'}}}}]}",
		"{deletions: [{kind: UserVolumeConfig, name: a}, {kind: KubePrismConfig}]}",
		"{documents: [{kind: NetworkRuleConfig, networkRuleConfig: {name: a, portSelector: {ports: [80, 8000-8100], protocol: tcp}, ingress: [{subnet: 10.0.0.0/8}]}}]}",
		"{documents: [{kind: Config, config: {machine: {network: {interfaces: [{interface: eth0, mtu: 9000}]}, sysctls: {a/b: c}}}}]}",
		"{documents: [{kind: Config, config: {machine: {network: {interfaces: [{interface: eth0, addresses: [192.0.2.1/24]}]}}}}], deletions: [{kind: Config, path: /machine/sysctls}]}",
		"{documents: [{kind: KubeletConfig, kubeletConfig: {extraArgs: {v: ['1', '2']}, config: {maxPods: 200}}}, {kind: KubeletConfig, kubeletConfig: {extraArgs: {v: ['3']}}}]}",
		"{documents: [{kind: HostnameConfig, hostnameConfig: {auto: 'off', hostname: a}}]}",
	}

	for _, first := range specs {
		for _, second := range specs {
			f.Add(first, second)
		}
	}

	f.Fuzz(func(t *testing.T, first, second string) {
		in := input(t, "v1.14", true)

		var objects, before []*bootstrapv1.TalosConfigPatch

		for i, text := range []string{first, second} {
			object := &bootstrapv1.TalosConfigPatch{}
			if sigsyaml.Unmarshal([]byte(text), &object.Spec) != nil {
				return
			}

			object.Name, object.Namespace = fmt.Sprintf("p%d", i), namespace
			object.Spec.Layer, object.Spec.Role = bootstrapv1.PatchLayerCluster, ""
			object.Spec.ClusterTargeting = bootstrapv1.ClusterTargeting{ClusterName: "c1"}
			objects, before = append(objects, object), append(before, object.DeepCopy())
			in.Patches = append(in.Patches, machineconfig.ParsePatch(object))
		}

		in.References = machineconfig.NewReferences(nil)
		plain, plainErr := machineconfig.Render(in)

		in.Provenance = true
		config, err := machineconfig.Render(in)

		if diff := cmp.Diff(before, objects); diff != "" {
			t.Errorf("the patches were changed (-before +after):\n%s", diff)
		}

		if fmt.Sprint(plainErr) != fmt.Sprint(err) || !bytes.Equal(plain.Bytes, config.Bytes) {
			t.Fatalf("with the record: %v, without: %v, or another config", err, plainErr)
		}

		if err == nil {
			recordsEveryValue(t, config)
		}
	})
}

func recordsEveryValue(t *testing.T, config machineconfig.Config) {
	t.Helper()

	loaded, err := configloader.NewFromBytes(config.Bytes)
	if err != nil {
		t.Fatal(err)
	}

	want, got := map[string]string{}, map[string]string{}

	for _, document := range loaded.Documents() {
		for _, leaf := range merge.LeavesOf(document) {
			want[merge.IDOf(document).String()+" "+leaf.Pointer] = leaf.Value.Reveal()
		}
	}

	for _, leaf := range config.Provenance.Leaves {
		at := leaf.Document + " " + leaf.Path
		if _, twice := got[at]; twice || leaf.SetBy.Kind == "" || leaf.SetBy.Name == "" {
			t.Errorf("%s is there twice, or set by nobody: %v", at, leaf.SetBy)
		}

		got[at] = leaf.Value.Reveal()
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("values (-config +record):\n%s", diff)
	}
}
