// SPDX-License-Identifier: Apache-2.0

package acceptance_test

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// maxCRDBytes is the ceiling for a served CRD: what client-side kubectl apply can still put into an annotation.
const maxCRDBytes = 262144

func moduleDir(t *testing.T, module ...string) string {
	t.Helper()

	out, err := exec.CommandContext(t.Context(), "go", append([]string{"list", "-m", "-f", "{{.Dir}}"}, module...)...).Output()
	if err != nil {
		t.Fatalf("find module %v: %v", module, err)
	}

	return strings.TrimSpace(string(out))
}

// makeCRD runs controller-gen on the kind in testdata/patch.
func makeCRD(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()

	root := moduleDir(t)

	cmd := exec.CommandContext(t.Context(), "go", "tool", "-modfile="+filepath.Join("internal", "tools", "tools.mod"),
		"controller-gen", "crd", "paths=./internal/codegen/acceptance/testdata/patch", "output:stdout")
	cmd.Dir = root

	var stderr strings.Builder

	cmd.Stderr = &stderr

	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("controller-gen: %v\n%s", err, stderr.String())
	}

	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(out, crd); err != nil {
		t.Fatalf("controller-gen's output: %v", err)
	}

	return crd
}

// internalCRD is the CRD as the API server handles it.
var internalCRD = struct {
	sync.Once
	crd  *apiextensions.CustomResourceDefinition
	size int
}{}

func patchCRD(t *testing.T) *apiextensions.CustomResourceDefinition {
	t.Helper()

	internalCRD.Do(func() {
		scheme := runtime.NewScheme()
		install.Install(scheme)

		crd := makeCRD(t)

		raw, err := json.Marshal(crd)
		if err != nil {
			t.Fatalf("encode the CRD: %v", err)
		}

		internalCRD.size = len(raw)

		scheme.Default(crd)

		internal := &apiextensions.CustomResourceDefinition{}
		if err := scheme.Convert(crd, internal, nil); err != nil {
			t.Fatalf("convert the CRD: %v", err)
		}

		internal.Status.StoredVersions = []string{internal.Spec.Versions[0].Name}
		internalCRD.crd = internal
	})

	if internalCRD.crd == nil {
		t.Fatal("the CRD could not be made, see the first test that needed it")
	}

	return internalCRD.crd
}

func TestCRDIsAccepted(t *testing.T) {
	crd := patchCRD(t)

	// This is what the API server runs: structural schema, rules compile, cost budget.
	for _, err := range crdvalidation.ValidateCustomResourceDefinition(t.Context(), crd) {
		t.Error(err)
	}

	t.Logf("a CRD of all documents has %d bytes of JSON, at most %d are permitted", internalCRD.size, maxCRDBytes)

	if internalCRD.size > maxCRDBytes {
		t.Errorf("the CRD has %d bytes, want at most %d", internalCRD.size, maxCRDBytes)
	}
}

// apiServer validates objects as an API server does that serves the CRD.
type apiServer struct {
	structural *schema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
}

func newAPIServer(t *testing.T) *apiServer {
	t.Helper()

	crd := patchCRD(t)

	props := crd.Spec.Validation
	if props == nil {
		props = crd.Spec.Versions[0].Schema
	}

	structural, err := schema.NewStructural(props.OpenAPIV3Schema)
	if err != nil {
		t.Fatalf("structural schema: %v", err)
	}

	validator, _, err := validation.NewSchemaValidator(props.OpenAPIV3Schema)
	if err != nil {
		t.Fatalf("schema validator: %v", err)
	}

	return &apiServer{
		structural: structural,
		schema:     validator,
		rules:      cel.NewValidator(structural, true, celconfig.PerCallLimit),
	}
}

// validate takes documents in JSON.
func (s *apiServer) validate(t *testing.T, documents ...string) field.ErrorList {
	t.Helper()

	object := map[string]any{}

	raw := `{"apiVersion":"acceptance.ichor.test/v1","kind":"Patch","metadata":{"name":"p"},"spec":{"documents":[` +
		strings.Join(documents, ",") + `]}}`
	if err := json.Unmarshal([]byte(raw), &object); err != nil {
		t.Fatalf("test object: %v\n%s", err, raw)
	}

	normalize(object)
	pruning.Prune(object, s.structural, true)

	errs := validation.ValidateCustomResource(nil, object, s.schema)
	if len(errs) > 0 {
		return errs // the API server runs rules only on what fits the schema
	}

	errs, _ = s.rules.Validate(context.Background(), nil, s.structural, object, nil, celconfig.RuntimeCELCostBudget)

	return errs
}

