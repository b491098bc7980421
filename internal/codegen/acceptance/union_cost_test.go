// SPDX-License-Identifier: Apache-2.0

package acceptance_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// maxDocuments is how many documents a patch may hold.
const maxDocuments = 128

// TestRulesAreCheap proves that the rules leave room: in what the API server estimates beforehand, for the definition, and in
// what it counts at run time, for an object.
func TestRulesAreCheap(t *testing.T) {
	crd := patchCRD(t).DeepCopy()

	props := crd.Spec.Validation
	if props == nil {
		props = crd.Spec.Versions[0].Schema
	}

	documents := props.OpenAPIV3Schema.Properties["spec"].Properties["documents"]
	if documents.MaxItems == nil || *documents.MaxItems != maxDocuments {
		t.Fatalf("got at most %v documents, want %d", documents.MaxItems, maxDocuments)
	}

	// The estimate grows with the number of documents. What holds for twice as many holds with room.
	*documents.MaxItems = 2 * maxDocuments

	for _, err := range crdvalidation.ValidateCustomResourceDefinition(t.Context(), crd) {
		t.Errorf("with %d documents: %v", *documents.MaxItems, err)
	}

	server := newAPIServer(t)
	all := strings.Repeat(`{"kind":"HostnameConfig","hostnameConfig":{"hostname":"a"}},`, maxDocuments-1) +
		`{"kind":"ZswapConfig","zswapConfig":{"maxPoolPercent":20}}`
	object := map[string]any{}

	if err := json.Unmarshal([]byte(`{"apiVersion":"acceptance.ichor.test/v1","kind":"Patch","spec":{"documents":[`+all+`]}}`), &object); err != nil {
		t.Fatal(err)
	}

	normalize(object)

	errs, left := server.rules.Validate(context.Background(), nil, server.structural, object, nil, celconfig.RuntimeCELCostBudget)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}

	used := celconfig.RuntimeCELCostBudget - left
	t.Logf("%d documents cost %d of %d units", maxDocuments, used, int64(celconfig.RuntimeCELCostBudget))

	// Some 35 a document: a rule that looked at every member would take ten times as many, and seconds.
	if used > 50*maxDocuments {
		t.Errorf("%d documents cost %d units, want at most %d", maxDocuments, used, 50*maxDocuments)
	}
}
