// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/klog/v2/textlogger"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/maesh-dev/ichor/test/harness"
)

// patience bounds every wait, on a machine that does other things too.
const patience = 3 * time.Minute

// subject is one of Ichor's providers that clusterctl installs.
type subject struct {
	// name of the manager's objects, label of the provider, and flag and kind by which clusterctl knows its type.
	name, label, flag, kind string

	// definitions is how many there are.
	definitions int

	// good is an object that comes in, bad one that is refused, and refusal what is said then.
	good, bad string
	refusal   []string

	// later is a definition with a field that the earlier version lacks.
	later string
}

var subjects = []*subject{
	{
		name: "ichor-bootstrap", label: "bootstrap-ichor", flag: "--bootstrap", kind: "BootstrapProvider", definitions: 5,
		good: `{apiVersion: bootstrap.ichor.maesh.dev/v1alpha1, kind: TalosConfigPatch, metadata: {name: good, namespace: default}, spec: {layer: Cluster, clusterName: a,
		  documents: [{kind: SysctlConfig, sysctlConfig: {params: {vm.max_map_count: "262144"}}}]}}`,
		bad:     `{apiVersion: bootstrap.ichor.maesh.dev/v1alpha1, kind: TalosConfigPatch, metadata: {name: bad, namespace: default}, spec: {layer: Cluster, clusterName: a, deletions: [{kind: SysctlsConfig}]}}`,
		refusal: []string{"spec.deletions[0]", "did you mean SysctlConfig?"},
		later:   "talosconfigpatches.bootstrap.ichor.maesh.dev",
	},
	{
		name: "ichor-controlplane", label: "control-plane-ichor", flag: "--control-plane", kind: "ControlPlaneProvider", definitions: 2,
		good:    `{apiVersion: controlplane.ichor.maesh.dev/v1alpha1, kind: TalosControlPlaneTemplate, metadata: {name: good, namespace: default}, spec: {template: {spec: {talosConfigSpec: {configContract: v1.13}}}}}`,
		bad:     `{apiVersion: controlplane.ichor.maesh.dev/v1alpha1, kind: TalosControlPlaneTemplate, metadata: {name: bad, namespace: default}, spec: {template: {spec: {talosConfigSpec: {configContract: v1.99}}}}}`,
		refusal: []string{"spec.template.spec.talosConfigSpec.configContract", "not known to this release"},
		later:   "taloscontrolplanes.controlplane.ichor.maesh.dev",
	},
}

func (s *subject) namespace() string { return s.name + "-system" }

func (s *subject) deployment() string { return s.name + "-controller-manager" }

func (s *subject) image() string { return s.name + "-manager" }

// provided is on everything of the installation.
func (s *subject) provided() client.MatchingLabels {
	return client.MatchingLabels{"cluster.x-k8s.io/provider": s.label}
}

// The real clusterctl installs both providers from the files of a release, they run as their Deployments say and their webhooks
// answer; clusterctl upgrades them, and deletes all of each.
func TestClusterctl(t *testing.T) {
	ctrllog.SetLogger(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(t.Output()))))

	g := NewWithT(t)

	w, err := Start(t.Context(), Options{Earlier: true})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		if t.Failed() {
			g.Expect(w.ShowLogs(t.Output())).To(Succeed())
		}

		g.Expect(w.Stop()).To(Succeed())
	})

	for _, step := range []struct {
		name string
		do   func(*testing.T, *World, *subject)
	}{
		{"generate provider", generates},
		{"init", installs},
		{"webhooks answer", answers},
		{"a process that ends is started again", restarts},
		{"generate cluster", generatesClusters},
		{"upgrade", upgrades},
		{"delete", deletes},
	} {
		for _, subject := range subjects {
			if !t.Run(step.name+": "+subject.label, func(t *testing.T) { step.do(t, w, subject) }) {
				t.FailNow()
			}
		}
	}
}

// generates prints what would be installed, without an installation.
func generates(t *testing.T, w *World, s *subject) {
	g := NewWithT(t)

	components, err := w.Run(t.Context(), "generate", "provider", s.flag, "ichor:"+Version)
	g.Expect(err).NotTo(HaveOccurred())

	objects, err := harness.DecodeYAML([]byte(components))
	g.Expect(err).NotTo(HaveOccurred())

	kinds := map[string]int{}
	for _, object := range objects {
		kinds[object.GetKind()]++
	}

	g.Expect(kinds).To(And(HaveKeyWithValue("Namespace", 1), HaveKeyWithValue("Deployment", 1), HaveKeyWithValue("CustomResourceDefinition", s.definitions), HaveKeyWithValue("Certificate", 1)))
	g.Expect(components).NotTo(ContainSubstring("${"), "every variable has a value")

	described, err := w.Run(t.Context(), "generate", "provider", s.flag, "ichor:"+Version, "--describe")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(described).To(And(
		ContainSubstring(registry+"/"+s.image()+":"+Version), ContainSubstring("CAPI_DIAGNOSTICS_ADDRESS"), ContainSubstring(s.namespace())))
}