// normalize turns whole numbers into int64, as the API server's decoder does.
func normalize(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = normalize(e)
		}
	case []any:
		for i, e := range v {
			v[i] = normalize(e)
		}
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	}

	return v
}

func TestUnion(t *testing.T) {
	server := newAPIServer(t)

	for name, tc := range map[string]struct {
		document string
		want     string // part of the one error, empty for none
	}{
		"the field that kind names":   {`{"kind":"KubePrismConfig","kubePrismConfig":{"port":0}}`, ""},
		"an empty document":           {`{"kind":"HostnameConfig","hostnameConfig":{}}`, ""},
		"another field":               {`{"kind":"KubePrismConfig","hostnameConfig":{}}`, "sets the field that its kind names"},
		"no field":                    {`{"kind":"HostnameConfig"}`, "sets the field that its kind names"},
		"two fields":                  {`{"kind":"HostnameConfig","hostnameConfig":{},"kubePrismConfig":{}}`, "documents[0]: Too many: 3: must have at most 2"},
		"a text from one place":       {`{"kind":"EtcFileConfig","etcFileConfig":{"name":"a","contentsFrom":{"configMapKeyRef":{"name":"a","key":"b"}}}}`, ""},
		"a text from two places":      {`{"kind":"EtcFileConfig","etcFileConfig":{"name":"a","contents":"","contentsFrom":{"configMapKeyRef":{"name":"a","key":"b"}}}}`, "set one of contents and contentsFrom"},
		"a source that is none":       {`{"kind":"EtcFileConfig","etcFileConfig":{"name":"a","contentsFrom":{}}}`, "set exactly one of secretKeyRef and configMapKeyRef"},
		"two sources of a value":      {`{"kind":"EtcFileConfig","etcFileConfig":{"name":"a","contentsFrom":{"secretKeyRef":{"name":"a","key":"b"},"configMapKeyRef":{"name":"a","key":"b"}}}}`, "set exactly one of secretKeyRef and configMapKeyRef"},
		"a reference without a key":   {`{"kind":"HCloudVIPConfig","hcloudVIPConfig":{"name":"a","apiTokenSecretRef":{"name":"a"}}}`, "apiTokenSecretRef.key: Required value"},
		"a key with a slash":          {`{"kind":"HCloudVIPConfig","hcloudVIPConfig":{"name":"a","apiTokenSecretRef":{"name":"a","key":"b/c"}}}`, "apiTokenSecretRef.key"},
		"no kind":                     {`{"hostnameConfig":{}}`, "Required value"},
		"unknown kind":                {`{"kind":"v1alpha1","config":{}}`, "Unsupported value"},
		"no name where Talos needs":   {`{"kind":"UserVolumeConfig","userVolumeConfig":{}}`, "name: Required value"},
		"a port as a number":          {`{"kind":"NetworkRuleConfig","networkRuleConfig":{"name":"a","portSelector":{"ports":[80]}}}`, ""},
		"a port as a string":          {`{"kind":"NetworkRuleConfig","networkRuleConfig":{"name":"a","portSelector":{"ports":["80"]}}}`, "ports[0]"},
		"a boolean for off":           {`{"kind":"HostnameConfig","hostnameConfig":{"auto":false}}`, "auto"},
		"a quantity as a number":      {`{"kind":"Config","config":{"cluster":{"apiServer":{"resources":{"limits":{"cpu":2}}}}}}`, ""},
		"a quantity that is none":     {`{"kind":"Config","config":{"cluster":{"apiServer":{"resources":{"limits":{"cpu":"lots"}}}}}}`, "limits.cpu"},
		"an argument as a string":     {`{"kind":"Config","config":{"machine":{"kubelet":{"extraArgs":{"v":"4"}}}}}`, "extraArgs.v"},
		"a size without digits":       {`{"kind":"UserVolumeConfig","userVolumeConfig":{"name":"a","provisioning":{"minSize":"GiB"}}}`, "minSize"},
		"a port that is out of range": {`{"kind":"Config","config":{"machine":{"network":{"interfaces":[{"vlans":[{"vlanId":65536}]}]}}}}`, "vlanId"},
	} {
		t.Run(name, func(t *testing.T) {
			errs := server.validate(t, tc.document)

			got := errs.ToAggregate()

			switch {
			case tc.want == "" && got != nil:
				t.Errorf("got %v, want no error", got)
			case tc.want != "" && (got == nil || !strings.Contains(got.Error(), tc.want)):
				t.Errorf("got %v, want an error about %q", got, tc.want)
			}
		})
	}
}
