// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/maesh-dev/ichor/test/harness"
)

// The ceilings of the design: a CRD is stored and served as a whole, and client-side apply doubles it in an annotation.
const (
	maxPatchCRD = 262_144
	maxCRD      = 65_536
	patchCRD    = "talosconfigpatches.bootstrap.ichor.maesh.dev"
)

// harnessPatience is how long a program may take on a busy machine.
const harnessPatience = 5 * time.Minute

var (
	api        client.Client
	kubeconfig string
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	crds, err := harness.ReadCRDs(
		filepath.Join("..", "..", "config", "bootstrap", "crd", "bases"), filepath.Join("..", "..", "config", "controlplane", "crd", "bases"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)

		return 1
	}

	cluster, err := harness.StartManagementCluster(context.Background(), harness.Options{CRDs: crds})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)

		return 1
	}

	api, kubeconfig = cluster.Client(), cluster.KubeconfigPath()
	code := m.Run()

	if err = cluster.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)

		return 1
	}

	return code
}

// object makes an object of a kind from its spec.
func object(t *testing.T, kind, name, spec string) *unstructured.Unstructured {
	t.Helper()

	content := map[string]any{}
	if err := yaml.Unmarshal([]byte(spec), &content); err != nil {
		t.Fatalf("%s: %v", name, err)
	}

	group := "bootstrap"
	if strings.HasPrefix(kind, "TalosControlPlane") {
		group = "controlplane"
	}

	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + ".ichor.maesh.dev/v1alpha1",
		"kind":       kind,
		"metadata":   map[string]any{"name": name, "namespace": "default"},
		"spec":       content,
	}}
}

const sysctl = "documents: [{kind: SysctlConfig, sysctlConfig: {params: {vm.swappiness: '1'}}}]"