func installs(t *testing.T, w *World, s *subject) {
	g := NewWithT(t)

	// All are installed at once. clusterctl waits until the Deployments are available.
	if s == subjects[0] {
		g.Expect(w.InitVersion(t.Context(), EarlierVersion, "sim")).To(Succeed())
	}

	deployments := &appsv1.DeploymentList{}
	g.Expect(w.Client().List(t.Context(), deployments)).To(Succeed())

	var names []string

	for _, deployment := range deployments.Items {
		names = append(names, deployment.Name)
		g.Expect(deployment.Status.AvailableReplicas).To(BeEquivalentTo(1), deployment.Name)
	}

	g.Expect(names).To(ConsistOf("capi-controller-manager", subjects[0].deployment(), subjects[1].deployment(), "ichor-infrastructure-sim-controller-manager"))

	pod := s.runningPod(t.Context(), g, w)
	g.Expect(pod.Status.ContainerStatuses[0].RestartCount).To(BeZero(), "the manager waits for its definitions")
	s.isVersion(t, g, w, EarlierVersion)
}

// answers has the webhooks refuse what is wrong, as they are installed: behind their Service, with the authority of cert-manager.
func answers(t *testing.T, w *World, s *subject) {
	g := NewWithT(t)

	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	g.Expect(w.Client().Get(t.Context(), client.ObjectKey{Name: s.name + "-validating-webhook-configuration"}, configuration)).To(Succeed())

	for _, webhook := range configuration.Webhooks {
		g.Expect(webhook.ClientConfig.URL).To(BeNil(), webhook.Name)
		g.Expect(webhook.ClientConfig.Service).To(HaveField("Name", s.name+"-webhook-service"), webhook.Name)
		g.Expect(webhook.ClientConfig.CABundle).NotTo(BeEmpty(), webhook.Name)
	}

	// The API server learns of the authority some time after it is injected.
	g.Eventually(func(g Gomega) { s.refuses(t, g, w) }, patience, time.Second/4).Should(Succeed())
	g.Expect(w.Client().Create(t.Context(), decode(t, s.good))).To(Succeed())
}

func (s *subject) refuses(t *testing.T, g Gomega, w *World) {
	err := w.Client().Create(t.Context(), decode(t, s.bad))
	g.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)

	for _, words := range s.refusal {
		g.Expect(err).To(MatchError(ContainSubstring(words)))
	}
}

// restarts shows that the liveness of the installation is that of its process: nothing answers while it is away, and all does again.
func restarts(t *testing.T, w *World, s *subject) {
	g := NewWithT(t)
	before := s.runningPod(t.Context(), g, w)

	g.Expect(w.KillPod(t.Context(), client.ObjectKeyFromObject(before))).To(Succeed())

	g.Eventually(func(g Gomega) {
		after := s.runningPod(t.Context(), g, w)
		g.Expect(after.UID).To(Equal(before.UID), "the Pod stays")
		g.Expect(after.Status.ContainerStatuses[0].RestartCount).To(BeEquivalentTo(1))
		s.refuses(t, g, w)
	}, patience, time.Second/4).Should(Succeed())
}

