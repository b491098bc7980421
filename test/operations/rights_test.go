// SPDX-License-Identifier: Apache-2.0

package operations_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/maesh-dev/ichor/test/harness"
)

// right is one verb on one resource, in one namespace or, when that is empty, in all.
type right struct{ namespace, group, resource, verb string }

func (r right) String() string {
	where := "every namespace"
	if r.namespace != "" {
		where = "namespace " + r.namespace
	}

	return fmt.Sprintf("%s %s.%s in %s", r.verb, r.resource, r.group, where)
}

// grants says whether a request has needed the right.
func (r right) grants(request harness.Request) bool {
	resource := request.Resource
	if request.Subresource != "" {
		resource += "/" + request.Subresource
	}

	return !request.Forbidden() && (r.namespace == "" || r.namespace == request.Namespace) &&
		r.group == request.Group && r.resource == resource && r.verb == request.Verb
}

// granted lists every right that the components give to the ServiceAccount, and what is wrong with the way they do.
func granted(components []*unstructured.Unstructured, account string) (rights []right, faults []string) {
	roles := map[string][]rbacv1.PolicyRule{}

	for _, component := range components {
		if kind := component.GetKind(); kind == "Role" || kind == "ClusterRole" {
			role := &rbacv1.ClusterRole{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(component.Object, role); err != nil {
				faults = append(faults, err.Error())
			}

			roles[kind+"/"+component.GetNamespace()+"/"+component.GetName()] = role.Rules
			faults = append(faults, wildcards(component.GetName(), role.Rules)...)
		}
	}

	for _, component := range components {
		if kind := component.GetKind(); kind != "RoleBinding" && kind != "ClusterRoleBinding" {
			continue
		}

		binding := &rbacv1.RoleBinding{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(component.Object, binding); err != nil {
			faults = append(faults, err.Error())
		}

		if !slices.ContainsFunc(binding.Subjects, func(s rbacv1.Subject) bool { return s.Kind == "ServiceAccount" && s.Name == account }) {
			continue
		}

		namespace := binding.Namespace
		if binding.RoleRef.Kind == "ClusterRole" {
			namespace = ""
		}

		rules, ok := roles[binding.RoleRef.Kind+"/"+namespace+"/"+binding.RoleRef.Name]
		if !ok {
			faults = append(faults, fmt.Sprintf("%s %s binds %s %s, which is not there", component.GetKind(), binding.Name, binding.RoleRef.Kind, binding.RoleRef.Name))
		}

		rights = append(rights, expand(binding.Namespace, rules)...)
	}

	return rights, faults
}

func expand(namespace string, rules []rbacv1.PolicyRule) []right {
	var rights []right

	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					rights = append(rights, right{namespace, group, resource, verb})
				}
			}
		}
	}

	return rights
}

func wildcards(role string, rules []rbacv1.PolicyRule) []string {
	var faults []string

	for _, rule := range rules {
		for _, value := range slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs, rule.NonResourceURLs) {
			if strings.Contains(value, "*") {
				faults = append(faults, fmt.Sprintf("role %s has the wildcard %q", role, value))
			}
		}
	}

	return faults
}

// compare says which rights the requests lacked, and which they had no use for.
func compare(rights []right, requests []harness.Request) (faults []string) {
	for _, request := range requests {
		if request.Forbidden() {
			faults = append(faults, fmt.Sprintf("missing: %s %s", request.Verb, request.URI))
		}
	}

	for _, right := range rights {
		if !slices.ContainsFunc(requests, right.grants) {
			faults = append(faults, "unused: "+right.String())
		}
	}

	slices.Sort(faults)

	return slices.Compact(faults)
}

const rolesYAML = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: all}
rules:
- {apiGroups: [a.example.com], resources: [things, things/status], verbs: [get, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: here, namespace: system}
rules:
- {apiGroups: [""], resources: [secrets], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: of-somebody-else}
rules:
- {apiGroups: ["*"], resources: [nodes], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: all}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: all}
subjects: [{kind: ServiceAccount, name: me, namespace: system}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: here, namespace: system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: here}
subjects: [{kind: ServiceAccount, name: me, namespace: system}]
`

// The comparison finds a missing and an unused right, and a wildcard.
func TestCompare(t *testing.T) {
	g := NewWithT(t)

	components, err := harness.DecodeYAML([]byte(rolesYAML))
	g.Expect(err).NotTo(HaveOccurred())

	rights, faults := granted(components, "me")
	g.Expect(faults).To(ConsistOf(`role of-somebody-else has the wildcard "*"`))
	g.Expect(rights).To(ConsistOf(
		right{"", "a.example.com", "things", "get"}, right{"", "a.example.com", "things", "patch"},
		right{"", "a.example.com", "things/status", "get"}, right{"", "a.example.com", "things/status", "patch"},
		right{"system", "", "secrets", "get"},
	))

	requests := []harness.Request{
		{Verb: "get", Group: "a.example.com", Resource: "things", Code: 404},
		{Verb: "patch", Group: "a.example.com", Resource: "things", Subresource: "status", Code: 200},
		{Verb: "get", Group: "a.example.com", Resource: "things", Subresource: "status", Code: 200},
		{Verb: "patch", Group: "b.example.com", Resource: "things", Code: 403, URI: "/apis/b.example.com/v1/things/x"},
		{Verb: "get", Resource: "secrets", Namespace: "another", Code: 200},
	}
	g.Expect(compare(rights, requests)).To(Equal([]string{
		"missing: patch /apis/b.example.com/v1/things/x",
		"unused: get secrets. in namespace system",
		"unused: patch things.a.example.com in every namespace",
	}))

	requests[4].Namespace = "system"
	g.Expect(compare(rights[:1], requests[4:])).To(HaveLen(1))
	g.Expect(compare(rights[4:], requests[4:])).To(BeEmpty())
}
