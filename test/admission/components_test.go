// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	psaapi "k8s.io/pod-security-admission/api"
	psa "k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/cluster-api/util/contract"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
)

// The manager's pods are allowed where the strictest of Kubernetes' pod security standards is enforced, as its own namespace does.
func TestPodSecurity(t *testing.T) {
	forEach(t, func(t *testing.T, p *provider) {
		g := NewWithT(t)
		pod := convert[appsv1.Deployment](t, p.one(t, "Deployment")).Spec.Template

		evaluator, err := psa.NewEvaluator(psa.DefaultChecks(), nil)
		g.Expect(err).NotTo(HaveOccurred())

		restricted := psaapi.LevelVersion{Level: psaapi.LevelRestricted, Version: psaapi.LatestVersion()}
		for _, result := range evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec) {
			g.Expect(result.Allowed).To(BeTrue(), "%s: %s", result.ForbiddenReason, result.ForbiddenDetail)
		}

		// The evaluation can fail.
		wrong := pod.DeepCopy()
		wrong.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation = new(true)
		g.Expect(psa.AggregateCheckResults(evaluator.EvaluatePod(restricted, &wrong.ObjectMeta, &wrong.Spec)).Allowed).To(BeFalse())

		g.Expect(p.one(t, "Namespace").GetLabels()).To(HaveKeyWithValue("pod-security.kubernetes.io/enforce", "restricted"))
	})
}

// The manager is asked whether it lives and whether it is ready, says what it needs, writes to no file, and may have replicas:
// they elect a leader, and nothing in the pod can be there only once.
func TestDeployment(t *testing.T) {
	forEach(t, func(t *testing.T, p *provider) {
		g := NewWithT(t)
		deployment := convert[appsv1.Deployment](t, p.one(t, "Deployment"))
		pod := deployment.Spec.Template.Spec
		manager := pod.Containers[0]

		g.Expect(manager.LivenessProbe).To(HaveField("HTTPGet.Path", "/healthz"))
		g.Expect(manager.ReadinessProbe).To(HaveField("HTTPGet.Path", "/readyz"))
		g.Expect(manager.StartupProbe).To(HaveField("HTTPGet.Path", "/healthz"))

		for _, probe := range []string{manager.LivenessProbe.HTTPGet.Port.String(), manager.ReadinessProbe.HTTPGet.Port.String(), manager.StartupProbe.HTTPGet.Port.String()} {
			g.Expect(manager.Ports).To(ContainElement(HaveField("Name", probe)))
		}

		g.Expect(manager.Resources.Requests).To(And(HaveKey(BeEquivalentTo("cpu")), HaveKey(BeEquivalentTo("memory"))))
		g.Expect(manager.Resources.Limits).To(And(HaveKey(BeEquivalentTo("memory")), Not(HaveKey(BeEquivalentTo("cpu")))))
		g.Expect(manager.SecurityContext.ReadOnlyRootFilesystem).To(HaveValue(BeTrue()))
		g.Expect(manager.TerminationMessagePolicy).To(BeEquivalentTo("FallbackToLogsOnError"))

		g.Expect(manager.Args).To(ContainElement("--leader-elect"))
		g.Expect(deployment.Spec.Strategy.Type).To(Or(BeEmpty(), Equal(appsv1.RollingUpdateDeploymentStrategyType)))
		g.Expect(pod.HostNetwork).To(BeFalse())

		for _, port := range manager.Ports {
			g.Expect(port.HostPort).To(BeZero(), port.Name)
		}

		for _, volume := range pod.Volumes {
			g.Expect(volume.PersistentVolumeClaim).To(BeNil(), volume.Name)
		}

		g.Expect(pod.ServiceAccountName).To(Equal(p.one(t, "ServiceAccount").GetName()))
		g.Expect(pod.ServiceAccountName).NotTo(Equal("default"))
	})
}

// referencedKinds are those that Cluster API's core refers to.
var referencedKinds = map[*provider][]string{
	bootstrap: {"TalosConfig", "TalosConfigTemplate"},
	control:   {"TalosControlPlane", "TalosControlPlaneTemplate"},
}

// contract: the definitions have the names that clusterctl and core compute, core finds the version of the kinds that it refers
// to, and a move takes all kinds along.
func TestDefinitions(t *testing.T) {
	forEach(t, func(t *testing.T, p *provider) {
		g := NewWithT(t)
		referenced := slices.Clone(referencedKinds[p])
		count := 0

		for _, component := range p.components {
			if component.GetKind() != "CustomResourceDefinition" {
				continue
			}

			count++
			crd := convert[apiextensionsv1.CustomResourceDefinition](t, component)
			kind := crd.Spec.Names.Kind

			g.Expect(crd.Name).To(Equal(contract.CalculateCRDName(p.group, kind)))
			g.Expect(crd.Labels).To(HaveKey("clusterctl.cluster.x-k8s.io/move"), kind)
			g.Expect(crd.Spec.Scope).To(Equal(apiextensionsv1.NamespaceScoped), kind)
			g.Expect(crd.Spec.Names.Categories).To(ContainElement("cluster-api"), kind)

			if !slices.Contains(referenced, kind) {
				continue
			}

			g.Expect(crd.Labels).To(HaveKeyWithValue("cluster.x-k8s.io/v1beta2", bootstrapv1.GroupVersion.Version), kind)
			referenced = slices.DeleteFunc(referenced, func(name string) bool { return name == kind })
		}

		g.Expect(referenced).To(BeEmpty())
		g.Expect(count).To(Equal(map[*provider]int{bootstrap: 5, control: 2}[p]))
	})
}

// contract: core's manager gets, by a role that it gathers, every right on what it clones, owns and follows.
func TestAggregatedRole(t *testing.T) {
	forEach(t, func(t *testing.T, p *provider) {
		g := NewWithT(t)

		var aggregated []*rbacv1.ClusterRole

		for _, component := range p.components {
			if component.GetKind() == "ClusterRole" && component.GetLabels()["cluster.x-k8s.io/aggregate-to-manager"] == "true" {
				aggregated = append(aggregated, convert[rbacv1.ClusterRole](t, component))
			}
		}

		g.Expect(aggregated).To(HaveLen(1))

		verbs := map[schema.GroupResource][]string{}

		for _, rule := range aggregated[0].Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					verbs[schema.GroupResource{Group: group, Resource: resource}] = slices.Sorted(slices.Values(rule.Verbs))
				}
			}
		}

		all := strings.Fields("create delete get list patch update watch")
		want := map[schema.GroupResource][]string{}

		for _, kind := range referencedKinds[p] {
			resource := strings.ToLower(kind) + "s"
			want[schema.GroupResource{Group: p.group, Resource: resource}] = all
			want[schema.GroupResource{Group: p.group, Resource: resource + "/finalizers"}] = []string{"update"}
		}

		g.Expect(verbs).To(Equal(want))
	})
}
