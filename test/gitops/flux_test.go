// SPDX-License-Identifier: Apache-2.0

package gitops_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// fluxExpression is one entry of spec.healthCheckExprs.
type fluxExpression struct{ APIVersion, Kind, Current, Failed, InProgress string }

func fluxExpressions(t *testing.T) map[string]fluxExpression {
	t.Helper()

	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "gitops", "flux", "health-check-exprs.yaml"))
	if err != nil {
		t.Fatal(err)
	}

	var file struct{ HealthCheckExprs []fluxExpression }
	if err := yaml.UnmarshalStrict(data, &file); err != nil {
		t.Fatal(err)
	}

	byKind := map[string]fluxExpression{}

	for _, expression := range file.HealthCheckExprs {
		if want := group + "/v1alpha1"; expression.APIVersion != want {
			t.Errorf("%s: apiVersion is %s, not %s", expression.Kind, expression.APIVersion, want)
		}

		byKind[expression.Kind] = expression
	}

	return byKind
}

// status evaluates the expressions in Flux's order: a generation that was not observed yet is in progress; then what is in
// progress, failed and current; nothing of all that is in progress, too. An error makes Flux ask again.
func (e fluxExpression) status(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()

	observed, found, err := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	if err != nil {
		t.Fatal(err)
	}

	if found && observed != object.GetGeneration() {
		return "InProgress"
	}

	for _, each := range []struct{ expression, status string }{{e.InProgress, "InProgress"}, {e.Failed, "Failed"}, {e.Current, "Current"}} {
		if each.expression == "" {
			continue
		}

		holds, err := evaluate(t, each.expression, object.Object)
		if err != nil {
			return unevaluated
		}

		if holds {
			return each.status
		}
	}

	return "InProgress"
}

func evaluate(t *testing.T, expression string, variables map[string]any) (bool, error) {
	t.Helper()

	env, err := cel.NewEnv(cel.HomogeneousAggregateLiterals(), cel.DefaultUTCTimeZone(true), cel.CrossTypeNumericComparisons(true),
		cel.OptionalTypes(), ext.Strings(), ext.Sets(), ext.Encoders())
	if err != nil {
		t.Fatal(err)
	}

	parsed, issues := env.Parse(expression)
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}

	program, err := env.Program(parsed)
	if err != nil {
		t.Fatal(err)
	}

	value, _, err := program.Eval(variables)
	if err != nil {
		return false, err
	}

	holds, ok := value.Value().(bool)
	if !ok {
		t.Fatalf("%s gives %v, which is no bool", expression, value)
	}

	return holds, nil
}
