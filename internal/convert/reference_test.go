// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
	"github.com/maesh-dev/ichor/internal/convert"
	"github.com/maesh-dev/ichor/internal/version"
)

// TestReferences: credentials, whole pods, and content that holds a secret in so many words move into the Secret, and the rest
// stays where it was.
func TestReferences(t *testing.T) {
	t.Parallel()

	data, err := os.ReadFile("testdata/references.yaml")
	if err != nil {
		t.Fatal(err)
	}

	result, err := convert.Convert(documents(string(data)), options())
	if err != nil {
		t.Fatal(err)
	}

	if patch := encode(t, result.Patch); strings.Contains(string(patch), planted) {
		t.Errorf("the patch shows a secret:\n%s", patch)
	}

	got := string(encode(t, result.Patch)) + "---\n" + string(encode(t, result.Secret))

	const golden = "testdata/references-converted.yaml"

	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("run the test with -update if the difference is meant (-want +got):\n%s", diff)
	}
}

// TestEveryKindIsOfferedOrRefusedWithAReason: of a kind that a newer machinery has, somebody decides.
func TestEveryKindIsOfferedOrRefusedWithAReason(t *testing.T) {
	t.Parallel()

	for _, kind := range version.Kinds() {
		if kind == "v1alpha1" {
			continue // the legacy document, which is called Config here
		}

		_, err := convert.Convert(documents("apiVersion: v1alpha1\nkind: "+kind+"\n"), options())
		refused := err != nil && strings.Contains(err.Error(), "remove the document")

		if _, offered := reflect.TypeFor[machineconfigv1alpha1.Document]().FieldByName(kind); offered == refused {
			t.Errorf("%s: offered %v, refused with what to do %v: either offer it, or say in the table of denied kinds why not", kind, offered, refused)
		}
	}
}
