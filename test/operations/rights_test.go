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

// right is one verb on one resource or one URL that is no resource's. An empty namespace is every namespace, and an empty name every name.
type right struct{ namespace, group, resource, name, url, verb string }

func (r right) String() string {
	if r.url != "" {
		return r.verb + " " + r.url
	}

	what, where := r.resource+"."+r.group, "every namespace"
	if r.name != "" {
		what += " " + r.name
	}

	if r.namespace != "" {
		where = "namespace " + r.namespace
	}

	return fmt.Sprintf("%s %s in %s", r.verb, what, where)
}

// grants says whether a request has needed the right.
func (r right) grants(request harness.Request) bool {
	if request.Forbidden() || r.verb != request.Verb {
		return false
	}

	if r.url != "" {
		path, _, _ := strings.Cut(request.URI, "?")

		return request.Resource == "" && path == r.url
	}

	resource := request.Resource
	if request.Subresource != "" {
		resource += "/" + request.Subresource
	}

	return (r.namespace == "" || r.namespace == request.Namespace) && (r.name == "" || r.name == request.Name) &&
		r.group == request.Group && r.resource == resource
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
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}

		for _, verb := range rule.Verbs {
			for _, url := range rule.NonResourceURLs {
				rights = append(rights, right{url: url, verb: verb})
			}

			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, name := range names {
						rights = append(rights, right{namespace: namespace, group: group, resource: resource, name: name, verb: verb})
					}
				}
			}
		}
	}

	return rights
}

func wildcards(role string, rules []rbacv1.PolicyRule) []string {
	var faults []string

	for _, rule := range rules {
		for _, value := range slices.Concat(rule.APIGroups, rule.Resources, rule.ResourceNames, rule.Verbs, rule.NonResourceURLs) {
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
- {nonResourceURLs: [/healthz, /version], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: here, namespace: system}
rules:
- {apiGroups: [""], resources: [secrets], verbs: [get]}
- {apiGroups: [""], resources: [configmaps], resourceNames: [one, another], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: of-somebody-else}
rules:
- {apiGroups: ["*"], resources: [nodes], verbs: [get]}
- {nonResourceURLs: ["/debug/*"], verbs: [get]}
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
	g.Expect(faults).To(ConsistOf(`role of-somebody-else has the wildcard "*"`, `role of-somebody-else has the wildcard "/debug/*"`))

	const group = "a.example.com"

	secrets := right{namespace: "system", resource: "secrets", verb: "get"}
	healthz := right{url: "/healthz", verb: "get"}
	one := right{namespace: "system", resource: "configmaps", name: "one", verb: "get"}
	g.Expect(rights).To(ConsistOf(
		right{group: group, resource: "things", verb: "get"}, right{group: group, resource: "things", verb: "patch"},
		right{group: group, resource: "things/status", verb: "get"}, right{group: group, resource: "things/status", verb: "patch"},
		healthz, right{url: "/version", verb: "get"},
		secrets, one, right{namespace: "system", resource: "configmaps", name: "another", verb: "get"},
	))

	requests := []harness.Request{
		{Verb: "get", Group: group, Resource: "things", Code: 404},
		{Verb: "patch", Group: group, Resource: "things", Subresource: "status", Code: 200},
		{Verb: "get", Group: group, Resource: "things", Subresource: "status", Code: 200},
		{Verb: "patch", Group: "b.example.com", Resource: "things", Code: 403, URI: "/apis/b.example.com/v1/things/x"},
		{Verb: "get", Resource: "secrets", Namespace: "another", Code: 200},
		{Verb: "get", URI: "/healthz?verbose", Code: 200},
		{Verb: "get", URI: "/metrics", Code: 403},
		{Verb: "get", Resource: "configmaps", Namespace: "system", Name: "one", Code: 200},
		{Verb: "get", Resource: "configmaps", Namespace: "elsewhere", Name: "another", Code: 200},
	}
	g.Expect(compare(rights, requests)).To(Equal([]string{
		"missing: get /metrics",
		"missing: patch /apis/b.example.com/v1/things/x",
		"unused: get /version",
		"unused: get configmaps. another in namespace system",
		"unused: get secrets. in namespace system",
		"unused: patch things.a.example.com in every namespace",
	}))

	requests[4].Namespace = "system"
	g.Expect(compare([]right{secrets, healthz, one}, requests[4:6])).To(Equal([]string{"unused: get configmaps. one in namespace system"}))
	g.Expect(compare([]right{secrets, healthz}, requests[4:6])).To(BeEmpty())
}