// upgrades goes from the earlier version to this checkout: the manager is another program with other arguments, the definition has its new
// field, what is no more is gone, and the user's objects stay.
func upgrades(t *testing.T, w *World, s *subject) {
	g := NewWithT(t)
	field := laterFields[s.label][s.later]

	g.Expect(hasField(s.definition(t, g, w), field)).To(BeFalse(), field)
	g.Expect(s.runningPod(t.Context(), g, w).Spec.Containers[0].Args).To(ContainElement(earlierArgument))
	g.Expect(w.Client().Get(t.Context(), client.ObjectKey{Namespace: s.namespace(), Name: earlierRole}, &rbacv1.Role{})).To(Succeed())

	plan, err := w.Run(t.Context(), "upgrade", "plan")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(strings.Fields(line(plan, s.label))).To(Equal([]string{s.label, s.namespace(), s.kind, EarlierVersion, Version}), plan)

	_, err = w.Run(t.Context(), "upgrade", "apply", s.flag, "ichor:"+Version, "--wait-providers", "--wait-provider-timeout", "600")
	g.Expect(err).NotTo(HaveOccurred())

	container := s.runningPod(t.Context(), g, w).Spec.Containers[0]
	g.Expect(container.Image).To(HaveSuffix(":" + Version))
	g.Expect(container.Args).NotTo(ContainElement(earlierArgument))
	s.isVersion(t, g, w, Version)

	g.Expect(hasField(s.definition(t, g, w), field)).To(BeTrue(), field)
	g.Expect(apierrors.IsNotFound(w.Client().Get(t.Context(), client.ObjectKey{Namespace: s.namespace(), Name: earlierRole}, &rbacv1.Role{}))).
		To(BeTrue(), "what a version has no more goes with the upgrade")

	good := decode(t, s.good)
	g.Expect(w.Client().Get(t.Context(), client.ObjectKeyFromObject(good), good)).To(Succeed(), "objects outlive an upgrade")
	g.Eventually(func(g Gomega) { s.refuses(t, g, w) }, patience, time.Second/4).Should(Succeed())
}

func (s *subject) definition(t *testing.T, g Gomega, w *World) *apiextensionsv1.CustomResourceDefinition {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	g.Expect(w.Client().Get(t.Context(), client.ObjectKey{Name: s.later}, definition)).To(Succeed())

	return definition
}

// isVersion wants the manager that runs to say of itself that it is of a version.
func (s *subject) isVersion(t *testing.T, g Gomega, w *World, version string) {
	log, err := w.PodLog(client.ObjectKeyFromObject(s.runningPod(t.Context(), g, w)))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(log).To(MatchRegexp(`"Starting manager".* version="` + regexp.QuoteMeta(version) + `"`))
}

func deletes(t *testing.T, w *World, s *subject) {
	g := NewWithT(t)

	deletion := []string{"delete", s.flag, "ichor", "--include-crd", "--include-namespace"}

	_, err := w.Run(t.Context(), deletion...)
	g.Expect(err).To(MatchError(ContainSubstring("delete these objects first")), "no definition goes while there are objects of it")

	g.Expect(w.Client().Delete(t.Context(), decode(t, s.good))).To(Succeed())

	_, err = w.Run(t.Context(), deletion...)
	g.Expect(err).NotTo(HaveOccurred())

	// Of any provider, clusterctl leaves the roles of the whole cluster behind; docs/how-to/install.md says how to remove them.
	g.Expect(w.Client().DeleteAllOf(t.Context(), &rbacv1.ClusterRoleBinding{}, s.provided())).To(Succeed())
	g.Expect(w.Client().DeleteAllOf(t.Context(), &rbacv1.ClusterRole{}, s.provided())).To(Succeed())

	g.Eventually(func(g Gomega) {
		g.Expect(s.leftovers(t.Context(), g, w)).To(BeEmpty())
		g.Expect(apierrors.IsNotFound(w.Client().Get(t.Context(), client.ObjectKey{Name: s.namespace()}, &corev1.Namespace{}))).To(BeTrue())
	}, patience, time.Second).Should(Succeed())

	// The rest is as it was.
	deployment := &appsv1.Deployment{}
	g.Expect(w.Client().Get(t.Context(), client.ObjectKey{Namespace: "capi-system", Name: "capi-controller-manager"}, deployment)).To(Succeed())
	g.Expect(deployment.Status.AvailableReplicas).To(BeEquivalentTo(1))
}

// leftovers are all objects, of any kind, with the provider's label.
func (s *subject) leftovers(ctx context.Context, g Gomega, w *World) []string {
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
			err := w.Client().List(ctx, objects, s.provided())
			g.Expect(client.IgnoreNotFound(err)).To(Succeed(), resource.Kind)

			for _, object := range objects.Items {
				found = append(found, fmt.Sprintf("%s %s", object.GetKind(), object.GetName()))
			}
		}
	}

	return found
}

// runningPod is the Pod of the manager, which is ready.
func (s *subject) runningPod(ctx context.Context, g Gomega, w *World) *corev1.Pod {
	list := &corev1.PodList{}
	g.Expect(w.Client().List(ctx, list, client.InNamespace(s.namespace()))).To(Succeed())

	list.Items = slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
	g.Expect(list.Items).To(HaveLen(1))
	g.Expect(list.Items[0].Status.Conditions).To(ContainElement(And(HaveField("Type", corev1.PodReady), HaveField("Status", corev1.ConditionTrue))))

	return &list.Items[0]
}

func decode(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()

	objects, err := harness.DecodeYAML([]byte(manifest))
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