func TestRules(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		kind, spec string

		// want is in the message of the refusal; empty: the object is accepted.
		want string
	}{
		"TalosConfig without anything":              {"TalosConfig", "{}", ""},
		"disk and diskSelector":                     {"TalosConfig", "install: {disk: /dev/sda, diskSelector: system_disk}", "exactly one of disk and diskSelector"},
		"neither disk nor diskSelector":             {"TalosConfig", "install: {wipe: true}", "exactly one of disk and diskSelector"},
		"disk that is no path":                      {"TalosConfig", "install: {disk: sda}", "spec.install.disk"},
		"contract with a patch number":              {"TalosConfig", "configContract: v1.13.2", "spec.configContract"},
		"contract without v":                        {"TalosConfig", "configContract: '1.13'", "spec.configContract"},
		"unknown platform":                          {"TalosConfig", "platform: vmware", "Metal"},
		"unknown hostname source":                   {"TalosConfig", "hostname: {source: DNS}", "MachineName"},
		"the same patch twice":                      {"TalosConfig", "patchRefs: [{name: a}, {name: a}]", "Duplicate"},
		"cluster config for nobody":                 {"TalosClusterConfig", "talos: {version: v1.14.1}", "exactly one of clusterName and clusterSelector"},
		"cluster config for name and labels":        {"TalosClusterConfig", "{clusterName: a, clusterSelector: {}}", "exactly one of clusterName and clusterSelector"},
		"cluster config for every cluster":          {"TalosClusterConfig", "clusterSelector: {}", ""},
		"Talos version that floats":                 {"TalosClusterConfig", "{clusterName: a, talos: {version: latest}}", "spec.talos.version"},
		"Talos version without v":                   {"TalosClusterConfig", "{clusterName: a, talos: {version: 1.14.1}}", "spec.talos.version"},
		"schematic that is none":                    {"TalosClusterConfig", "{clusterName: a, talos: {schematicID: abc}}", "spec.talos.schematicID"},
		"pool with a version, cluster without":      {"TalosClusterConfig", "{clusterName: a, talos: {pools: [{name: p, machineSelector: {}, version: v1.14.1}]}}", "a pool has a version of its own only beside"},
		"registry host with a scheme":               {"TalosClusterConfig", "{clusterName: a, registries: [{host: 'https://docker.io'}]}", "spec.registries[0].host"},
		"registry twice":                            {"TalosClusterConfig", "{clusterName: a, registries: [{host: docker.io}, {host: docker.io}]}", "Duplicate"},
		"username without a Secret":                 {"TalosClusterConfig", "{clusterName: a, registries: [{host: docker.io, username: u}]}", "username needs authSecretRef"},
		"password in a mirror's URL":                {"TalosClusterConfig", "{clusterName: a, registries: [{host: docker.io, endpoints: [{url: 'https://u:p@m.example.com'}]}]}", "spec.registries[0].endpoints[0].url"},
		"credentials in a Secret without a name":    {"TalosClusterConfig", "{clusterName: a, registries: [{host: docker.io, authSecretRef: {}}]}", "spec.registries[0].authSecretRef: Invalid value: name must be set"},
		"authority in a Secret without a name":      {"TalosClusterConfig", "{clusterName: a, registries: [{host: docker.io, tls: {caSecretRef: {}}}]}", "spec.registries[0].tls.caSecretRef: Invalid value: name must be set"},
		"client in a Secret with an empty name":     {"TalosClusterConfig", "{clusterName: a, registries: [{host: docker.io, tls: {clientCertificateSecretRef: {name: ''}}}]}", "spec.registries[0].tls.clientCertificateSecretRef: Invalid value: name must be set"},
		"trust roots in a Secret without a name":    {"TalosClusterConfig", "{clusterName: a, acceptedCAsSecretRef: {}}", "spec.acceptedCAsSecretRef: Invalid value: name must be set"},
		"secrets bundle in a Secret without a name": {"TalosClusterConfig", "{clusterName: a, secretsRef: {name: ''}}", "spec.secretsRef: Invalid value: name must be set"},
		"secrets bundle for every cluster":          {"TalosClusterConfig", "{clusterSelector: {}, secretsRef: {name: s}}", "secretsRef needs clusterName: a secrets bundle is that of one cluster"},
		"references with names":                     {"TalosClusterConfig", "{clusterName: a, secretsRef: {name: s}, acceptedCAsSecretRef: {name: s}, registries: [{host: docker.io, authSecretRef: {name: s}, tls: {caSecretRef: {name: s}, clientCertificateSecretRef: {name: s}}}]}", ""},
		"manifests without URLs":                    {"TalosClusterConfig", "{clusterName: a, network: {cni: {type: Manifests}}}", "urls must be set with type Manifests"},
		"URLs without manifests":                    {"TalosClusterConfig", "{clusterName: a, network: {cni: {type: None, urls: ['https://a.example.com']}}}", "urls must be set with type Manifests"},
		"KubePrism port that is too high":           {"TalosClusterConfig", "{clusterName: a, network: {kubePrismPort: 70000}}", "spec.network.kubePrismPort"},
		"KubePrism off":                             {"TalosClusterConfig", "{clusterName: a, network: {kubePrismPort: 0}}", ""},
		"endpoints and address types":               {"TalosClusterConfig", "{clusterName: a, talosAPI: {endpoints: [lb], addressTypes: [InternalIP]}}", "endpoints excludes addressTypes"},
		"patch of nothing":                          {"TalosConfigPatch", "{layer: Cluster, clusterName: a}", "at least one of documents and deletions"},
		"patch without a layer":                     {"TalosConfigPatch", "{clusterName: a, " + sysctl + "}", "spec.layer"},
		"patch by reference":                        {"TalosConfigPatch", "{layer: Pool, " + sysctl + "}", ""},
		"patch for name and labels":                 {"TalosConfigPatch", "{layer: Pool, clusterName: a, clusterSelector: {}, " + sysctl + "}", "exclude each other"},
		"machines of no cluster":                    {"TalosConfigPatch", "{layer: Pool, machineSelector: {matchLabels: {a: b}}, " + sysctl + "}", "machineSelector needs clusterName or clusterSelector"},
		"layer Role without a role":                 {"TalosConfigPatch", "{layer: Role, clusterName: a, " + sysctl + "}", "role must be set with layer Role"},
		"role in another layer":                     {"TalosConfigPatch", "{layer: Pool, role: Worker, clusterName: a, " + sysctl + "}", "role must be set with layer Role"},
		"kind and field that differ":                {"TalosConfigPatch", "{layer: Cluster, clusterName: a, documents: [{kind: SysctlConfig, timeSyncConfig: {}}]}", "documents[0]"},
		"two fields in a document":                  {"TalosConfigPatch", "{layer: Cluster, clusterName: a, documents: [{kind: SysctlConfig, sysctlConfig: {}, timeSyncConfig: {}}]}", "documents[0]"},
		"document that Talos does not have":         {"TalosConfigPatch", "{layer: Cluster, clusterName: a, documents: [{kind: SysctlsConfig}]}", "Unsupported value"},
		"deletion by a path without a slash":        {"TalosConfigPatch", "{layer: Cluster, clusterName: a, deletions: [{kind: Config, path: machine.token}]}", "spec.deletions[0].path"},
		"token in a patch": {
			"TalosConfigPatch", "{layer: Cluster, clusterName: a, documents: [{kind: Config, config: {machine: {token: abcdef.s3cr3t}}}]}",
			"machine.token: Forbidden: cluster secret; it comes from the secrets bundle",
		},
		"storage for nobody":                   {"TalosStorage", "preset: longhorn-v1", "exactly one of clusterName and clusterSelector"},
		"unknown storage":                      {"TalosStorage", "{clusterName: a, preset: ceph}", "longhorn-v1"},
		"directory with a selector":            {"TalosStorage", "{clusterName: a, preset: longhorn-v1, volume: {type: Directory, diskSelector: system_disk}}", "type Directory has none of"},
		"partition without a selector":         {"TalosStorage", "{clusterName: a, preset: longhorn-v1, volume: {type: Partition}}", "diskSelector must be set with type Partition or Disk"},
		"whole disk with a size":               {"TalosStorage", "{clusterName: a, preset: longhorn-v1, volume: {type: Disk, diskSelector: '!system_disk', minSize: 1GiB}}", "type Disk uses the whole disk"},
		"network key without an endpoint":      {"TalosStorage", "{clusterName: a, preset: longhorn-v1, volume: {type: Disk, diskSelector: '!system_disk', encryption: {keys: [{slot: 0, source: KMS}]}}}", "kmsEndpoint must be set with source KMS"},
		"healthy replicas by a word":           {"TalosStorage", "{clusterName: a, preset: longhorn-v1, reboot: {minHealthyElsewhere: Most}}", "minHealthyElsewhere must be Auto or a number"},
		"healthy replicas by Talos' own count": {"TalosStorage", "{clusterName: a, preset: longhorn-v1, reboot: {minHealthyElsewhere: Auto}}", ""},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			apply(t, name, tc.kind, tc.spec, tc.want)
		})
	}
}

