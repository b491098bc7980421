// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
)

// machines is a machine template of a control plane, with more fields.
func machines(more string) string {
	return "machineTemplate: {spec: {infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: SimMachineTemplate, name: t}" + more + "}}"
}

// controlPlane is the spec of one, with more fields.
func controlPlane(more string) string {
	return "{version: v1.36.1, " + machines("") + more + "}"
}

// What is refused when a control plane is created, or its template, and what is not. An empty want is accepted.
//
// contract: what is no version, name, label or taint is refused, in templates too.
func TestControlPlaneRules(t *testing.T) {
	const template = "TalosControlPlaneTemplate"

	operations := func(more string) string { return controlPlane(", nodeOperations: {" + more + "}") }
	gate := func(object, expression string) string {
		return operations("gates: [{name: g, object: " + object + ", expression: '" + expression + "', message: m}]")
	}
	window := func(cron, more string) string {
		return operations("windows: [{name: night, cron: '" + cron + "', durationMinutes: 60" + more + "}]")
	}
	reference := func(group, kind string) string {
		return "{version: v1.36.1, machineTemplate: {spec: {infrastructureRef: {apiGroup: " + group + ", kind: " + kind + ", name: t}}}}"
	}

	tests := map[string]struct {
		// kind is TalosControlPlane unless it is said.
		kind, spec, want string
	}{
		"as little as there can be":                     {"", controlPlane(""), ""},
		"Kubernetes that no Talos runs":                 {"", "{version: v1.99.0, " + machines("") + "}", "spec.version: Invalid value: kubernetes version v1.99.0: not known to run on any Talos that the machines may have: Talos v1.12 to v1.14 run Kubernetes 1."},
		"Kubernetes that is too old":                    {"", "{version: v1.20.0, " + machines("") + "}", "spec.version: Invalid value: kubernetes version v1.20.0: not known to run"},
		"Kubernetes of another distribution":            {"", "{version: v1.36.1+k3s1, " + machines("") + "}", "spec.version: Invalid value: kubernetes version \"v1.36.1+k3s1\": must not have build metadata"},
		"Kubernetes too old for the format":             {"", "{version: v1.30.0, talosConfigSpec: {configContract: v1.14}, " + machines("") + "}", "and no older Talos reads config contract v1.14"},
		"a machine for a template":                      {"", reference("infrastructure.cluster.x-k8s.io", "SimMachine"), "spec.machineTemplate.spec.infrastructureRef.kind: Invalid value: must be the kind of a template of machines, which ends in Template, such as Metal3MachineTemplate"},
		"a bootstrap config for a template":             {"", reference("bootstrap.ichor.maesh.dev", "TalosConfigTemplate"), "spec.machineTemplate.spec.infrastructureRef.apiGroup: Invalid value: must be the group of an infrastructure provider"},
		"label that cannot be":                          {"", strings.Replace(controlPlane(""), "machineTemplate: {", "machineTemplate: {metadata: {labels: {'a b': c}}, ", 1), "spec.machineTemplate.metadata.labels"},
		"taint of Cluster API":                          {"", "{version: v1.36.1, " + machines(", taints: [{key: node.cluster.x-k8s.io/uninitialized, effect: NoSchedule, propagation: Always}]") + "}", "spec.machineTemplate.spec.taints[0].key: Invalid value: belongs to Cluster API"},
		"taint of Kubernetes":                           {"", "{version: v1.36.1, " + machines(", taints: [{key: node.kubernetes.io/not-ready, effect: NoSchedule, propagation: Always}]") + "}", "spec.machineTemplate.spec.taints[0].key: Invalid value: belongs to Kubernetes"},
		"taint that is no longer used":                  {"", "{version: v1.36.1, " + machines(", taints: [{key: node-role.kubernetes.io/master, effect: NoSchedule, propagation: Always}]") + "}", "spec.machineTemplate.spec.taints[0].key: Invalid value: is no longer used"},
		"taint":                                         {"", "{version: v1.36.1, " + machines(", taints: [{key: example.com/a, effect: NoSchedule, propagation: Always}]") + "}", ""},
		"format that nobody knows":                      {"", controlPlane(", talosConfigSpec: {configContract: v1.99}"), "spec.talosConfigSpec.configContract: Invalid value: config contract \"v1.99\": not known to this release"},
		"disk expression":                               {"", controlPlane(", talosConfigSpec: {install: {diskSelector: 'disk.sise > 1u'}}"), "spec.talosConfigSpec.install.diskSelector: Invalid value: not an expression over a disk"},
		"patch that cannot exist":                       {"", controlPlane(", talosConfigSpec: {patchRefs: [{name: My_Patch}]}"), "spec.talosConfigSpec.patchRefs[My_Patch].name"},
		"a window":                                      {"", window("0 2 * * 6", ", timeZone: Europe/Berlin"), ""},
		"a window at the 25th hour":                     {"", window("0 25 * * 6", ""), "spec.nodeOperations.windows[night].cron: Invalid value: end of range (25) above maximum (23): 25: must be minute, hour"},
		"a window with words":                           {"", window("at two in the morning", ""), "spec.nodeOperations.windows[night].cron: Invalid value: "},
		"a window with a time zone in it":               {"", window("TZ=UTC 2 * * 6", ""), "spec.nodeOperations.windows[night].cron: Invalid value: must be five fields and no time zone: set timeZone"},
		"a window in no time zone":                      {"", window("0 2 * * 6", ", timeZone: Mars/Olympus"), "spec.nodeOperations.windows[night].timeZone: Invalid value: must be a name of the time zone database"},
		"a window in the manager's time zone":           {"", window("0 2 * * 6", ", timeZone: Local"), "spec.nodeOperations.windows[night].timeZone"},
		"a gate":                                        {"", gate("{apiVersion: apps/v1, kind: Deployment, namespace: a, name: b}", "object.status.readyReplicas == 3"), ""},
		"a gate whose expression is none":               {"", gate("{apiVersion: v1, kind: ConfigMap, namespace: a, name: b}", "object.data.done =="), "spec.nodeOperations.gates[g].expression: Invalid value: not an expression over the object that is true or false"},
		"a gate over what is not there":                 {"", gate("{apiVersion: v1, kind: ConfigMap, namespace: a, name: b}", "self.data.done == \"yes\""), "undeclared reference to 'self'"},
		"a gate that is a number":                       {"", gate("{apiVersion: v1, kind: ConfigMap, namespace: a, name: b}", "1 + 1"), "spec.nodeOperations.gates[g].expression"},
		"a gate over a version that is none":            {"", gate("{apiVersion: a/b/c, kind: ConfigMap, namespace: a, name: b}", "true"), "spec.nodeOperations.gates[g].object.apiVersion: Invalid value: must be a version"},
		"a gate over a name that is none":               {"", gate("{apiVersion: v1, kind: ConfigMap, namespace: a, name: My_Map}", "true"), "spec.nodeOperations.gates[g].object.name: Invalid value: no ConfigMap can have this name"},
		"an operator that does not exist":               {"", operations("pools: [{name: gpu, machineSelector: {matchExpressions: [{key: a, operator: Is}]}}]"), "spec.nodeOperations.pools[gpu].machineSelector.matchExpressions[0].operator"},
		"a window of a pool that is none":               {"", operations("pools: [{name: gpu, machineSelector: {}, windows: [{name: night, cron: '0 25 * * 6', durationMinutes: 60}]}]"), "spec.nodeOperations.pools[gpu].windows[night].cron"},
		"pods of a pool that stay, all of them":         {"", operations("pools: [{name: gpu, machineSelector: {}, drain: {skipSelectors: [{}]}}]"), "spec.nodeOperations.pools[gpu].drain.skipSelectors[0]"},
		"names":                                         {"", controlPlane(", machineNaming: {template: '{{ .cluster.name }}-cp-{{ .random }}'}"), ""},
		"names by a template that is none":              {"", controlPlane(", machineNaming: {template: '{{ .cluster.name }}-{{ .random }}-{{ if }}'}"), "spec.machineNaming.template: Invalid value: "},
		"names with a variable that is not there":       {"", controlPlane(", machineNaming: {template: '{{ .machine.name }}-{{ .random }}'}"), "spec.machineNaming.template: Invalid value: "},
		"names that cannot be":                          {"", controlPlane(", machineNaming: {template: 'My_{{ .random }}'}"), "spec.machineNaming.template: Invalid value: "},
		"pods that stay, all of them":                   {"", operations("drain: {skipSelectors: [{}]}"), "spec.nodeOperations.drain.skipSelectors[0]: Invalid value: selects every pod"},
		"pods that stay":                                {"", operations("drain: {skipSelectors: [{matchLabels: {app: a}}]}"), ""},
		"a Secret that cannot exist":                    {"", operations("etcdSnapshot: {mode: BeforeUpgrade, s3: {endpoint: 'https://s3.example.com', bucket: bkt, credentialsSecretRef: {name: My_Secret}}}"), "spec.nodeOperations.etcdSnapshot.s3.credentialsSecretRef.name: Invalid value: no Secret can have this name"},
		"a template":                                    {template, "{template: {spec: {talosConfigSpec: {hostname: {source: MachineName}}}}}", ""},
		"a template with a label that cannot be":        {template, "{template: {metadata: {labels: {'a b': c}}}}", "spec.template.metadata.labels"},
		"a template with a label that machines have":    {template, "{template: {spec: {machineTemplate: {metadata: {labels: {'a b': c}}}}}}", "spec.template.spec.machineTemplate.metadata.labels"},
		"a template with a format that nobody knows":    {template, "{template: {spec: {talosConfigSpec: {configContract: v1.99}}}}", "spec.template.spec.talosConfigSpec.configContract"},
		"a template with a window that is none":         {template, "{template: {spec: {nodeOperations: {windows: [{name: night, cron: '0 2 * * 9', durationMinutes: 1}]}}}}", "spec.template.spec.nodeOperations.windows[night].cron"},
		"a template with names that cannot be":          {template, "{template: {spec: {machineNaming: {template: 'My_{{ .random }}'}}}}", "spec.template.spec.machineNaming.template: Invalid value: "},
		"a template with a taint that is not the users": {template, "{template: {spec: {machineTemplate: {spec: {taints: [{key: node.kubernetes.io/x, effect: NoSchedule, propagation: Always}]}}}}}", "spec.template.spec.machineTemplate.spec.taints[0].key"},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			if test.kind == "" {
				test.kind = "TalosControlPlane"
			}

			err := admin.Create(t.Context(), object(test.kind, "rule", test.spec), client.DryRunAll, client.FieldValidation("Strict"))
			if test.want == "" {
				g.Expect(err).NotTo(HaveOccurred())

				return
			}

			g.Expect(err).To(MatchError(ContainSubstring(test.want)))
			g.Expect(apierrors.IsInvalid(err)).To(BeTrue())
		})
	}
}

