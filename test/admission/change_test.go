// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"encoding/json"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
)

// contract: a template cannot be changed, but for the topology controller's dry run, which asks what a change would come to.
func TestTemplate(t *testing.T) {
	for kind, format := range map[string]string{
		"TalosConfigTemplate":       "{template: {spec: %s}}",
		"TalosControlPlaneTemplate": "{template: {spec: {talosConfigSpec: %s}}}",
	} {
		t.Run(kind, func(t *testing.T) { checkTemplate(t, kind, format) })
	}
}

// checkTemplate checks a kind of template whose spec has that of a TalosConfig as the format says.
func checkTemplate(t *testing.T, kind, format string) {
	g := NewWithT(t)

	template := object(kind, "template", fmt.Sprintf(format, "{configContract: v1.13}"))
	create(t, template)

	// As the topology controller asks: server-side apply under its own name, forced, in a dry run, with the annotation.
	ask := func(spec string, annotations map[string]string, options ...client.ApplyOption) error {
		asked := object(kind, "template", spec)
		asked.SetAnnotations(annotations)

		options = append(options, client.FieldOwner("capi-topology"), client.ForceOwnership)

		return admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(asked), options...)
	}

	changed := fmt.Sprintf(format, "{configContract: v1.14, patchRefs: [{name: gpu}]}")

	dryRun := map[string]string{clusterv1.TopologyDryRunAnnotation: ""}
	immutable := And(MatchError(apierrors.IsInvalid, "is invalid"), MatchError(ContainSubstring("spec: Forbidden: a template cannot be changed: make one with another name")))

	g.Expect(ask(changed, dryRun, client.DryRunAll)).To(Succeed(), "the topology controller's dry run")
	g.Expect(ask(changed, nil, client.DryRunAll)).To(immutable, "a dry run of somebody else")
	g.Expect(ask(changed, dryRun)).To(immutable, "the annotation without a dry run")
	g.Expect(ask(changed, nil)).To(immutable, "a user")
	g.Expect(ask(fmt.Sprintf(format, "{configContract: v1.99}"), dryRun, client.DryRunAll)).
		To(MatchError(ContainSubstring("not known to this release")), "a template that is wrong, in the topology controller's dry run")
	g.Expect(ask(fmt.Sprintf(format, "{configContract: v1.13}"), nil)).To(Succeed(), "the same again")

	// clusterctl and the topology controller set owner references and labels.
	g.Expect(admin.Get(t.Context(), client.ObjectKeyFromObject(template), template)).To(Succeed())
	template.SetLabels(map[string]string{clusterv1.ClusterNameLabel: "c"})
	g.Expect(admin.Update(t.Context(), template)).To(Succeed(), "metadata")

	spec, _, err := unstructured.NestedMap(template.Object, "spec")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(spec).To(Equal(object(kind, "", fmt.Sprintf(format, "{configContract: v1.13}")).Object["spec"]), "nothing has been set by default or by a dry run")
}

