// SPDX-License-Identifier: Apache-2.0

package gitops_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/yaml"
)

// verdicts are what the three say of an object.
type verdicts struct {
	// Argo is the health that Argo CD shows with our checks.
	Argo string

	// KStatus is what kstatus computes, which Flux shows without our expressions.
	KStatus status.Status

	// Flux is what it says with them. Empty: there are none for the kind.
	Flux string
}

const (
	healthy, progressing, degraded, suspended = "Healthy", "Progressing", "Degraded", "Suspended"

	// unevaluated is Flux's answer when an expression names a field that is not there. It asks again.
	unevaluated = "Unknown"
)

func condition(conditionType, status, reason, message string) string {
	return fmt.Sprintf("{type: %s, status: %q, reason: %s, message: %q, lastTransitionTime: \"2026-05-04T03:02:01Z\"}", conditionType, status, reason, message)
}

// said is a status that was made from generation 2, which is the object's.
func said(conditions ...string) string {
	return "status: {observedGeneration: 2, conditions: [" + strings.Join(conditions, ", ") + "]}"
}

// config is the status of a TalosConfig: Ready, and the three that make it up.
func config(ready, secret, bundle, rendered string) string {
	conditions := []string{condition("Ready", ready, map[string]string{"True": "Ready", "False": "NotReady"}[ready], "* the message")}

	for conditionType, reason := range map[string]string{"DataSecretAvailable": secret, "SecretsBundleAvailable": bundle, "ConfigRendered": rendered} {
		if reason == "" {
			continue
		}

		state := "False"
		if slices.Contains([]string{"Available", "Rendered", "Adopted", "NotNeeded"}, reason) {
			state = "True"
		}

		conditions = append(conditions, condition(conditionType, state, reason, ""))
	}

	return said(conditions...)
}

var (
	notSeen  = verdicts{progressing, status.CurrentStatus, unevaluated}
	outdated = verdicts{progressing, status.InProgressStatus, "InProgress"}
	waits    = verdicts{progressing, status.InProgressStatus, "InProgress"}
	fault    = verdicts{degraded, status.InProgressStatus, "Failed"}
	fine     = verdicts{healthy, status.CurrentStatus, "Current"}
)

type state struct {
	kind, metadata, status string
	want                   verdicts
}

// talosConfigs are the states of a TalosConfig.
func talosConfigs() map[string]state {
	states := map[string]state{
		"nobody has looked at it":        {want: notSeen},
		"changed since":                  {status: strings.Replace(config("True", "Available", "Available", "Rendered"), "observedGeneration: 2", "observedGeneration: 1", 1), want: outdated},
		"paused before anybody saw it":   {status: "status: {conditions: [" + condition("Paused", "True", "Paused", "Cluster is paused") + "]}", want: verdicts{suspended, status.CurrentStatus, "InProgress"}},
		"paused by annotation":           {metadata: `annotations: {cluster.x-k8s.io/paused: ""}`, status: config("True", "Available", "Available", "Rendered"), want: verdicts{suspended, status.CurrentStatus, "Current"}},
		"paused with its cluster":        {status: strings.Replace(config("True", "Available", "Available", "Rendered"), "conditions: [", "conditions: ["+condition("Paused", "True", "Paused", "Cluster is paused")+", ", 1), want: verdicts{suspended, status.CurrentStatus, "Current"}},
		"ready is unknown":               {status: said(condition("Ready", "Unknown", "ReadyUnknown", "")), want: waits},
		"rendered":                       {status: config("True", "Available", "Available", "Rendered"), want: fine},
		"adopted":                        {status: config("True", "Available", "", "Adopted"), want: fine},
		"joined, its Secret is gone":     {status: config("True", "NotNeeded", "Available", "Rendered"), want: fine},
		"its Machine is being deleted":   {status: config("False", "NotAvailable", "", "WaitingForInputs"), want: waits},
		"the API server refuses":         {status: config("False", "NotAvailable", "Available", "Rendered"), want: fault},
		"another's Secret is in the way": {status: config("False", "ForeignSecret", "", ""), want: fault},
	}

	for _, reason := range []string{"WaitingForOwner", "WaitingForCluster", "WaitingForClusterInfrastructureReady", "WaitingForControlPlaneEndpoint"} {
		states[reason] = state{status: config("False", reason, "", "WaitingForInputs"), want: waits}
	}

	for _, reason := range []string{"Missing", "Invalid", "Mismatch"} {
		states["bundle "+reason] = state{status: config("False", "NotAvailable", reason, "WaitingForInputs"), want: fault}
	}

	for _, reason := range []string{"ConfigContractUnknown", "AmbiguousTalosClusterConfig", "InvalidReference", "RenderFailed", "ValidationFailed"} {
		states[reason] = state{status: config("False", "NotAvailable", "Available", reason), want: fault}
	}

	for name, each := range states {
		each.kind = "TalosConfig"
		states[name] = each
	}

	return states
}