// What is allowed and suspicious is a warning.
func TestControlPlaneWarnings(t *testing.T) {
	for want, spec := range map[string]string{
		"only with its feature gate MachineTaintPropagation": "{version: v1.36.1, " + machines(", taints: [{key: example.com/a, effect: NoSchedule, propagation: Always}]") + "}",
		"spec.talosConfigSpec.platform: is Cloud":            controlPlane(", talosConfigSpec: {platform: Cloud, install: {disk: /dev/sda}}"),
		"spec.nodeOperations.etcdSnapshot.mode: is Off":      controlPlane(", nodeOperations: {etcdSnapshot: {mode: \"Off\", directory: /backup}}"),
	} {
		t.Run(want, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(admin.Create(t.Context(), object("TalosControlPlane", "suspicious", spec), client.DryRunAll)).To(Succeed())
			g.Expect(warnings.all()).To(ContainSubstring(want))
		})
	}
}

// A control plane goes from one minor of Kubernetes to the next, and not back, by what its machines run.
//
// contract: the version goes up one minor at a time.
func TestChangeOfVersion(t *testing.T) {
	const (
		served = "initialization: {controlPlaneInitialized: true}, "
		both   = "{" + served + "versions: [{version: v1.34.2, replicas: 1}, {version: v1.35.3, replicas: 2}]}"
		single = "{" + served + "versions: [{version: v1.35.3, replicas: 3}]}"
		never  = "{replicas: 1, versions: [{version: v1.35.3, replicas: 1}]}"
	)

	tests := map[string]struct{ from, status, mark, to, want string }{
		"the next minor":   {"v1.35.3", single, "", "v1.36.1", ""},
		"a newer patch":    {"v1.35.3", single, "", "v1.35.4", ""},
		"a minor left out": {"v1.34.2", "{versions: [{version: v1.34.2, replicas: 3}]}", "", "v1.36.1", "spec.version: Forbidden: machines run Kubernetes v1.34.2, and a control plane goes from one minor to the next: set a v1.35 version first"},
		"an older minor":   {"v1.35.3", single, "", "v1.34.2", "spec.version: Forbidden: all machines run Kubernetes v1.35.3 or newer, and a control plane does not go back to an older minor"},
		"the next minor before the last has come":  {"v1.35.3", both, "", "v1.36.1", "machines run Kubernetes v1.34.2"},
		"back before the last machine has gone on": {"v1.35.3", both, "", "v1.34.2", ""},
		"further back than the last machine":       {"v1.35.3", both, "", "v1.33.1", "all machines run Kubernetes v1.34.2 or newer"},
		"back from what has never come up":         {"v1.35.3", never, "", "v1.34.2", ""},
		"back, and etcd was never bootstrapped":    {"v1.35.3", never, `{"machine":"cp-1"}`, "v1.34.2", ""},
		"back, and nobody can read the record":     {"v1.35.3", never, "{}", "v1.34.2", "all machines run Kubernetes v1.35.3 or newer"},
		"back before any machine has gone on":      {"v1.36.1", single, "", "v1.35.3", ""},
		"any version before there are machines":    {"v1.36.1", "", "", "v1.33.0", ""},
		"an older minor after a move":              {"v1.36.1", "", `{"machine":"cp-1","done":true}`, "v1.35.3", "all machines run Kubernetes v1.36.1 or newer"},
		"the next minor after a move":              {"v1.35.3", "", `{"machine":"cp-1","done":true}`, "v1.36.1", ""},
		"a minor left out before any has reported": {"v1.34.2", "{replicas: 1}", "", "v1.36.1", "machines run Kubernetes v1.34.2"},
		"what is no version of a Talos":            {"v1.35.3", single, "", "v1.99.0", "not known to run on any Talos"},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := changeVersion(t, test.from, test.status, test.mark, test.to)

			if test.want == "" {
				g.Expect(err).NotTo(HaveOccurred())

				return
			}

			g.Expect(err).To(MatchError(ContainSubstring(test.want)))
			g.Expect(apierrors.IsInvalid(err)).To(BeTrue())
		})
	}

	for name, test := range map[string]struct{ status, to string }{
		"an older patch": {single, "v1.35.1"}, "an older minor that machines run still": {both, "v1.34.3"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(changeVersion(t, "v1.35.3", test.status, "", test.to)).To(Succeed())
			g.Expect(warnings.all()).To(ContainSubstring("spec.version: machines run Kubernetes v1.35.3 already, or are about to: this goes back to " + test.to))
		})
	}
}

