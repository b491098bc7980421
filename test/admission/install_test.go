// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const providerLabel = "cluster.x-k8s.io/provider"

// contract: clusterctl installs one Namespace, with everything else in it and labelled, and a container named manager.
func TestComponents(t *testing.T) {
	forEach(t, func(t *testing.T, p *provider) {
		g := NewWithT(t)

		var namespaces []string

		for _, component := range p.components {
			g.Expect(component.GetLabels()).To(HaveKeyWithValue(providerLabel, p.label), "%s %s", component.GetKind(), component.GetName())

			switch component.GetKind() {
			case "Namespace":
				namespaces = append(namespaces, component.GetName())
			case "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "ValidatingWebhookConfiguration":
				g.Expect(component.GetNamespace()).To(BeEmpty(), "%s %s", component.GetKind(), component.GetName())
			default:
				g.Expect(component.GetNamespace()).To(Equal(p.Namespace), "%s %s", component.GetKind(), component.GetName())
			}
		}

		g.Expect(namespaces).To(Equal([]string{p.Namespace}))

		deployment := convert[appsv1.Deployment](t, p.one(t, "Deployment"))
		g.Expect(deployment.Spec.Template.Spec.Containers).To(HaveLen(1))
		g.Expect(deployment.Spec.Template.Spec.Containers[0].Name).To(Equal("manager"))
		g.Expect(deployment.Spec.Template.Spec.Containers[0].SecurityContext.ReadOnlyRootFilesystem).To(HaveValue(BeTrue()))
	})
}

// What cert-manager and the network would do holds together: the certificate is for the Service's name, its Secret is mounted where the
// manager looks for it, the Service leads to the port of the webhooks, and the authority of that certificate is put in.
func TestCertificates(t *testing.T) {
	forEach(t, func(t *testing.T, p *provider) {
		g := NewWithT(t)

		certificate, issuer := p.one(t, "Certificate"), p.one(t, "Issuer")
		service := convert[corev1.Service](t, p.one(t, "Service"))
		pod := convert[appsv1.Deployment](t, p.one(t, "Deployment")).Spec.Template
		configuration := convert[admissionregistrationv1.ValidatingWebhookConfiguration](t, p.one(t, "ValidatingWebhookConfiguration"))

		names, _, err := unstructured.NestedStringSlice(certificate.Object, "spec", "dnsNames")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(names).To(Equal([]string{service.Name + "." + service.Namespace + ".svc", service.Name + "." + service.Namespace + ".svc.cluster.local"}))

		issuerName, _, err := unstructured.NestedString(certificate.Object, "spec", "issuerRef", "name")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(issuerName).To(Equal(issuer.GetName()))

		secret, _, err := unstructured.NestedString(certificate.Object, "spec", "secretName")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(pod.Spec.Volumes).To(ContainElement(HaveField("VolumeSource.Secret", HaveField("SecretName", secret))))
		g.Expect(pod.Spec.Containers[0].VolumeMounts).To(ContainElement(And(
			HaveField("Name", pod.Spec.Volumes[0].Name), HaveField("MountPath", "/tmp/k8s-webhook-server/serving-certs"), HaveField("ReadOnly", true))))

		g.Expect(service.Spec.Selector).NotTo(BeEmpty())

		for key, value := range service.Spec.Selector {
			g.Expect(pod.Labels).To(HaveKeyWithValue(key, value))
		}

		g.Expect(pod.Spec.Containers[0].Ports).To(ContainElement(And(HaveField("Name", service.Spec.Ports[0].TargetPort.StrVal), HaveField("ContainerPort", int32(9443)))))

		g.Expect(configuration.Annotations).To(HaveKeyWithValue("cert-manager.io/inject-ca-from", certificate.GetNamespace()+"/"+certificate.GetName()))

		for _, webhook := range configuration.Webhooks {
			g.Expect(webhook.ClientConfig.Service).To(And(HaveField("Name", service.Name), HaveField("Namespace", service.Namespace)))
		}
	})
}

