// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// controlPlane is the spec of a control plane with some more fields.
func controlPlane(more string) string {
	return "{version: v1.36.1, machineTemplate: {spec: {infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: GenericMachineTemplate, name: t}}}, " + more + "}"
}

// contract: replicas are odd, versions have their v, names something random, and maxSurge 0 three machines.
func TestControlPlaneRules(t *testing.T) {
	t.Parallel()

	const (
		surge    = "maxSurge 0 removes a machine before its replacement is there and needs at least 3 replicas"
		odd      = "replicas must be odd: etcd survives no more failures with an even number of members"
		template = "TalosControlPlaneTemplate"
	)

	rolling := func(replicas, surge string) string {
		return controlPlane("replicas: " + replicas + ", rollout: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: " + surge + "}}}")
	}
	operations := func(more string) string { return controlPlane("nodeOperations: {" + more + "}") }
	snapshot := func(more string) string { return operations("etcdSnapshot: {mode: BeforeUpgrade, " + more + "}") }

	cases := map[string]struct {
		// kind is a TalosControlPlane unless it is said.
		kind, spec, want string
	}{
		"as little as there can be":                {"", controlPlane(""), ""},
		"three replicas":                           {"", controlPlane("replicas: 3"), ""},
		"no replicas":                              {"", controlPlane("replicas: 0"), "spec.replicas: Invalid value: 0: a control plane has at least 1 replica; delete the Cluster to remove it"},
		"fewer than none":                          {"", controlPlane("replicas: -1"), "a control plane has at least 1 replica"},
		"two replicas":                             {"", controlPlane("replicas: 2"), odd},
		"four replicas":                            {"", controlPlane("replicas: 4"), odd},
		"no infrastructure":                        {"", "{version: v1.36.1}", "spec.machineTemplate: Required value"},
		"no version":                               {"", "{machineTemplate: {spec: {infrastructureRef: {apiGroup: a.b, kind: K, name: t}}}}", "spec.version: Required value"},
		"version without v":                        {"", strings.Replace(controlPlane(""), "v1.36.1", "1.36.1", 1), "spec.version: Invalid value: \"1.36.1\": version must be a Kubernetes version with v, minor and patch, such as v1.36.1"},
		"version without a patch":                  {"", strings.Replace(controlPlane(""), "v1.36.1", "v1.36", 1), "such as v1.36.1"},
		"version that floats":                      {"", strings.Replace(controlPlane(""), "v1.36.1", "latest", 1), "such as v1.36.1"},
		"version before its release":               {"", strings.Replace(controlPlane(""), "v1.36.1", "v1.37.0-rc.1", 1), ""},
		"no surge with three":                      {"", rolling("3", "0"), ""},
		"no surge with one":                        {"", rolling("1", "0"), surge},
		"no surge with one unsaid":                 {"", controlPlane("rollout: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0}}}"), surge},
		"surge of one":                             {"", rolling("1", "1"), ""},
		"surge of two":                             {"", rolling("3", "2"), "spec.rollout.strategy.rollingUpdate.maxSurge"},
		"surge of another type":                    {"", controlPlane("replicas: 3, rollout: {strategy: {type: OnDelete, rollingUpdate: {maxSurge: 1}}}"), "rollingUpdate is only for type RollingUpdate"},
		"surge of no type":                         {"", controlPlane("replicas: 3, rollout: {strategy: {rollingUpdate: {maxSurge: 1}}}"), "rollingUpdate is only for type RollingUpdate"},
		"fallback of the default type":             {"", controlPlane("rollout: {strategy: {inPlace: {fallback: Replace}}}"), ""},
		"fallback of another type":                 {"", controlPlane("rollout: {strategy: {type: RollingUpdate, inPlace: {fallback: Replace}}}"), "inPlace is only for type InPlace"},
		"unknown strategy":                         {"", controlPlane("rollout: {strategy: {type: Recreate}}"), "RollingUpdate"},
		"rollout after a time":                     {"", controlPlane("rollout: {after: '2026-11-30T08:00:00Z'}"), ""},
		"names without anything random":            {"", controlPlane("machineNaming: {template: '{{ .cluster.name }}-cp'}"), "template must contain {{ .random }}"},
		"names":                                    {"", controlPlane("machineNaming: {template: '{{ .cluster.name }}-cp-{{ .random }}'}"), ""},
		"names without spaces":                     {"", controlPlane("machineNaming: {template: 'cp-{{.random}}'}"), ""},
		"remediation":                              {"", controlPlane("remediation: {maxRetry: 3, retryPeriodSeconds: 600, minHealthyPeriodSeconds: 3600}"), ""},
		"remediation less than never":              {"", controlPlane("remediation: {maxRetry: -1}"), "spec.remediation.maxRetry"},
		"config spec with a fault":                 {"", controlPlane("talosConfigSpec: {install: {disk: sda}}"), "spec.talosConfigSpec.install.disk"},
		"one worker at a time":                     {"", operations("maxUnavailableWorkers: 1"), ""},
		"a tenth of the workers":                   {"", operations("maxUnavailableWorkers: 10%"), ""},
		"no worker at a time":                      {"", operations("maxUnavailableWorkers: 0"), "maxUnavailableWorkers must be at least 1, or a percentage from 1% to 100%"},
		"none in a hundred workers":                {"", operations("maxUnavailableWorkers: 0%"), "maxUnavailableWorkers must be at least 1"},
		"workers by a word":                        {"", operations("maxUnavailableWorkers: half"), "maxUnavailableWorkers must be at least 1"},
		"a window":                                 {"", operations("windows: [{name: night, cron: '0 2 * * 6', durationMinutes: 120, timeZone: Europe/Berlin}]"), ""},
		"a window that opens at no time":           {"", operations("windows: [{name: night, cron: '0 2 * *  ', durationMinutes: 120}]"), "cron must have five fields"},
		"a window that never closes":               {"", operations("windows: [{name: night, cron: '0 2 * * 6'}]"), "durationMinutes"},
		"the same window twice":                    {"", operations("windows: [{name: a, cron: '0 2 * * 6', durationMinutes: 1}, {name: a, cron: '0 2 * * 6', durationMinutes: 1}]"), "Duplicate"},
		"a gate":                                   {"", operations("gates: [{name: backup, object: {apiVersion: v1, kind: ConfigMap, namespace: a, name: b}, expression: 'object.data.done == \"yes\"', message: no backup}]"), ""},
		"a gate without a message":                 {"", operations("gates: [{name: backup, object: {apiVersion: v1, kind: ConfigMap, name: b}, expression: 'true'}]"), "message: Required value"},
		"a pool that replaces":                     {"", operations("pools: [{name: gpu, machineSelector: {matchLabels: {pool: gpu}}, strategy: Replace}]"), ""},
		"a pool with settings of its own":          {"", operations("pools: [{name: gpu, machineSelector: {matchLabels: {pool: gpu}}, mode: PlanOnly, maxUnavailableWorkers: 20%, windows: [{name: night, cron: '0 2 * * 6', durationMinutes: 60}], drain: {timeoutSeconds: 60}, readyTimeoutSeconds: 600, configChanges: Report}]"), ""},
		"a pool of which no worker may be away":    {"", operations("pools: [{name: gpu, machineSelector: {matchLabels: {pool: gpu}}, maxUnavailableWorkers: 0}]"), "maxUnavailableWorkers must be at least 1"},
		"an order of pools":                        {"", operations("order: {pools: [b, a]}, pools: [{name: a, machineSelector: {}}, {name: b, machineSelector: {}}]"), ""},
		"an order with an unknown pool":            {"", operations("order: {pools: [a, gpu]}, pools: [{name: a, machineSelector: {}}]"), "order.pools names a pool that is not in pools: add it there, or take it out of order.pools"},
		"an order without pools":                   {"", operations("order: {pools: [a]}"), "order.pools names a pool that is not in pools"},
		"an order with a pool twice":               {"", operations("order: {pools: [a, a]}, pools: [{name: a, machineSelector: {}}]"), "Duplicate"},
		"an unknown mode":                          {"", operations("mode: Manual"), "PlanOnly"},
		"a snapshot to nowhere":                    {"", operations("etcdSnapshot: {mode: BeforeUpgrade}"), "mode BeforeUpgrade needs exactly one of directory and s3"},
		"a snapshot to two places":                 {"", snapshot("directory: /backup, s3: {endpoint: 'https://s3', bucket: bkt, credentialsSecretRef: {name: s}}"), "mode BeforeUpgrade needs exactly one of directory and s3"},
		"a snapshot to a directory":                {"", snapshot("directory: /backup"), ""},
		"a snapshot to a relative directory":       {"", snapshot("directory: ../backup"), "directory must be an absolute path"},
		"a snapshot to a bucket":                   {"", snapshot("s3: {endpoint: 'https://s3.example.com', bucket: bkt, credentialsSecretRef: {name: s}}"), ""},
		"a snapshot with credentials in the URL":   {"", snapshot("s3: {endpoint: 'https://u:p@s3.example.com', bucket: bkt, credentialsSecretRef: {name: s}}"), "spec.nodeOperations.etcdSnapshot.s3.endpoint"},
		"a snapshot without credentials":           {"", snapshot("s3: {endpoint: 'https://s3.example.com', bucket: bkt}"), "credentialsSecretRef: Required value"},
		"a template of nothing":                    {template, "{}", "spec.template: Required value"},
		"a template":                               {template, "{template: {spec: {talosConfigSpec: {hostname: {source: MachineName}}, rollout: {strategy: {type: RollingUpdate}}, machineTemplate: {spec: {deletion: {nodeDrainTimeoutSeconds: 60}}}}}}", ""},
		"a template without anything in its spec":  {template, "{template: {spec: {}}}", ""},
		"a template with an order of no pools":     {template, "{template: {spec: {nodeOperations: {order: {pools: [a]}}}}}", "order.pools names a pool that is not in pools"},
		"a template with a surge of another type":  {template, "{template: {spec: {rollout: {strategy: {type: OnDelete, rollingUpdate: {maxSurge: 1}}}}}}", "rollingUpdate is only for type RollingUpdate"},
		"a template with a name that is no random": {template, "{template: {spec: {machineNaming: {template: cp}}}}", "template must contain {{ .random }}"},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if tc.kind == "" {
				tc.kind = "TalosControlPlane"
			}

			apply(t, name, tc.kind, tc.spec, tc.want)
		})
	}
}