func changeVersion(t *testing.T, from, status, mark, to string) error {
	t.Helper()

	g := NewWithT(t)

	changed := object("TalosControlPlane", "", strings.Replace(controlPlane(""), "v1.36.1", from, 1))
	changed.SetGenerateName("versions-")
	// No reconciler reports on it.
	annotations := map[string]string{"cluster.x-k8s.io/paused": ""}

	if mark != "" {
		annotations[controlplanev1.BootstrapAnnotation] = mark
	}

	changed.SetAnnotations(annotations)
	create(t, changed)

	if status != "" {
		patch := append(append([]byte(`{"status":`), jsonOf(t, status)...), '}')
		g.Expect(admin.Status().Patch(t.Context(), changed.DeepCopy(), client.RawPatch("application/merge-patch+json", patch))).To(Succeed())
	}

	return admin.Patch(t.Context(), changed, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"version":"`+to+`"}}`)), client.DryRunAll)
}

// Whatever is wrong with a control plane that is being deleted, its finalizers can be removed, and its machines told to go faster.
func TestControlPlaneThatIsDeleted(t *testing.T) {
	g := NewWithT(t)

	stored := object("TalosControlPlane", "deleted", controlPlane(""))
	stored.SetFinalizers([]string{"example.com/keep"})
	stored.SetAnnotations(map[string]string{"cluster.x-k8s.io/paused": ""})
	create(t, stored)
	g.Expect(admin.Delete(t.Context(), stored)).To(Succeed())

	merge := func(patch string) error {
		return admin.Patch(t.Context(), stored.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(patch)))
	}

	g.Expect(merge(`{"spec":{"version":"v1.99.0","machineTemplate":{"spec":{"deletion":{"nodeDrainTimeoutSeconds":60}}}}}`)).To(Succeed())
	g.Expect(merge(`{"metadata":{"finalizers":null}}`)).To(Succeed())

	g.Eventually(func() bool {
		return apierrors.IsNotFound(admin.Get(t.Context(), client.ObjectKeyFromObject(stored), stored.DeepCopy()))
	}).Should(BeTrue())
}
