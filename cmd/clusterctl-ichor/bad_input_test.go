// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/maesh-dev/ichor/internal/cli"
)

// plainCluster is a cluster with one worker that has nothing wrong with it.
const plainCluster = `apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: edge}
spec:
  controlPlaneEndpoint: {host: 192.0.2.10, port: 6443}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata: {name: w-1, labels: {pool: storage}}
spec:
  clusterName: edge
  version: v1.36.1
  bootstrap:
    configRef: {apiGroup: bootstrap.ichor.maesh.dev, kind: TalosConfig, name: w-1}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: Metal3Machine, name: w-1}
---
apiVersion: bootstrap.ichor.maesh.dev/v1alpha1
kind: TalosConfig
metadata: {name: w-1}
spec: {configContract: v1.14}
`

// object is a manifest of one of Ichor's kinds.
func object(kind, spec string) string {
	return fmt.Sprintf("apiVersion: bootstrap.ichor.maesh.dev/v1alpha1\nkind: %s\nmetadata: {name: bad}\nspec:\n  %s\n",
		kind, strings.ReplaceAll(spec, "\n", "\n  "))
}

// patch is a TalosConfigPatch for the whole cluster.
func patch(rest string) string {
	return object("TalosConfigPatch", "layer: Cluster\nclusterName: edge\n"+rest)
}

// document is a patch of one document.
func document(kind, field, content string) string {
	return patch(fmt.Sprintf("documents:\n- kind: %s\n  %s: %s", kind, field, content))
}

func clusterConfig(rest string) string {
	return object("TalosClusterConfig", "clusterName: edge\n"+rest)
}

const registrySecret = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: ghcr}\nstringData: "