// TestTemplateLeavesTopologyItsFields holds the template to what Cluster API's topology does not say itself.
//
// contract: a template has none of the fields that the topology controller sets.
func TestTemplateLeavesTopologyItsFields(t *testing.T) {
	t.Parallel()

	for _, field := range []string{"replicas: 3", "version: v1.36.1", "machineTemplate: {spec: {infrastructureRef: {apiGroup: a.b, kind: K, name: n}}}"} {
		spec := "{template: {spec: {" + field + "}}}"

		err := api.Create(t.Context(), object(t, "TalosControlPlaneTemplate", "topology", spec), client.FieldValidation("Strict"), client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), "unknown field") {
			t.Errorf("%s: got %v, want an error about an unknown field", field, err)
		}
	}
}

// TestScale scales a control plane as kubectl scale and autoscalers do: by the subresource, to which the same rules apply.
//
// contract: the scale subresource has the selector, and is held to the rules of replicas.
func TestScale(t *testing.T) {
	t.Parallel()

	scaled := object(t, "TalosControlPlane", "scaled", controlPlane("replicas: 3, rollout: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0}}}"))
	if err := api.Create(t.Context(), scaled); err != nil {
		t.Fatal(err)
	}

	cases := map[int32]string{5: "", 4: "replicas must be odd", 0: "at least 1 replica", 1: "needs at least 3 replicas"}

	for replicas, want := range cases {
		scale := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": map[string]any{"replicas": int64(replicas)},
		}}
		err := api.SubResource("scale").Update(t.Context(), scaled.DeepCopy(), client.WithSubResourceBody(scale), client.DryRunAll)

		switch {
		case want == "" && err != nil:
			t.Errorf("%d replicas: %v", replicas, err)
		case want != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want)):
			t.Errorf("%d replicas: got %v, want %q in it", replicas, err, want)
		}
	}

	status := map[string]any{"replicas": int64(0), "selector": "a=b"}
	if err := unstructured.SetNestedMap(scaled.Object, status, "status"); err != nil {
		t.Fatal(err)
	}

	if err := api.Status().Update(t.Context(), scaled); err != nil {
		t.Fatal(err)
	}

	scale := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "autoscaling/v1", "kind": "Scale"}}
	if err := api.SubResource("scale").Get(t.Context(), scaled.DeepCopy(), scale); err != nil {
		t.Fatal(err)
	}

	replicas, _, _ := unstructured.NestedInt64(scale.Object, "spec", "replicas")
	if selector, _, _ := unstructured.NestedString(scale.Object, "status", "selector"); replicas != 3 || selector != "a=b" {
		t.Errorf("the scale subresource says %v", scale.Object)
	}

	// Cluster API reads zeros too, so they must not be left out.
	if got, found, err := unstructured.NestedInt64(scaled.Object, "status", "replicas"); err != nil || !found || got != 0 {
		t.Errorf("status.replicas is %d, found %t, %v; want 0", got, found, err)
	}
}