// contract: mutable fields of a TalosConfig can be changed while its machine runs, and what a running machine cannot follow is refused.
func TestTalosConfigOfAMachineThatRuns(t *testing.T) {
	const spec = "{configContract: v1.13, install: {disk: /dev/sda}, hostname: {source: MachineName}}"

	machine := metav1.OwnerReference{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: "m", UID: "1", Controller: new(true)}
	pool := metav1.OwnerReference{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachinePool", Name: "m", UID: "1", Controller: new(true)}

	tests := map[string]struct{ patch, want string }{
		"patches":           {"{spec: {patchRefs: [{name: gpu}]}}", ""},
		"installer image":   {"{spec: {install: {image: 'registry.example.com/installer:v1'}}}", ""},
		"kernel arguments":  {"{spec: {install: {extraKernelArgs: [a]}}}", ""},
		"platform":          {"{spec: {platform: Metal}}", ""},
		"disk":              {"{spec: {install: {disk: /dev/sdb}}}", "spec.install.disk: Forbidden: Talos is on the machine's disk already"},
		"no install":        {"{spec: {install: null}}", "spec.install.disk: Forbidden"},
		"wipe":              {"{spec: {install: {wipe: true}}}", "spec.install.wipe: Forbidden"},
		"no wipe, as it is": {"{spec: {install: {wipe: false}}}", ""},
		"hostname":          {"{spec: {hostname: {source: Automatic}}}", "spec.hostname.source: Forbidden: the machine's Node has its name already"},
		"contract":          {"{spec: {configContract: v1.14}}", "spec.configContract: Forbidden: the machine's config was rendered in format v1.13 and keeps it"},
		"contract not said": {"{spec: {configContract: null}}", ""},
		"unknown contract":  {"{spec: {configContract: v1.99}}", "not known to this release"},
		"labels":            {"{metadata: {labels: {a: b}}}", ""},
	}

	for _, owner := range []metav1.OwnerReference{machine, pool} {
		for _, rendered := range []bool{true, false} {
			for name, test := range tests {
				t.Run(fmt.Sprintf("%s, rendered %t: %s", owner.Kind, rendered, name), func(t *testing.T) {
					g := NewWithT(t)

					config := object("TalosConfig", "running", spec)
					config.SetOwnerReferences([]metav1.OwnerReference{owner})
					create(t, config)

					if rendered {
						status := []byte(`{"status": {"dataSecretName": "running", "configContract": "v1.13"}}`)
						g.Expect(admin.Status().Patch(t.Context(), config.DeepCopy(), client.RawPatch("application/merge-patch+json", status))).To(Succeed())
					}

					err := admin.Patch(t.Context(), config, client.RawPatch("application/merge-patch+json", jsonOf(t, test.patch)), client.DryRunAll)

					known := test.want == "not known to this release"
					if test.want != "" && (known || rendered && owner.Kind == "Machine") {
						g.Expect(err).To(MatchError(ContainSubstring(test.want)))
						g.Expect(apierrors.IsInvalid(err)).To(BeTrue())
					} else {
						g.Expect(err).NotTo(HaveOccurred())
					}
				})
			}
		}
	}
}

// An object that was stored before a rule existed can still be labelled, reported on, mended in part, and deleted.
func TestOldFaultsDoNotStopUpdates(t *testing.T) {
	g := NewWithT(t)

	stored := object("TalosConfigPatch", "stored", `{layer: Cluster, clusterName: a, documents: [
		{kind: HostnameConfig, hostnameConfig: {hostname: worker..1}},
		{kind: SysctlConfig, sysctlConfig: {params: {a.b: "1"}}},
		{kind: KubeNodeConfig, kubeNodeConfig: {labels: {"my label": x}}}]}`)
	stored.SetFinalizers([]string{"example.com/keep"})
	withoutWebhook(t, "talosconfigpatches", func() { create(t, stored) })

	update := func(change func(*bootstrapv1.TalosConfigPatch)) error {
		// The manager reports on the object at the same time.
		return retry.RetryOnConflict(retry.DefaultRetry, func() error {
			patch := &bootstrapv1.TalosConfigPatch{}
			g.Expect(admin.Get(t.Context(), client.ObjectKeyFromObject(stored), patch)).To(Succeed())
			change(patch)

			return admin.Update(t.Context(), patch)
		})
	}

	g.Expect(update(func(p *bootstrapv1.TalosConfigPatch) { p.Labels = map[string]string{"a": "b"} })).To(Succeed(), "metadata")

	status := []byte(`{"status": {"observedGeneration": 1}}`)
	g.Expect(admin.Status().Patch(t.Context(), stored.DeepCopy(), client.RawPatch("application/merge-patch+json", status))).To(Succeed(), "status")

	g.Expect(update(func(p *bootstrapv1.TalosConfigPatch) { p.Spec.Priority = new(int32(5)) })).To(Succeed(), "another field")
	g.Expect(update(func(p *bootstrapv1.TalosConfigPatch) { p.Spec.Documents[1].SysctlConfig.Params["a.b"] = "2" })).To(Succeed(), "another document")
	g.Expect(update(func(p *bootstrapv1.TalosConfigPatch) { p.Spec.Documents = p.Spec.Documents[1:] })).To(Succeed(), "a fault less, the other one elsewhere")

	g.Expect(update(func(p *bootstrapv1.TalosConfigPatch) { p.Spec.Documents[1].KubeNodeConfig.Labels["my label"] = "y" })).
		To(MatchError(ContainSubstring("spec.documents[1].kubeNodeConfig.labels[my label]")), "the document at fault")
	g.Expect(update(func(p *bootstrapv1.TalosConfigPatch) { p.Spec.Documents[0].SysctlConfig.Params["a\nb"] = "1" })).
		To(MatchError(ContainSubstring("spec.documents[0].sysctlConfig.params")), "a new fault beside the old")

	g.Expect(admin.Delete(t.Context(), stored)).To(Succeed())
	g.Expect(update(func(p *bootstrapv1.TalosConfigPatch) {
		g.Expect(p.DeletionTimestamp.IsZero()).To(BeFalse())
		p.Spec.Documents[1].KubeNodeConfig.Labels["my label"] = "z"
		controllerutil.RemoveFinalizer(p, "example.com/keep")
	})).To(Succeed(), "the finalizer of an object that is deleted, whatever else")
	g.Expect(apierrors.IsNotFound(admin.Get(t.Context(), client.ObjectKeyFromObject(stored), stored))).To(BeTrue())
}

// A list with keys keeps its old faults under their key.
func TestOldFaultOfARegistry(t *testing.T) {
	g := NewWithT(t)

	stored := object("TalosClusterConfig", "stored", `{clusterName: a, registries: [{host: ghcr.io, authSecretRef: {name: Old_Name}}]}`)
	withoutWebhook(t, "talosclusterconfigs", func() { create(t, stored) })

	update := func(change func(*bootstrapv1.TalosClusterConfig)) error {
		// The manager reports on the object at the same time.
		return retry.RetryOnConflict(retry.DefaultRetry, func() error {
			config := &bootstrapv1.TalosClusterConfig{}
			g.Expect(admin.Get(t.Context(), client.ObjectKeyFromObject(stored), config)).To(Succeed())
			change(config)

			return admin.Update(t.Context(), config)
		})
	}

	g.Expect(update(func(c *bootstrapv1.TalosClusterConfig) {
		c.Spec.Registries = append([]bootstrapv1.Registry{{Host: "docker.io"}}, c.Spec.Registries...)
	})).To(Succeed(), "another registry before it")
	g.Expect(update(func(c *bootstrapv1.TalosClusterConfig) {
		c.Spec.Registries[1].AuthSecretRef = &corev1.LocalObjectReference{Name: "New_Name"}
	})).To(MatchError(ContainSubstring("spec.registries[ghcr.io].authSecretRef.name")), "the name at fault")
	g.Expect(update(func(c *bootstrapv1.TalosClusterConfig) {
		c.Spec.Registries[1].AuthSecretRef = &corev1.LocalObjectReference{Name: "new-name"}
	})).To(Succeed(), "mended")
}

// Storage can be changed, with a word on what that does not do.
func TestChangeOfStorage(t *testing.T) {
	g := NewWithT(t)

	storage := object("TalosStorage", "changed", "{clusterName: a, preset: longhorn-v1, volume: {type: Partition, diskSelector: '!system_disk'}}")
	create(t, storage)

	const want = "machines that have the volume keep it as it is"

	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec": {"nodeTags": ["a"]}}`))
	g.Expect(admin.Patch(t.Context(), storage, patch)).To(Succeed())
	g.Expect(warnings.all()).NotTo(ContainSubstring(want))

	patch = client.RawPatch("application/merge-patch+json", []byte(`{"spec": {"volume": {"minSize": "10GiB"}}}`))
	g.Expect(admin.Patch(t.Context(), storage, patch)).To(Succeed())
	g.Expect(warnings.all()).To(ContainSubstring(want))
}

func jsonOf(t *testing.T, text string) []byte {
	t.Helper()

	// It is an object of its own, not the spec of one.
	data, err := json.Marshal(object("", "", text).Object["spec"])
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return data
}