// badInputs are mistakes that people make. Each is added to the plain cluster, unless it changes that.
var badInputs = map[string]struct {
	add      string
	old, new string // change the plain cluster
	command  []string
	code     int
}{
	"YAML: a tab for an indentation":              {add: "apiVersion: v1\nkind: Secret\nmetadata:\n\tname: a\n", code: cli.ExitUsage},
	"YAML: a list item too far left":              {add: object("TalosConfigPatch", "layer: Cluster\nclusterName: edge\ndocuments:\n- kind: SysctlConfig\nsysctlConfig: {params: {a.b: '1'}}")},
	"YAML: a wrong indentation that does not end": {add: "apiVersion: v1\nkind: Secret\nmetadata:\n    name: a\n  labels: {}\n", code: cli.ExitUsage},
	"YAML: a key twice":                           {add: "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData:\n  a: x\n  a: y\n", code: cli.ExitUsage},
	"YAML: no Kubernetes object":                  {add: "machine:\n  sysctls: {a.b: '1'}\n", code: cli.ExitUsage},
	"YAML: a list":                                {add: "- op: add\n  path: /machine\n", code: cli.ExitUsage},
	"YAML: variables of a template":               {add: "apiVersion: cluster.x-k8s.io/v1beta2\nkind: MachineDeployment\nmetadata: {name: a}\nspec: {replicas: \"${WORKERS}\"}\n"},

	"field: a wrong name":                    {add: document("UserVolumeConfig", "userVolumeConfig", "{name: data, provisoning: {maxSize: 1GiB}}")},
	"field: a wrong case":                    {add: document("UserVolumeConfig", "userVolumeConfig", "{name: data, provisioning: {maxsize: 1GiB}}")},
	"field: one of another kind":             {add: document("SysctlConfig", "sysctlConfig", "{sysctls: {vm.swappiness: '1'}}")},
	"field: under spec of a Talos document":  {add: document("HostnameConfig", "hostnameConfig", "{spec: {hostname: a}}")},
	"field: in the metadata":                 {add: "apiVersion: bootstrap.ichor.maesh.dev/v1alpha1\nkind: TalosClusterConfig\nmetadata: {name: bad, lables: {a: b}}\nspec: {clusterName: edge}\n"},
	"document: kind and field differ":        {add: document("HostnameConfig", "sysctlConfig", "{params: {vm.swappiness: '1'}}")},
	"document: two fields":                   {add: patch("documents:\n- kind: HostnameConfig\n  hostnameConfig: {hostname: a}\n  sysctlConfig: {params: {vm.swappiness: '1'}}")},
	"document: an unknown kind":              {add: document("KubeletConf", "kubeletConf", "{}")},
	"document: without a name":               {add: document("UserVolumeConfig", "userVolumeConfig", "{provisioning: {maxSize: 1GiB}}")},
	"document: off without quotes":           {add: document("HostnameConfig", "hostnameConfig", "{auto: off}")},
	"document: a number for text":            {add: document("SysctlConfig", "sysctlConfig", "{params: {vm.swappiness: 1}}")},
	"document: text for a number":            {add: document("KubePrismConfig", "kubePrismConfig", "{port: '7445'}")},
	"document: an enum in the wrong case":    {add: document("NetworkDefaultActionConfig", "networkDefaultActionConfig", "{ingress: Block}")},
	"document: a size that is none":          {add: document("UserVolumeConfig", "userVolumeConfig", "{name: data, provisioning: {maxSize: big}}")},
	"document: bad CEL in a disk selector":   {add: document("UserVolumeConfig", "userVolumeConfig", "{name: data, provisioning: {diskSelector: {match: 'disk.transport = \"nvme\"'}, maxSize: 1GiB}}")},
	"document: an unknown field in CEL":      {add: document("UserVolumeConfig", "userVolumeConfig", "{name: data, provisioning: {diskSelector: {match: 'disk.bus == \"nvme\"'}, maxSize: 1GiB}}")},
	"document: a volume without a size":      {add: document("UserVolumeConfig", "userVolumeConfig", "{name: data, provisioning: {diskSelector: {match: system_disk}}}")},
	"document: a cluster secret":             {add: document("Config", "config", "{machine: {token: abcdef.0123456789abcdef}}")},
	"document: a label with a blank":         {add: document("KubeNodeConfig", "kubeNodeConfig", "{labels: {'invalid label': x}}")},
	"document: a label of NodeRestriction":   {add: document("KubeNodeConfig", "kubeNodeConfig", "{labels: {node-role.kubernetes.io/storage: ''}}")},
	"document: newer than the machine":       {add: document("KubeNodeConfig", "kubeNodeConfig", "{labels: {a/b: c}}"), old: "configContract: v1.14", new: "configContract: v1.13"},
	"patch: role without layer Role":         {add: object("TalosConfigPatch", "layer: Cluster\nrole: Worker\nclusterName: edge\ndeletions: [{kind: OOMConfig}]")},
	"patch: layer Role without role":         {add: object("TalosConfigPatch", "layer: Role\nclusterName: edge\ndeletions: [{kind: OOMConfig}]")},
	"patch: clusterName and clusterSelector": {add: object("TalosConfigPatch", "layer: Cluster\nclusterName: edge\nclusterSelector: {}\ndeletions: [{kind: OOMConfig}]")},
	"patch: machineSelector alone":           {add: object("TalosConfigPatch", "layer: Pool\nmachineSelector: {}\ndeletions: [{kind: OOMConfig}]")},
	"patch: neither documents nor deletions": {add: patch("priority: 1")},
	"patch: an unknown layer":                {add: object("TalosConfigPatch", "layer: Node\nclusterName: edge\ndeletions: [{kind: OOMConfig}]")},
	"patch: an unknown operator":             {add: patch("machineSelector: {matchExpressions: [{key: pool, operator: Equals, values: [a]}]}\ndeletions: [{kind: OOMConfig}]")},
	"patch: In without values":               {add: patch("machineSelector: {matchExpressions: [{key: pool, operator: In}]}\ndeletions: [{kind: OOMConfig}]")},
	"patch: a selector that is text":         {add: patch("machineSelector: pool=a\ndeletions: [{kind: OOMConfig}]")},
	"patch: a path with dots":                {add: patch("deletions: [{kind: Config, path: machine.sysctls}]")},
	"patch: deletes the cluster's identity":  {add: patch("deletions: [{kind: Config, path: /machine/token}]")},
	"patch: deletes an unknown field":        {add: patch("deletions: [{kind: Config, path: /machine/sysctl}]")},
	"patch: a reference to none":             {old: "{configContract: v1.14}", new: "{configContract: v1.14, patchRefs: [{name: absent}]}"},
	"patch: a reference twice":               {old: "{configContract: v1.14}", new: "{configContract: v1.14, patchRefs: [{name: a}, {name: a}]}"},

	"cluster config: two of them":           {add: clusterConfig("talos: {version: v1.14.1}") + "---\n" + strings.Replace(clusterConfig("talos: {version: v1.14.1}"), "bad", "worse", 1)},
	"cluster config: an unknown version":    {add: clusterConfig("talos: {version: v1.99.0}")},
	"cluster config: latest":                {add: clusterConfig("talos: {version: latest}")},
	"cluster config: without the v":         {add: clusterConfig("talos: {version: 1.14.1}")},
	"cluster config: an unknown contract":   {add: clusterConfig("talos: {version: v1.14.1, configContract: v1.99}")},
	"cluster config: a format too new":      {add: clusterConfig("talos: {version: v1.13.2}")},
	"cluster config: a short schematic":     {add: clusterConfig("talos: {version: v1.14.1, schematicID: 613e1592}")},
	"cluster config: nothing targeted":      {add: object("TalosClusterConfig", "talos: {version: v1.14.1}")},
	"registry: a missing Secret":            {add: clusterConfig("registries: [{host: ghcr.io, username: a, authSecretRef: {name: ghcr}}]"), command: []string{"render"}},
	"registry: a missing key":               {add: clusterConfig("registries: [{host: ghcr.io, username: a, authSecretRef: {name: ghcr}}]") + registrySecret + "{pass: hunter2}\n"},
	"registry: two keys":                    {add: clusterConfig("registries: [{host: ghcr.io, username: a, authSecretRef: {name: ghcr}}]") + registrySecret + "{password: hunter2, auth: aHVudGVyMg==}\n"},
	"registry: an empty key":                {add: clusterConfig("registries: [{host: ghcr.io, username: a, authSecretRef: {name: ghcr}}]") + registrySecret + "{password: ''}\n"},
	"registry: password without a username": {add: clusterConfig("registries: [{host: ghcr.io, authSecretRef: {name: ghcr}}]") + registrySecret + "{password: hunter2}\n"},
	"registry: username without a Secret":   {add: clusterConfig("registries: [{host: ghcr.io, username: a}]")},
	"registry: a host with a scheme":        {add: clusterConfig("registries: [{host: 'https://ghcr.io'}]")},
	"registry: a host twice":                {add: clusterConfig("registries: [{host: ghcr.io}, {host: ghcr.io}]")},
	"registry: an endpoint without scheme":  {add: clusterConfig("registries: [{host: ghcr.io, endpoints: [{url: mirror.example.com}]}]")},
	"registry: a Secret without base64":     {add: "apiVersion: v1\nkind: Secret\nmetadata: {name: ghcr}\ndata: {password: hunter2-hunter2}\n"},

	"storage: a disk without a selector": {add: object("TalosStorage", "clusterName: edge\npreset: longhorn-v1\nvolume: {type: Partition}")},
	"storage: an unknown preset":         {add: object("TalosStorage", "clusterName: edge\npreset: longhorn")},
	"storage: a tag that is no name":     {add: object("TalosStorage", "clusterName: edge\npreset: longhorn-v1\nnodeTags: ['fast disk']")},

	"install: two ways to say the disk":  {old: "{configContract: v1.14}", new: "{configContract: v1.14, install: {disk: /dev/sda, diskSelector: system_disk}}"},
	"install: a disk without /dev":       {old: "{configContract: v1.14}", new: "{configContract: v1.14, install: {disk: sda}}"},
	"install: kernel arguments for 1.14": {old: "{configContract: v1.14}", new: "{configContract: v1.14, install: {disk: /dev/sda, image: a/b:c, extraKernelArgs: [console=ttyS0]}}"},

	"objects: a kind with a wrong version":     {add: strings.Replace(patch("deletions: [{kind: OOMConfig}]"), "v1alpha1", "v1beta1", 1)},
	"objects: a kind that does not exist":      {add: object("TalosPatch", "clusterName: edge")},
	"objects: the same one twice":              {add: patch("deletions: [{kind: OOMConfig}]") + "---\n" + patch("deletions: [{kind: OOMConfig}]")},
	"objects: Cluster API's older version":     {old: "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Machine", new: "apiVersion: cluster.x-k8s.io/v1beta1\nkind: Machine"},
	"machine: no Cluster":                      {old: "clusterName: edge", new: "clusterName: egde"},
	"machine: no TalosConfig":                  {old: "kind: TalosConfig, name: w-1", new: "kind: TalosConfig, name: w-2"},
	"machine: nothing says which Talos":        {old: "{configContract: v1.14}", new: "{}"},
	"machine: no Kubernetes version":           {old: "  version: v1.36.1\n", new: ""},
	"machine: a Kubernetes that Talos refuses": {old: "v1.36.1", new: "v1.20.0"},
	"machine: no endpoint yet":                 {old: "spec:\n  controlPlaneEndpoint: {host: 192.0.2.10, port: 6443}", new: "spec: {paused: false}", command: []string{"render"}},
	"machine: another cluster's namespace":     {old: "metadata: {name: edge}", new: "metadata: {name: edge, namespace: fleet}"},
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)

	g.Expect(len(badInputs)).To(BeNumerically(">=", 25))
	g.Expect(run(plainCluster, "validate", "-f", "-").code).To(BeZero(), "the plain cluster must have nothing wrong with it")

	var b strings.Builder

	for _, name := range slices.Sorted(maps.Keys(badInputs)) {
		tc := badInputs[name]

		input := plainCluster
		if tc.old != "" {
			g.Expect(strings.Count(input, tc.old)).To(Equal(1), "%s: the text to change must be there once", name)
			input = strings.Replace(input, tc.old, tc.new, 1)
		}

		if tc.add != "" {
			input += "---\n" + tc.add
		}

		command := tc.command
		if command == nil {
			command = []string{"validate"}
		}

		want := tc.code
		if want == 0 {
			want = cli.ExitFindings
		}

		got := run(input, append(command, "-f", "-")...)
		g.Expect(got.code).To(Equal(want), "%s: %s", name, got)
		g.Expect(got.out+got.errOut).NotTo(ContainSubstring("hunter2"), name)

		fmt.Fprintf(&b, "%s\n", name)

		for line := range strings.Lines(got.errOut + got.out) {
			if strings.HasPrefix(line, "note: machine configs are not checked") || strings.HasPrefix(line, "1 error, 0 warnings") {
				continue
			}

			fmt.Fprintf(&b, "    %s", line)
		}
	}

	expectGolden(t, "bad-input.txt", b.String())
}

