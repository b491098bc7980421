// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
)

// TestNotices: what may be meant is rendered, and told.
func TestNotices(t *testing.T) {
	t.Parallel()

	const blocks = "{apiVersion: v1alpha1, kind: NetworkDefaultActionConfig, ingress: block}"

	opens := func(name, ports string) string {
		return "\n---\n" + document("NetworkRuleConfig", "name: "+name+", portSelector: {protocol: tcp, ports: ["+ports+"]}, ingress: [{subnet: 10.0.0.0/8}]")
	}

	for name, tc := range map[string]struct {
		contract     string
		controlPlane bool
		document     string
		want, not    string
	}{
		"closed worker":        {contract: "v1.14", document: blocks, want: "blocks, and no NetworkRuleConfig opens the TCP port 50000 (the Talos API, without which the machine can neither be upgraded nor repaired), 10250 (the kubelet)"},
		"open worker":          {contract: "v1.14", document: blocks + opens("a", "50000, 10240-10260"), not: "blocks"},
		"half open worker":     {contract: "v1.13", document: blocks + opens("a", "10250"), want: "opens the TCP port 50000 (the Talos API"},
		"open by UDP alone":    {contract: "v1.14", document: blocks + strings.ReplaceAll(opens("a", "50000, 10250"), "tcp", "udp"), want: "opens the TCP port 50000"},
		"closed control plane": {contract: "v1.14", controlPlane: true, document: blocks + opens("a", "50000, 10250, 6443, 50001"), want: "opens the TCP port 2379 (etcd), 2380 (etcd's other members)"},
		"open control plane":   {contract: "v1.14", controlPlane: true, document: blocks + opens("a", "50000-50001, 10250, 6443, 2379-2380"), not: "blocks"},
		"Longhorn's guide": {
			contract: "v1.13", document: document("UserVolumeConfig", "name: longhorn, provisioning: {diskSelector: {match: '!system_disk'}, minSize: 10GiB}") +
				"\n---\nmachine: {kubelet: {extraMounts: [{destination: /var/mnt/longhorn, source: /var/mnt/longhorn/, type: bind, options: [bind, rshared, rw]}]}}",
			want: "Config: /machine/kubelet/extraMounts/0: /var/mnt/longhorn: Talos mounts user volumes below /var/mnt into the kubelet itself",
		},
		"typo in a flag": {
			contract: "v1.14", controlPlane: true, document: document("KubeAPIServerConfig", "extraArgs: {max-request-inflight: '800'}"),
			want: "KubeAPIServerConfig: /extraArgs/max-request-inflight: is no flag of the program that is known (Kubernetes 1.36), and with one that it does not have it would not start: did you mean max-requests-inflight?",
		},
		"legacy typo in a flag": {
			contract: "v1.13", document: "{machine: {kubelet: {extraArgs: {rotate-server-certificate: 'true'}}}}",
			want: "Config: /machine/kubelet/extraArgs/rotate-server-certificate: is no flag of the program that is known (Kubernetes 1.36), and with one that it does not have it would not start: did you mean rotate-server-certificates?",
		},
		"flag of another release": {contract: "v1.13", controlPlane: true, document: "{cluster: {apiServer: {extraArgs: {flag-of-tomorrow: x}}}}", not: "is no flag"},
		"flags that are known": {
			contract: "v1.13", controlPlane: true, not: "is no flag",
			document: "{cluster: {apiServer: {extraArgs: {event-ttl: 3h}}, controllerManager: {extraArgs: {bind-address: 0.0.0.0}}, scheduler: {extraArgs: {bind-address: 0.0.0.0, leader-elect: 'true'}}, proxy: {extraArgs: {ipvs-strict-arp: 'true', metrics-bind-address: '0.0.0.0:10249'}}}, machine: {kubelet: {extraArgs: {node-labels: a=b, v: '2'}}}}",
		},
		"flag that the next etcd has no more": {
			contract: "v1.13", controlPlane: true, document: "{cluster: {etcd: {extraArgs: {experimental-corrupt-check-time: 4h}}}}",
			want: "Config: /cluster/etcd/extraArgs/experimental-corrupt-check-time: is no flag of etcd 3.7, which Talos 1.14 runs and which does not start with it: write corrupt-check-time, which etcd 3.6 and 3.7 both know",
		},
		"gate that the next Talos sets": {
			contract: "v1.13", controlPlane: true, document: "{cluster: {etcd: {extraArgs: {experimental-enable-lease-checkpoint: 'true'}}}}",
			want: "Config: /cluster/etcd/extraArgs/experimental-enable-lease-checkpoint: is no flag of etcd 3.7, which Talos 1.14 runs and which does not start with it: remove it, since from Talos 1.14 on the feature gates of etcd are for Talos alone to set",
		},
		"flag that the next Talos sets": {
			contract: "v1.12", controlPlane: true, document: "{cluster: {etcd: {extraArgs: {feature-gates: 'SetMemberLocalAddr=true'}}}}",
			want: "Config: /cluster/etcd/extraArgs/feature-gates: set by Talos itself from 1.14 on, and etcd will not start with it in the config: remove it before the upgrade",
		},
		"flag that both have":    {contract: "v1.13", controlPlane: true, document: "{cluster: {etcd: {extraArgs: {corrupt-check-time: 4h}}}}", not: "etcd"},
		"what Talos warns of":    {contract: "v1.14", document: document("ImageVerificationConfig", "rules: [{image: library/nginx, deny: true}]"), want: "Talos warns: rule 0: imagePattern \"library/nginx\" cannot match any image"},
		"older forms, which are": {contract: "v1.13", document: "{machine: {files: [{path: /var/a, op: create, content: a, permissions: 0600}]}}", not: "Talos warns"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			object := &bootstrapv1.TalosConfigPatch{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: namespace}}
			object.Spec.ClusterName, object.Spec.Layer = "c1", bootstrapv1.PatchLayerCluster

			patch, err := machineconfig.TalosPatch(object, tc.document)
			if err != nil {
				t.Fatal(err)
			}

			in := input(t, tc.contract, tc.controlPlane)
			in.Patches = append(in.Patches, patch)

			config, err := machineconfig.Render(in)
			if err != nil {
				t.Fatal(err)
			}

			has := func(text string) bool {
				return slices.ContainsFunc(config.Warnings, func(warning string) bool { return strings.Contains(warning, text) })
			}

			if tc.want != "" && !has(tc.want) || tc.not != "" && has(tc.not) {
				t.Errorf("got %q, want %q and not %q", config.Warnings, tc.want, tc.not)
			}
		})
	}
}