// TestColumns holds what kubectl get shows to Cluster API's control planes: users and their scripts know those.
func TestColumns(t *testing.T) {
	t.Parallel()

	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := api.Get(t.Context(), client.ObjectKey{Name: "taloscontrolplanes.controlplane.ichor.maesh.dev"}, crd); err != nil {
		t.Fatal(err)
	}

	var got []string
	for _, column := range crd.Spec.Versions[0].AdditionalPrinterColumns {
		if column.Priority == 0 {
			got = append(got, column.Name+" "+column.Type)
		}
	}

	want := "Cluster string, Available string, Desired integer, Current integer, Ready integer, Available integer, Up-to-date integer, Version string, Plan string, Age date"
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("columns %s; want %s", text, want)
	}
}

// TestContractOfDefinitions holds the definitions to Cluster API's contract.
//
// contract: the definitions of control planes have the contract's label, and specs no defaults.
func TestContractOfDefinitions(t *testing.T) {
	t.Parallel()

	for _, name := range []string{"taloscontrolplanes", "taloscontrolplanetemplates"} {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := api.Get(t.Context(), client.ObjectKey{Name: name + ".controlplane.ichor.maesh.dev"}, crd); err != nil {
			t.Fatal(err)
		}

		if crd.Labels["cluster.x-k8s.io/v1beta2"] != "v1alpha1" {
			t.Errorf("%s: labels %v lack the contract's", name, crd.Labels)
		}

		// The topology controller compares dry runs: a default in a spec would be a rollout.
		data, err := json.Marshal(crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"])
		if err != nil {
			t.Fatal(err)
		}

		// But for the name of a reference to a Secret, which must not be empty and so never gets it.
		data = bytes.ReplaceAll(data, []byte(`"default":""`), nil)

		if found := strings.Index(string(data), `"default":`); found >= 0 {
			t.Errorf("%s: the spec has a default: %s", name, data[max(0, found-100):found+50])
		}

		if fmt.Sprint(crd.Spec.Names.Categories) != "[cluster-api]" {
			t.Errorf("%s: categories %v", name, crd.Spec.Names.Categories)
		}
	}
}