// badPatches are mistakes in the files of the command patch.
var badPatches = map[string]struct {
	base, patch string
	code        int
}{
	"an unknown field":            {patch: "machine:\n  sysctl: {a: b}\n"},
	"a masked config to patch":    {base: "machine:\n  token: '********'\n"},
	"an unknown kind":             {patch: "apiVersion: v1alpha1\nkind: UserVolume\nname: a\n"},
	"no kind":                     {patch: "apiVersion: v1alpha1\nname: a\n"},
	"a Kubernetes object":         {patch: "apiVersion: bootstrap.ichor.maesh.dev/v1alpha1\nkind: TalosConfigPatch\n"},
	"a JSON patch":                {patch: "- op: remove\n  path: /machine/sysctls\n"},
	"a wrong type":                {patch: "machine:\n  sysctls: [a]\n"},
	"a size that is none":         {patch: "apiVersion: v1alpha1\nkind: UserVolumeConfig\nname: a\nprovisioning: {maxSize: big}\n"},
	"a key twice":                 {patch: "machine:\n  type: worker\n  type: controlplane\n"},
	"a tab":                       {patch: "machine:\n\ttype: worker\n", code: cli.ExitUsage},
	"an open bracket":             {patch: "machine: [\n", code: cli.ExitUsage},
	"nothing":                     {patch: "# nothing yet\n"},
	"the second document":         {patch: "machine:\n  type: worker\n---\napiVersion: v1alpha1\nkind: HostnameConfig\nhostnam: a\n"},
	"a name is missing":           {patch: "apiVersion: v1alpha1\nkind: UserVolumeConfig\n$patch: delete\n"},
	"a delete of the legacy":      {patch: "version: v1alpha1\n$patch: delete\n"},
	"the base twice":              {base: "machine: {type: worker}\n---\nmachine: {type: worker}\n", patch: "machine: {type: worker}\n"},
	"a delete in the base":        {base: "machine: {sysctls: {$patch: delete}}\n", patch: "machine: {type: worker}\n"},
	"an unknown field in base":    {base: "machine: {typ: worker}\n", patch: "machine: {type: worker}\n"},
	"an empty base":               {base: "\n", patch: "machine: {type: worker}\n"},
	"a secret with a wrong value": {patch: "machine:\n  ca: {crt: hunter2-hunter2}\n"},
}

func TestBadPatches(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)

	var b strings.Builder

	for _, name := range slices.Sorted(maps.Keys(badPatches)) {
		tc := badPatches[name]

		args, stdin := []string{"patch", "-f", "testdata/patch/base.yaml", "-p", "-"}, tc.patch

		if tc.base != "" {
			args, stdin = []string{"patch", "-f", "-", "-p", "testdata/patch/node.yaml"}, tc.base
		}

		want := tc.code
		if want == 0 {
			want = cli.ExitFindings
		}

		got := run(stdin, args...)
		g.Expect(got.code).To(Equal(want), "%s: %s", name, got)
		g.Expect(got.out).To(BeEmpty(), "a failed patch must write nothing")
		g.Expect(got.errOut).NotTo(ContainSubstring("hunter2"), name)

		fmt.Fprintf(&b, "%s\n    %s", name, got.errOut)
	}

	expectGolden(t, "bad-patches.txt", b.String())
}
