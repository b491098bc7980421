// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	utilcontract "sigs.k8s.io/cluster-api/util/contract"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
)

// referenced are the kinds that Cluster API refers to.
var referenced = []string{"TalosConfig", "TalosConfigTemplate"}

// contract: kinds are namespaced, a template's kind is the config's with Template behind it, lists have List behind theirs, and the
// definitions have the names that Cluster API works out.
// contract: the definitions that Cluster API refers to say which of their versions keep contract v1beta2.
// contract: clusterctl moves objects of every kind, whether or not they belong to a Cluster.
func TestDefinitions(t *testing.T) {
	g := NewWithT(t)

	kinds := map[string]*apiextensionsv1.CustomResourceDefinition{}

	for _, crd := range components.CRDs {
		kind := crd.Spec.Names.Kind
		kinds[kind] = crd

		g.Expect(crd.Name).To(Equal(utilcontract.CalculateCRDName(crd.Spec.Group, kind)), kind)
		g.Expect(crd.Spec.Names.ListKind).To(Equal(kind+"List"), kind)
		g.Expect(crd.Spec.Scope).To(Equal(apiextensionsv1.NamespaceScoped), kind)
		g.Expect(crd.Labels).To(HaveKey(clusterctlv1.ClusterctlMoveLabel), kind)
		g.Expect(home.admin.Scheme().Recognizes(bootstrapv1.GroupVersion.WithKind(kind+"List"))).To(BeTrue(), kind)
	}

	for _, kind := range referenced {
		g.Expect(kinds).To(HaveKey(kind))
		g.Expect(kinds[kind].Labels).To(HaveKeyWithValue(clusterv1.GroupVersion.String(), bootstrapv1.GroupVersion.Version), kind)
		g.Expect(kinds[kind].Spec.Versions).To(ContainElement(And(
			HaveField("Name", bootstrapv1.GroupVersion.Version), HaveField("Served", true), HaveField("Storage", true))), kind)
	}
}

// contract: the status fields that Cluster API reads exist where it reads them, and no terminal failures of older contracts.
// contract: a template has metadata and a spec, without a default anywhere: the topology controller compares dry runs.
func TestSchemas(t *testing.T) {
	g := NewWithT(t)

	for _, crd := range components.CRDs {
		root := crd.Spec.Versions[0].Schema.OpenAPIV3Schema

		switch crd.Spec.Names.Kind {
		case "TalosConfig":
			status := root.Properties["status"]
			g.Expect(status.Properties["dataSecretName"].Type).To(Equal("string"))
			g.Expect(status.Properties["initialization"].Properties["dataSecretCreated"].Type).To(Equal("boolean"))
			g.Expect(status.Properties["initialization"].MinProperties).To(HaveValue(BeEquivalentTo(1)))
			g.Expect(status.Properties["conditions"].Items.Schema.Properties).To(HaveKey("lastTransitionTime"))
			g.Expect(status.Properties).NotTo(Or(HaveKey("ready"), HaveKey("failureReason"), HaveKey("failureMessage")))
		case "TalosConfigTemplate":
			template := root.Properties["spec"].Properties["template"]
			g.Expect(template.Properties).To(And(HaveLen(2), HaveKey("metadata"), HaveKey("spec")))
			g.Expect(template.Properties["metadata"].Properties).To(And(HaveKey("labels"), HaveKey("annotations")))
			g.Expect(faultsOfTemplate("spec.template", template)).To(BeEmpty())
		}
	}
}

// faultsOfTemplate finds defaults, and lists of which nobody says how they are merged.
func faultsOfTemplate(path string, schema apiextensionsv1.JSONSchemaProps) []string {
	var found []string

	if schema.Default != nil {
		found = append(found, path+" has a default")
	}

	if schema.Type == "array" && schema.XListType == nil {
		found = append(found, path+" has no list type")
	}

	for name, property := range schema.Properties {
		found = append(found, faultsOfTemplate(path+"."+name, property)...)
	}

	if schema.Items != nil && schema.Items.Schema != nil {
		found = append(found, faultsOfTemplate(path+"[]", *schema.Items.Schema)...)
	}

	return found
}

// contract: Cluster API's core manager gets rights on the kinds that it refers to, and on no others.
func TestRightsOfClusterAPI(t *testing.T) {
	g := NewWithT(t)

	var roles []*unstructured.Unstructured

	for _, object := range components.Others {
		if object.GetKind() == "ClusterRole" && object.GetLabels()["cluster.x-k8s.io/aggregate-to-manager"] == "true" {
			roles = append(roles, object)
		}
	}

	g.Expect(roles).To(HaveLen(1))

	role := &rbacv1.ClusterRole{}
	g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(roles[0].Object, role)).To(Succeed())
	g.Expect(role.Rules).To(HaveLen(2))

	var plural, finalizers []string

	for _, kind := range referenced {
		resource, _, _ := strings.Cut(utilcontract.CalculateCRDName(bootstrapv1.GroupVersion.Group, kind), ".")
		plural, finalizers = append(plural, resource), append(finalizers, resource+"/finalizers")
	}

	for _, rule := range role.Rules {
		g.Expect(rule.APIGroups).To(ConsistOf(bootstrapv1.GroupVersion.Group))
	}

	g.Expect(role.Rules[0].Resources).To(ConsistOf(plural))
	g.Expect(role.Rules[0].Verbs).To(ConsistOf("create", "delete", "get", "list", "patch", "update", "watch"))
	g.Expect(role.Rules[1].Resources).To(ConsistOf(finalizers))
	g.Expect(role.Rules[1].Verbs).To(ConsistOf("update"))
}
