// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
)

const wireguard = `{"kind":"WireguardConfig","wireguardConfig":{"name":"wg0",
	"peers":[{"publicKey":"a"},{"presharedKeySecretRef":{"name":"wg","key":"psk"}}],"privateKeySecretRef":{"name":"wg","key":"private"}}}`

// inSecret gives the values of one Secret, by key.
func inSecret(name string, data map[string]string) machineconfigv1alpha1.Values {
	return func(source machineconfigv1alpha1.Source) (string, bool) {
		value, ok := data[source.Key]

		return value, ok && source.Kind == machineconfigv1alpha1.SourceSecret && source.Name == name
	}
}

func TestReferencesAreResolved(t *testing.T) {
	doc := decode(t, wireguard)

	got, err := doc.TalosJSON(inSecret("wg", map[string]string{"private": "hunter2\n", "psk": "hunter3\r\n"}))
	if err != nil {
		t.Fatal(err)
	}

	want := `{"apiVersion":"v1alpha1","kind":"WireguardConfig","name":"wg0","peers":[{"publicKey":"a"},{"presharedKey":"hunter3"}],"privateKey":"hunter2"}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("TalosJSON (-want +got):\n%s", diff)
	}

	references := []machineconfigv1alpha1.Reference{
		{Path: "privateKeySecretRef", Source: machineconfigv1alpha1.Source{Kind: "Secret", Name: "wg", Key: "private"}, Credential: true},
		{Path: "peers[1].presharedKeySecretRef", Source: machineconfigv1alpha1.Source{Kind: "Secret", Name: "wg", Key: "psk"}, Credential: true},
	}
	if diff := cmp.Diff(references, doc.References()); diff != "" {
		t.Errorf("References (-want +got):\n%s", diff)
	}

	if diff := cmp.Diff([]string{"/privateKey", "/peers/1/presharedKey"}, doc.ResolvedSecrets()); diff != "" {
		t.Errorf("ResolvedSecrets (-want +got):\n%s", diff)
	}
}

func TestReferenceErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		document string
		data     map[string]string
		want     string
	}{
		"no value at all": {
			document: wireguard,
			want: `WireguardConfig: privateKeySecretRef: there is no key "private" of Secret "wg"; ` +
				`peers[1].presharedKeySecretRef: there is no key "psk" of Secret "wg"`,
		},
		"one value is missing": {
			document: wireguard, data: map[string]string{"private": "hunter2"},
			want: `WireguardConfig: peers[1].presharedKeySecretRef: there is no key "psk" of Secret "wg"`,
		},
		"an empty credential": {
			document: wireguard, data: map[string]string{"private": "\n", "psk": "hunter2"},
			want: `WireguardConfig: privateKeySecretRef: key "private" of Secret "wg" is empty`,
		},
		"a credential that is no text": {
			document: wireguard, data: map[string]string{"private": "hunter2\xff", "psk": "hunter2"},
			want: `WireguardConfig: privateKeySecretRef: key "private" of Secret "wg" is not text in UTF-8, and Talos takes nothing else here`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decode(t, tc.document).TalosJSON(inSecret("wg", tc.data))
			if err == nil {
				t.Fatal("got no error")
			}

			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}

			if strings.Contains(err.Error(), "hunter") {
				t.Error("the error shows a value")
			}

			if _, ok := errors.AsType[*machineconfigv1alpha1.ReferenceError](err); !ok {
				t.Errorf("got a %T, want a ReferenceError", err)
			}
		})
	}
}

func TestNoValuesAreMissingValues(t *testing.T) {
	_, err := decode(t, wireguard).TalosJSON(nil)

	unusable, ok := errors.AsType[*machineconfigv1alpha1.ReferenceError](err)
	if !ok || len(unusable.Faults) != 2 || !unusable.Faults[0].Missing || !unusable.Faults[1].Missing {
		t.Errorf("got %v, want two missing values", err)
	}
}

func TestTalosKnowsNoReferences(t *testing.T) {
	_, err := machineconfigv1alpha1.DocumentFromTalosJSON(
		[]byte(`{"apiVersion":"v1alpha1","kind":"WireguardConfig","name":"wg0","privateKeySecretRef":{"name":"wg","key":"private"}}`))

	want := `WireguardConfig: unknown field "privateKeySecretRef"`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