// others are the states of the kinds of which Ready says everything.
func others() map[string]state {
	states := map[string]state{}

	for _, kind := range []string{"TalosClusterConfig", "TalosConfigPatch"} {
		states[kind+" that nobody has looked at"] = state{kind: kind, want: notSeen}
		states[kind+" that has changed"] = state{kind: kind, status: strings.Replace(said(condition("Ready", "True", "Ready", "")), "observedGeneration: 2", "observedGeneration: 1", 1), want: outdated}
		states[kind+" that is good"] = state{kind: kind, status: said(condition("Ready", "True", "Ready", "")), want: fine}
		states[kind+" that is not"] = state{kind: kind, status: said(condition("Ready", "False", "NotReady", "why")), want: fault}
		states[kind+" of which it is not known"] = state{kind: kind, status: said(condition("Ready", "Unknown", "ReadyUnknown", "")), want: waits}
		states[kind+" that is paused"] = state{kind: kind, metadata: `annotations: {cluster.x-k8s.io/paused: "true"}`, status: said(condition("Ready", "True", "Ready", "")), want: verdicts{suspended, status.CurrentStatus, "Current"}}
	}

	states["TalosStorage"] = state{kind: "TalosStorage", want: verdicts{healthy, status.CurrentStatus, ""}}
	states["TalosStorage that is prepared"] = state{kind: "TalosStorage", status: said(condition("Ready", "True", "Ready", "")), want: verdicts{healthy, status.CurrentStatus, ""}}
	states["TalosStorage that is not"] = state{kind: "TalosStorage", status: said(condition("Ready", "False", "NotReady", "")), want: verdicts{degraded, status.InProgressStatus, ""}}
	states["TalosStorage that has changed"] = state{kind: "TalosStorage", status: strings.Replace(said(condition("Ready", "True", "Ready", "")), "observedGeneration: 2", "observedGeneration: 1", 1), want: verdicts{progressing, status.InProgressStatus, ""}}
	states["TalosStorage that is paused"] = state{kind: "TalosStorage", metadata: `annotations: {cluster.x-k8s.io/paused: ""}`, want: verdicts{suspended, status.CurrentStatus, ""}}
	states["TalosConfigTemplate"] = state{kind: "TalosConfigTemplate", want: verdicts{healthy, status.CurrentStatus, ""}}

	return states
}

func (s state) object(t *testing.T) *unstructured.Unstructured {
	t.Helper()

	content := map[string]any{}

	text := fmt.Sprintf("apiVersion: bootstrap.ichor.maesh.dev/v1alpha1\nkind: %s\nmetadata: {name: x, namespace: default, generation: 2, %s}\n%s\n", s.kind, s.metadata, s.status)
	if err := yaml.Unmarshal([]byte(text), &content, yaml.DisallowUnknownFields); err != nil {
		t.Fatal(err)
	}

	// As a client reads it: integers are integers.
	object := &unstructured.Unstructured{}

	data, err := (&unstructured.Unstructured{Object: content}).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}

	if err := object.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}

	return object
}

// Each state is told apart: healthy, progressing, degraded and suspended by Argo CD; waiting and failed by Flux with the
// expressions. kstatus by itself never fails.
func TestHealth(t *testing.T) {
	expressions := fluxExpressions(t)

	for _, states := range []map[string]state{talosConfigs(), others()} {
		for name, each := range states {
			t.Run(name, func(t *testing.T) {
				object := each.object(t)

				computed, err := status.Compute(object)
				if err != nil {
					t.Fatal(err)
				}

				got := verdicts{Argo: argoHealth(t, object), KStatus: computed.Status}
				if expression, ok := expressions[each.kind]; ok {
					got.Flux = expression.status(t, object)
				}

				if diff := cmp.Diff(each.want, got); diff != "" {
					t.Errorf("want (-), got (+):\n%s", diff)
				}
			})
		}
	}
}

// Every kind has a health check, which Argo CD's ConfigMap gets under the name that Argo CD looks for.
func TestKinds(t *testing.T) {
	bases, err := filepath.Glob(filepath.Join("..", "..", "config", "bootstrap", "crd", "bases", "*.yaml"))
	if err != nil || len(bases) == 0 {
		t.Fatal(len(bases), err)
	}

	var want []string

	for _, base := range bases {
		data, err := os.ReadFile(base)
		if err != nil {
			t.Fatal(err)
		}

		var crd struct {
			Spec struct{ Names struct{ Kind string } }
		}
		if err := yaml.Unmarshal(data, &crd); err != nil {
			t.Fatal(err)
		}

		want = append(want, fmt.Sprintf("resource.customizations.health.%s_%s=%s/%s/health.lua", group, crd.Spec.Names.Kind, group, crd.Spec.Names.Kind))
	}

	data, err := os.ReadFile(filepath.Join(argoDirectory, "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}

	var kustomization struct {
		ConfigMapGenerator []struct {
			Name  string
			Files []string
		}
	}
	if err := yaml.Unmarshal(data, &kustomization); err != nil {
		t.Fatal(err)
	}

	slices.Sort(want)

	if len(kustomization.ConfigMapGenerator) != 1 || kustomization.ConfigMapGenerator[0].Name != "argocd-cm" {
		t.Fatalf("one ConfigMap argocd-cm is to be generated, not %v", kustomization.ConfigMapGenerator)
	}

	if diff := cmp.Diff(want, kustomization.ConfigMapGenerator[0].Files); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}
