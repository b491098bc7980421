// SPDX-License-Identifier: Apache-2.0

package acceptance_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
)

// TestUnfitValuesAreRefused: whatever field refers to a Secret's or ConfigMap's key, a value that is no text is refused, and so is a
// credential that is too large. The error names field, object and key, and has nothing of the value.
func TestUnfitValuesAreRefused(t *testing.T) {
	secretKey := map[string]any{"name": "object", "key": "entry"}

	places := map[reflect.Type]map[string]any{
		reflect.TypeFor[*machineconfigv1alpha1.SecretKeyReference](): {`Secret "object"`: secretKey},
		reflect.TypeFor[*machineconfigv1alpha1.ValueSource](): {
			`Secret "object"`: map[string]any{"secretKeyRef": secretKey}, `ConfigMap "object"`: map[string]any{"configMapKeyRef": secretKey},
		},
		reflect.TypeFor[map[string]machineconfigv1alpha1.ValueSource](): {
			`Secret "object"`: map[string]any{"A": map[string]any{"secretKeyRef": secretKey}}, `ConfigMap "object"`: map[string]any{"A": map[string]any{"configMapKeyRef": secretKey}},
		},
		reflect.TypeFor[[]machineconfigv1alpha1.ValueSource](): {
			`Secret "object"`: []any{map[string]any{"secretKeyRef": secretKey}}, `ConfigMap "object"`: []any{map[string]any{"configMapKeyRef": secretKey}},
		},
	}

	fields := taggedFields("resolves")
	if len(fields) < 30 {
		t.Fatalf("found %d references; the walk misses some", len(fields))
	}

	for _, f := range fields {
		for object, reference := range places[f.typ] {
			unfit := map[string]string{secret + "\xff": "is not text in UTF-8", secret + "\x00": "has a NUL"}
			if f.typ == reflect.TypeFor[*machineconfigv1alpha1.SecretKeyReference]() {
				unfit[strings.Repeat("x", machineconfigv1alpha1.MaxCredential)+secret] = "at most 65536 are taken here"
			}

			for value, want := range unfit {
				t.Run(strings.Join(f.path, ".")+"/"+object+"/"+want, func(t *testing.T) {
					doc := machineconfigv1alpha1.Document{}
					if err := json.Unmarshal([]byte(f.document(t, reference)), &doc); err != nil {
						t.Fatal(err)
					}

					_, err := doc.TalosJSON(func(machineconfigv1alpha1.Source) (string, bool) { return value, true })

					refused, ok := errors.AsType[*machineconfigv1alpha1.ReferenceError](err)
					if !ok || len(refused.Faults) != 1 {
						t.Fatalf("got %v, want one fault of a reference", err)
					}

					if got := refused.Faults[0].Message; !strings.HasPrefix(got, `key "entry" of `+object+" ") || !strings.Contains(got, want) {
						t.Errorf("got %q, want the key, %s, and %s", got, object, want)
					}

					if !strings.Contains(refused.Faults[0].Reference.Path, f.path[len(f.path)-1]) {
						t.Errorf("got field %s, want one at %s", refused.Faults[0].Reference.Path, strings.Join(f.path, "."))
					}

					if strings.Contains(err.Error(), secret) {
						t.Error("the error shows the value")
					}
				})
			}
		}
	}
}