// Nothing is let in unchecked, of any kind of ours, and no webhook does more than look.
func TestConfiguration(t *testing.T) {
	forEach(t, func(t *testing.T, p *provider) {
		g := NewWithT(t)

		var kinds, checked []string

		for _, component := range p.components {
			if component.GetKind() == "CustomResourceDefinition" {
				kinds = append(kinds, strings.TrimSuffix(component.GetName(), "."+p.group))
			}

			g.Expect(component.GetKind()).NotTo(Equal("MutatingWebhookConfiguration"))
		}

		for _, webhook := range convert[admissionregistrationv1.ValidatingWebhookConfiguration](t, p.one(t, "ValidatingWebhookConfiguration")).Webhooks {
			g.Expect(webhook.FailurePolicy).To(HaveValue(Equal(admissionregistrationv1.Fail)), webhook.Name)
			g.Expect(webhook.MatchPolicy).To(HaveValue(Equal(admissionregistrationv1.Equivalent)), webhook.Name)
			g.Expect(webhook.SideEffects).To(HaveValue(Equal(admissionregistrationv1.SideEffectClassNone)), webhook.Name)
			g.Expect(webhook.AdmissionReviewVersions).To(Equal([]string{"v1"}), webhook.Name)
			g.Expect(webhook.TimeoutSeconds).To(HaveValue(BeNumerically("<=", 10)), webhook.Name)
			g.Expect(webhook.Rules).To(HaveLen(1), webhook.Name)
			g.Expect(webhook.Rules[0].Operations).To(ConsistOf(admissionregistrationv1.Create, admissionregistrationv1.Update), webhook.Name)

			checked = append(checked, webhook.Rules[0].Resources...)
		}

		slices.Sort(kinds)
		slices.Sort(checked)
		g.Expect(checked).To(Equal(kinds))
	})
}

// The manager's rights suffice: nothing that it does is refused.
func TestRights(t *testing.T) {
	NewWithT(t).Expect(logs.String()).NotTo(ContainSubstring("is forbidden: User "))
}

func (p *provider) one(t *testing.T, kind string) *unstructured.Unstructured {
	t.Helper()

	var found []*unstructured.Unstructured

	for _, component := range p.components {
		if component.GetKind() == kind {
			found = append(found, component)
		}
	}

	NewWithT(t).Expect(found).To(HaveLen(1), kind)

	return found[0]
}

func convert[T any](t *testing.T, object *unstructured.Unstructured) *T {
	t.Helper()

	into := new(T)
	NewWithT(t).Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into)).To(Succeed())

	return into
}

// withoutWebhook takes the webhook of a resource of the bootstrap provider out of the API server's configuration while something is done, as it was before there
// was one.
func withoutWebhook(t *testing.T, resource string, do func()) {
	t.Helper()

	g := NewWithT(t)
	key := client.ObjectKey{Name: bootstrap.one(t, "ValidatingWebhookConfiguration").GetName()}

	set := func(operation admissionregistrationv1.OperationType) {
		configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		g.Expect(admin.Get(t.Context(), key, configuration)).To(Succeed())

		for i := range configuration.Webhooks {
			if slices.Contains(configuration.Webhooks[i].Rules[0].Resources, resource) {
				configuration.Webhooks[i].Rules[0].Operations = []admissionregistrationv1.OperationType{operation, admissionregistrationv1.Update}
			}
		}

		g.Expect(admin.Update(t.Context(), configuration)).To(Succeed())
	}

	set(admissionregistrationv1.Update)
	defer set(admissionregistrationv1.Create)

	// The API server hears of a change of its configuration through a watch.
	g.Eventually(func() error {
		return admin.Create(t.Context(), wrongOf(resource), client.DryRunAll)
	}, time.Minute, 50*time.Millisecond).Should(Succeed())

	do()

	set(admissionregistrationv1.Create)
	g.Eventually(func() error {
		return admin.Create(t.Context(), wrongOf(resource), client.DryRunAll)
	}, time.Minute, 50*time.Millisecond).ShouldNot(Succeed())
}

func wrongOf(resource string) *unstructured.Unstructured {
	switch resource {
	case "talosconfigpatches":
		return object("TalosConfigPatch", "probe", "{layer: Cluster, clusterName: A, deletions: [{kind: SysctlsConfig}]}")
	case "talosclusterconfigs":
		return object("TalosClusterConfig", "probe", "{clusterName: A}")
	default:
		panic("no wrong object of " + resource)
	}
}
