// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/klog/v2/textlogger"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/maesh-dev/ichor/test/harness"
)

const (
	namespace = "ichor-bootstrap-system"
	deployed  = "ichor-bootstrap-controller-manager"

	// patience bounds every wait, on a machine that does other things too.
	patience = 3 * time.Minute
)

// provided is on everything of the installation.
var provided = client.MatchingLabels{"cluster.x-k8s.io/provider": "bootstrap-ichor"}

const patchYAML = `
apiVersion: bootstrap.ichor.maesh.dev/v1alpha1
kind: TalosConfigPatch
metadata: {name: %s, namespace: default}
spec:
  layer: Cluster
  clusterName: a
  %s
`

const (
	goodPatch = `documents: [{kind: SysctlConfig, sysctlConfig: {params: {vm.max_map_count: "262144"}}}]`
	badPatch  = `deletions: [{kind: SysctlsConfig}]`
)

// The real clusterctl installs the bootstrap provider from the files of a release, it runs as its Deployment says and its webhooks
// answer; clusterctl upgrades it, and deletes all of it.
func TestClusterctl(t *testing.T) {
	ctrllog.SetLogger(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(t.Output()))))

	g := NewWithT(t)
	ctx := t.Context()

	w, err := Start(ctx, Options{})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		if t.Failed() {
			g.Expect(w.ShowLogs(t.Output())).To(Succeed())
		}

		g.Expect(w.Stop()).To(Succeed())
	})

	for _, step := range []struct {
		name string
		do   func(*testing.T, *World)
	}{
		{"generate provider", generates},
		{"init", installs},
		{"webhooks answer", answers},
		{"a process that ends is started again", restarts},
		{"upgrade", upgrades},
		{"delete", deletes},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.do(t, w) }) {
			t.FailNow()
		}
	}
}

// generates prints what would be installed, without an installation.
func generates(t *testing.T, w *World) {
	g := NewWithT(t)

	components, err := w.Run(t.Context(), "generate", "provider", "--bootstrap", "ichor:"+Version)
	g.Expect(err).NotTo(HaveOccurred())

	objects, err := harness.DecodeYAML([]byte(components))
	g.Expect(err).NotTo(HaveOccurred())

	kinds := map[string]int{}
	for _, object := range objects {
		kinds[object.GetKind()]++
	}

	g.Expect(kinds).To(And(HaveKeyWithValue("Namespace", 1), HaveKeyWithValue("Deployment", 1), HaveKeyWithValue("CustomResourceDefinition", 5), HaveKeyWithValue("Certificate", 1)))
	g.Expect(components).NotTo(ContainSubstring("${"), "every variable has a value")

	described, err := w.Run(t.Context(), "generate", "provider", "--bootstrap", "ichor:"+Version, "--describe")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(described).To(And(
		ContainSubstring(registry+"/ichor-bootstrap-manager:"+Version), ContainSubstring("CAPI_DIAGNOSTICS_ADDRESS"), ContainSubstring(namespace)))
}

func installs(t *testing.T, w *World) {
	g := NewWithT(t)

	// clusterctl waits until the Deployments are available.
	g.Expect(w.Init(t.Context(), "sim")).To(Succeed())

	deployments := &appsv1.DeploymentList{}
	g.Expect(w.Client().List(t.Context(), deployments)).To(Succeed())

	var names []string

	for _, deployment := range deployments.Items {
		names = append(names, deployment.Name)
		g.Expect(deployment.Status.AvailableReplicas).To(BeEquivalentTo(1), deployment.Name)
	}

	g.Expect(names).To(ConsistOf("capi-controller-manager", deployed, "ichor-infrastructure-sim-controller-manager"))

	pod := runningPod(t.Context(), g, w)
	g.Expect(pod.Status.ContainerStatuses[0].RestartCount).To(BeZero(), "the manager waits for its definitions")
}

// answers has the webhooks refuse what is wrong, as they are installed: behind their Service, with the authority of cert-manager.
func answers(t *testing.T, w *World) {
	g := NewWithT(t)

	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	g.Expect(w.Client().Get(t.Context(), client.ObjectKey{Name: "ichor-bootstrap-validating-webhook-configuration"}, configuration)).To(Succeed())

	for _, webhook := range configuration.Webhooks {
		g.Expect(webhook.ClientConfig.URL).To(BeNil(), webhook.Name)
		g.Expect(webhook.ClientConfig.Service).To(HaveField("Name", "ichor-bootstrap-webhook-service"), webhook.Name)
		g.Expect(webhook.ClientConfig.CABundle).NotTo(BeEmpty(), webhook.Name)
	}

	// The API server learns of the authority some time after it is injected.
	g.Eventually(func(g Gomega) {
		err := w.Client().Create(t.Context(), patch(t, "bad", badPatch))
		g.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		g.Expect(err).To(MatchError(And(ContainSubstring("spec.deletions[0]"), ContainSubstring("did you mean SysctlConfig?"))))
	}, patience, time.Second/4).Should(Succeed())

	g.Expect(w.Client().Create(t.Context(), patch(t, "good", goodPatch))).To(Succeed())
}

