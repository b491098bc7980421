// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
)

const filesPatch = `metadata: {name: NAME}
spec:
  layer: Cluster
  clusterName: c1
  documents:
  - kind: Config
    config: {machine: {files: [{path: /var/etc/NAME, op: create, permissions: 420, CONTENT}]}}
`

// TestConfigTooLarge names what makes the config large, be it a patch or what one refers to.
func TestConfigTooLarge(t *testing.T) {
	t.Parallel()

	const most = 1 << 20

	file := func(name, content string) *machineconfig.Patch {
		return patch(t, strings.NewReplacer("NAME", name, "CONTENT", content).Replace(filesPatch))
	}
	plain := func(name string, size int) *machineconfig.Patch {
		return file(name, "content: "+strings.Repeat("x", size))
	}

	for name, tc := range map[string]struct {
		patches []*machineconfig.Patch
		objects map[machineconfig.ObjectKey]machineconfig.Object
		want    string
	}{
		"patches": {
			patches: []*machineconfig.Patch{plain("a", most/4), plain("b", most/2), plain("c", 1), plain("d", most/3)},
			want:    "TalosConfigPatch b (524407 bytes), TalosConfigPatch d (349644 bytes), TalosConfigPatch a (262263 bytes)",
		},
		"a Secret": {
			patches: []*machineconfig.Patch{plain("a", 1000), file("b", "contentFrom: {secretKeyRef: {name: files, key: blob}}")},
			objects: secretOf("files", "blob", strings.Repeat("x", most)),
			want:    `key "blob" of Secret "files", which TalosConfigPatch b refers to (1048576 bytes)`,
		},
		"a ConfigMap of two patches": {
			patches: []*machineconfig.Patch{
				file("a", "contentFrom: {configMapKeyRef: {name: files, key: blob}}"), file("b", "contentFrom: {configMapKeyRef: {name: files, key: blob}}"),
			},
			objects: objectOf(machineconfig.KindConfigMap, "files", "blob", strings.Repeat("x", most/2)),
			want: `key "blob" of ConfigMap "files", which TalosConfigPatch a refers to (524288 bytes), ` +
				`key "blob" of ConfigMap "files", which TalosConfigPatch b refers to (524288 bytes)`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			in := input(t, "v1.14", false)
			in.Patches = tc.patches
			in.References = machineconfig.NewReferences(tc.objects)

			_, err := machineconfig.Render(in)
			if err == nil {
				t.Fatal("rendered")
			}

			if reason := machineconfig.ReasonOf(err); reason != machineconfig.ReasonValidationFailed {
				t.Errorf("reason %q, want %q", reason, machineconfig.ReasonValidationFailed)
			}

			size := regexp.MustCompile(`^the machine config has 1[0-9]{6} bytes, and a Secret holds 1048576 at most; make its largest inputs smaller: `)
			if !size.MatchString(err.Error()) {
				t.Errorf("got %q, want %s first", err, size)
			}

			if diff := cmp.Diff(tc.want, size.ReplaceAllString(err.Error(), "")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestConfigTooLargeByTrustRoots: the Secrets of a TalosClusterConfig count too.
func TestConfigTooLargeByTrustRoots(t *testing.T) {
	t.Parallel()

	in := input(t, "v1.14", false)
	spec := &clusterConfig(&in).Spec
	objects := map[string]machineconfig.Object{"ca": secretWith(map[string][]byte{
		"ca.crt": []byte(strings.Repeat(string(in.Bundle.Certs.K8s.Crt), 200<<10/len(in.Bundle.Certs.K8s.Crt))),
	})}

	for _, host := range []string{"a", "b", "c", "d", "e", "f"} {
		spec.Registries = append(spec.Registries, bootstrapv1.Registry{Host: host + ".example.com", TLS: bootstrapv1.RegistryTLS{CASecretRef: ref("ca")}})
	}

	var err error
	if in.Credentials, err = machineconfig.ResolveCredentials(in.ClusterConfig, objects); err != nil {
		t.Fatal(err)
	}

	_, err = machineconfig.Render(in)
	if err == nil || !strings.Contains(err.Error(), `make its largest inputs smaller: Secret "ca", which TalosClusterConfig c1 refers to (20`) {
		t.Errorf("got %v, want the Secret and its size", err)
	}
}