// TestNoticesOfAPatch: what is told of a patch wherever it is looked at, with its place and nothing of its values.
func TestNoticesOfAPatch(t *testing.T) {
	t.Parallel()

	const (
		at     = "Cluster layer: TalosConfigPatch p spec.documents[0]: "
		server = "{kind: Config, config: {cluster: {apiServer: {extraArgs: {anonymous-auth: ['%s']}}}}}"
	)

	for name, tc := range map[string]struct{ contract, document, want string }{
		"requests without a login":    {"v1.13", fmt.Sprintf(server, "true"), at + "Config: /cluster/apiServer/extraArgs/anonymous-auth: lets requests without a login in"},
		"no requests without a login": {"v1.13", fmt.Sprintf(server, "false"), ""},
		"key twice in a legacy manifest": {
			"v1.13", inlineManifest("{}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  name: b\n"),
			at + "Config: /cluster/inlineManifests/0/contents: has a key twice in line 11, and Talos takes the last",
		},
		"key twice in a manifest": {
			"v1.14", `{kind: KubeInlineManifestConfig, kubeInlineManifestConfig: {name: a, manifest: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nkind: Namespace\n"}}`,
			at + "KubeInlineManifestConfig/a: /manifest: has a key twice in line 4, and Talos takes the last",
		},
		"manifests in order": {"v1.13", inlineManifest("---\n{}\n---\n# nothing\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			in := input(t, tc.contract, true)
			in.Patches = append(in.Patches, documentPatch(t, tc.document))

			config, err := machineconfig.Render(in)
			if err != nil {
				t.Fatal(err)
			}

			got := strings.Join(config.Warnings, "\n")
			if tc.want == "" && got != "" || !strings.HasPrefix(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestGoneFlags: a patch tells by itself of the flags with which the next etcd does not start, to whoever writes it and to whoever brings that etcd; not
// when it brings an etcd of its own, nor when no machine that it applies to has one.
func TestGoneFlags(t *testing.T) {
	t.Parallel()

	const (
		flags = "{kind: Config, config: {cluster: {etcd: {%sextraArgs: {experimental-corrupt-check-time: ['4h'], corrupt-check-time: ['4h'], experimental-memory-mlock: ['true']}}}}}"
		place = "TalosConfigPatch p spec.documents[%d]: Config: /cluster/etcd/extraArgs/%s: is no flag of etcd 3.7"
	)

	other := "{kind: Config, config: {machine: {sysctls: {vm.max_map_count: '262144'}}}}"

	for name, tc := range map[string]struct {
		spec string
		want []string
	}{
		"flags that are gone, and one that both have": {
			"layer: Cluster, documents: [" + fmt.Sprintf(flags, "") + "]",
			[]string{fmt.Sprintf(place, 0, "experimental-corrupt-check-time"), fmt.Sprintf(place, 0, "experimental-memory-mlock")},
		},
		"in the second document": {
			"layer: Role, role: ControlPlane, documents: [" + other + ", " + fmt.Sprintf(flags, "") + "]",
			[]string{fmt.Sprintf(place, 1, "experimental-corrupt-check-time"), fmt.Sprintf(place, 1, "experimental-memory-mlock")},
		},
		"an etcd of its own": {"layer: Cluster, documents: [" + fmt.Sprintf(flags, "image: 'registry.k8s.io/etcd:v3.6.8', ") + "]", nil},
		"workers":            {"layer: Role, role: Worker, documents: [" + fmt.Sprintf(flags, "") + "]", nil},
		"nothing of etcd":    {"layer: Cluster, documents: [" + other + "]", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			p := patch(t, "metadata: {name: p}\nspec: {clusterName: c1, "+tc.spec+"}")

			for what, got := range map[string][]string{"of what is gone": p.GoneFlags(), "warnings": p.Warnings()} {
				matches := len(got) == len(tc.want)
				for i := range tc.want {
					matches = matches && strings.Contains(got[i], tc.want[i])
				}

				if !matches {
					t.Errorf("%s: got %q, want %q", what, got, tc.want)
				}
			}
		})
	}
}

// A worker has no etcd, by which machines agree on who has a virtual address.
func TestVirtualAddressOfAWorker(t *testing.T) {
	t.Parallel()

	patch := patch(t, `{metadata: {name: bad}, spec: {clusterName: c1, layer: Cluster, documents: [{kind: Layer2VIPConfig, layer2VIPConfig: {name: 10.0.0.5, link: eth0}}]}}`)

	for controlPlane, want := range map[bool]string{
		true:  "",
		false: bad + "spec.documents[0]: Layer2VIPConfig/10.0.0.5: control-plane machines agree by etcd on who has the address",
	} {
		in := input(t, "v1.14", controlPlane)
		in.Patches = append(in.Patches, patch)

		_, err := machineconfig.Render(in)
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("control plane %v: got %v, want %q", controlPlane, err, want)
		}
	}

	if warnings := patch.Warnings(); len(warnings) != 1 || !strings.Contains(warnings[0], "the patch selects workers too") {
		t.Errorf("got warnings %q", warnings)
	}
}