// restarts shows that the liveness of the installation is that of its process: nothing answers while it is away, and all does again.
func restarts(t *testing.T, w *World) {
	g := NewWithT(t)
	before := runningPod(t.Context(), g, w)

	g.Expect(w.KillPod(t.Context(), client.ObjectKeyFromObject(before))).To(Succeed())

	g.Eventually(func(g Gomega) {
		after := runningPod(t.Context(), g, w)
		g.Expect(after.UID).To(Equal(before.UID), "the Pod stays")
		g.Expect(after.Status.ContainerStatuses[0].RestartCount).To(BeEquivalentTo(1))
		g.Expect(w.Client().Create(t.Context(), patch(t, "bad", badPatch))).To(MatchError(ContainSubstring("spec.deletions[0]")))
	}, patience, time.Second/4).Should(Succeed())
}

func upgrades(t *testing.T, w *World) {
	g := NewWithT(t)

	plan, err := w.Run(t.Context(), "upgrade", "plan")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(strings.Fields(line(plan, "bootstrap-ichor"))).To(Equal([]string{"bootstrap-ichor", namespace, "BootstrapProvider", Version, NextVersion}), plan)

	_, err = w.Run(t.Context(), "upgrade", "apply", "--bootstrap", "ichor:"+NextVersion, "--wait-providers", "--wait-provider-timeout", "600")
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(runningPod(t.Context(), g, w).Spec.Containers[0].Image).To(HaveSuffix(":" + NextVersion))
	g.Expect(w.Client().Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "good"}, patch(t, "good", goodPatch))).To(Succeed(), "objects outlive an upgrade")

	g.Eventually(func() error {
		return w.Client().Create(t.Context(), patch(t, "bad", badPatch))
	}, patience, time.Second/4).Should(MatchError(ContainSubstring("spec.deletions[0]")))
}

func deletes(t *testing.T, w *World) {
	g := NewWithT(t)

	deletion := []string{"delete", "--bootstrap", "ichor", "--include-crd", "--include-namespace"}

	_, err := w.Run(t.Context(), deletion...)
	g.Expect(err).To(MatchError(ContainSubstring("delete these objects first")), "no definition goes while there are objects of it")

	g.Expect(w.Client().Delete(t.Context(), patch(t, "good", goodPatch))).To(Succeed())

	_, err = w.Run(t.Context(), deletion...)
	g.Expect(err).NotTo(HaveOccurred())

	// Of any provider, clusterctl leaves the roles of the whole cluster behind; docs/how-to/install.md says how to remove them.
	g.Expect(w.Client().DeleteAllOf(t.Context(), &rbacv1.ClusterRoleBinding{}, provided)).To(Succeed())
	g.Expect(w.Client().DeleteAllOf(t.Context(), &rbacv1.ClusterRole{}, provided)).To(Succeed())

	g.Eventually(func(g Gomega) {
		g.Expect(leftovers(t.Context(), g, w)).To(BeEmpty())
		g.Expect(apierrors.IsNotFound(w.Client().Get(t.Context(), client.ObjectKey{Name: namespace}, &corev1.Namespace{}))).To(BeTrue())
	}, patience, time.Second).Should(Succeed())

	// The rest is as it was.
	deployment := &appsv1.Deployment{}
	g.Expect(w.Client().Get(t.Context(), client.ObjectKey{Namespace: "capi-system", Name: "capi-controller-manager"}, deployment)).To(Succeed())
	g.Expect(deployment.Status.AvailableReplicas).To(BeEquivalentTo(1))
}

// leftovers are all objects, of any kind, with the provider's label.
func leftovers(ctx context.Context, g Gomega, w *World) []string {
	d, err := discovery.NewDiscoveryClientForConfig(w.ManagementCluster.Config())
	g.Expect(err).NotTo(HaveOccurred())

	lists, err := d.ServerPreferredResources()
	g.Expect(err).NotTo(HaveOccurred())

	var found []string

	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		g.Expect(err).NotTo(HaveOccurred())

		for _, resource := range list.APIResources {
			if !slices.Contains(resource.Verbs, "list") {
				continue
			}

			objects := &unstructured.UnstructuredList{}
			objects.SetGroupVersionKind(version.WithKind(resource.Kind))
			err := w.Client().List(ctx, objects, provided)
			g.Expect(client.IgnoreNotFound(err)).To(Succeed(), resource.Kind)

			for _, object := range objects.Items {
				found = append(found, fmt.Sprintf("%s %s", object.GetKind(), object.GetName()))
			}
		}
	}

	return found
}

// runningPod is the Pod of the manager, which is ready.
func runningPod(ctx context.Context, g Gomega, w *World) *corev1.Pod {
	list := &corev1.PodList{}
	g.Expect(w.Client().List(ctx, list, client.InNamespace(namespace))).To(Succeed())

	list.Items = slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
	g.Expect(list.Items).To(HaveLen(1))
	g.Expect(list.Items[0].Status.Conditions).To(ContainElement(And(HaveField("Type", corev1.PodReady), HaveField("Status", corev1.ConditionTrue))))

	return &list.Items[0]
}

func patch(t *testing.T, name, spec string) *unstructured.Unstructured {
	t.Helper()

	objects, err := harness.DecodeYAML(fmt.Appendf(nil, patchYAML, name, spec))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return objects[0]
}

// line is the line of a text that begins with a word.
func line(text, word string) string {
	for each := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(each), word) {
			return each
		}
	}

	return ""
}