// apply has the API server judge an object. want is in the message of the refusal; empty: the object is accepted.
func apply(t *testing.T, name, kind, spec, want string) {
	t.Helper()

	resource := "rule-" + strings.ToLower(strings.NewReplacer(" ", "-", "'", "", ",", "").Replace(name))
	err := api.Create(t.Context(), object(t, kind, resource, spec), client.FieldValidation("Strict"), client.DryRunAll)

	switch {
	case want == "" && err != nil:
		t.Errorf("refused: %v", err)
	case want != "" && err == nil:
		t.Errorf("accepted; want a refusal with %q", want)
	case want != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want)):
		t.Errorf("refused with %v\nwant %q in it", err, want)
	}

	if err != nil && strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("the refusal shows the secret: %v", err)
	}
}

// TestUnknownFieldsAreErrors holds for kubectl, whose validation is strict unless it is told otherwise.
func TestUnknownFieldsAreErrors(t *testing.T) {
	t.Parallel()

	spec := "{layer: Cluster, clusterName: a, documents: [{kind: SysctlConfig, sysctlConfig: {sysctls: {a: b}}}]}"

	err := api.Create(t.Context(), object(t, "TalosConfigPatch", "unknown-field", spec), client.FieldValidation("Strict"), client.DryRunAll)
	if err == nil || !strings.Contains(err.Error(), `unknown field "spec.documents[0].sysctlConfig.sysctls"`) {
		t.Errorf("got %v, want an error that names the field", err)
	}
}

// TestExamplesAreAccepted applies what the demo applies, as far as the kinds are Ichor's own.
func TestExamplesAreAccepted(t *testing.T) {
	t.Parallel()

	files, err := filepath.Glob(filepath.Join("..", "..", "examples", "*", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}

	accepted := 0

	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}

		for document := range strings.SplitSeq(string(data), "\n---\n") {
			example := &unstructured.Unstructured{}
			if err = yaml.Unmarshal([]byte(document), &example.Object); err != nil {
				t.Fatalf("%s: %v", file, err)
			}

			if !strings.HasPrefix(example.GetAPIVersion(), "bootstrap.ichor.maesh.dev/") {
				continue
			}

			if err = api.Create(t.Context(), example, client.FieldValidation("Strict"), client.DryRunAll); err != nil {
				t.Errorf("%s: %s %s: %v", file, example.GetKind(), example.GetName(), err)
			}

			accepted++
		}
	}

	if accepted == 0 {
		t.Error("no example found")
	}
}

// TestSizes prints what each definition weighs as the API server serves it, and holds it to its ceiling.
func TestSizes(t *testing.T) {
	t.Parallel()

	crds := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := api.List(t.Context(), crds); err != nil {
		t.Fatal(err)
	}

	if len(crds.Items) != 7 {
		t.Errorf("%d definitions, want 7", len(crds.Items))
	}

	for i := range crds.Items {
		crd := &crds.Items[i]
		crd.ManagedFields = nil

		data, err := json.Marshal(crd)
		if err != nil {
			t.Fatal(err)
		}

		ceiling := maxCRD
		if crd.Name == patchCRD {
			ceiling = maxPatchCRD
		}

		t.Logf("%s: %d bytes of at most %d", crd.Name, len(data), ceiling)

		if len(data) > ceiling {
			t.Errorf("%s is served as %d bytes, at most %d are allowed", crd.Name, len(data), ceiling)
		}

		if _, ok := crd.Labels["clusterctl.cluster.x-k8s.io/move"]; !ok {
			t.Errorf("%s has no label for clusterctl move", crd.Name)
		}
	}
}
