// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
)

func parsed(t *testing.T, documents string) *Patch {
	t.Helper()

	object := &bootstrapv1.TalosConfigPatch{}
	if err := yaml.UnmarshalStrict([]byte("metadata: {name: p}\nspec: {layer: Cluster, clusterName: c1, documents: ["+documents+"]}"), object); err != nil {
		t.Fatal(err)
	}

	return ParsePatch(object)
}

// TestHide masks what patches refer to, nothing else that the Secret holds, and loses no part of an error.
func TestHide(t *testing.T) {
	t.Parallel()

	patch := parsed(t, "{kind: WireguardConfig, wireguardConfig: {name: wg0, privateKeySecretRef: {name: wg, key: private}}}, "+
		"{kind: EnvironmentConfig, environmentConfig: {variablesFrom: {A: {configMapKeyRef: {name: wg, key: private}}}}}")
	references := NewReferences(map[ObjectKey]Object{
		{KindSecret, "wg"}:    {data: map[string][]byte{"private": []byte("hunter2"), "user": []byte("admin"), "on": []byte("true")}},
		{KindConfigMap, "wg"}: {data: map[string][]byte{"private": []byte("public")}},
	})

	fault := &Error{Reason: ReasonRenderFailed, Document: "D", Field: "/f", Err: errors.New("hunter2 of admin is true and public")}

	for name, tc := range map[string]struct {
		err    error
		want   string
		faults int
	}{
		"a fault":              {fault, "D: /f: ******** of admin is true and public", 1},
		"a fault and another":  {errors.Join(fault, errors.New("no hunter2")), "D: /f: ******** of admin is true and public\nno ********", 1},
		"lists in a list":      {errors.Join(errors.New("a"), errors.Join(fault, fault)), "a\nD: /f: ******** of admin is true and public\nD: /f: ******** of admin is true and public", 2},
		"wrapped":              {fmt.Errorf("render hunter2: %w", fault), "render ********: D: /f: ******** of admin is true and public", 1},
		"nothing of the value": {errors.New("admin"), "admin", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := references.hide(tc.err, []*Patch{patch})
			if diff := cmp.Diff(tc.want, got.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}

			if got := len(Errors(got)); got != tc.faults {
				t.Errorf("%d faults, want %d", got, tc.faults)
			}
		})
	}
}

// TestStandIns says which fields stand-ins are in, whatever keys of maps are called.
func TestStandIns(t *testing.T) {
	t.Parallel()

	const from = ": {secretKeyRef: {name: s, key: k}}"

	_, filled := parsed(t,
		"{kind: Config, config: {machine: {registries: {config: {hostFrom: {auth: {username: u, passwordSecretRef: {name: s, key: k}}}}}, "+
			"podsFrom: [{configMapKeyRef: {name: c, key: pod}}], files: [{path: /var/x, op: create, contentFrom"+from+"}], "+
			"env: {BFrom: x}, envFrom: {ASecretRef"+from+"}}}}, "+
			"{kind: SysctlConfig, sysctlConfig: {params: {aFrom: b}}}, "+
			"{kind: ExtensionServiceConfig, extensionServiceConfig: {name: e, environment: [A=b], environmentFrom: {B"+from+", C"+from+"}}}",
	).withStandIns()

	want := filledFields{
		"spec.documents[0]": {"/machine/pods", "/machine/files/0/content", "/machine/env", "/machine/registries/config/hostFrom/auth/password"},
		"spec.documents[2]": {"/environment", "/environment"},
	}
	for path := range want {
		if diff := cmp.Diff(setOf(want[path]), setOf(filled[path])); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}

	if len(filled) != len(want) {
		t.Errorf("got fields of %d documents, want of %d", len(filled), len(want))
	}
}

func setOf(items []string) map[string]bool {
	set := map[string]bool{}
	for _, item := range items {
		set[item] = true
	}

	return set
}
