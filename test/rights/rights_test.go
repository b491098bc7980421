// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/maesh-dev/ichor/test/harness"
)

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

	rights, faults := Granted(components, "me")
	g.Expect(faults).To(ConsistOf(`role of-somebody-else has the wildcard "*"`, `role of-somebody-else has the wildcard "/debug/*"`))

	const group = "a.example.com"

	secrets := Right{Namespace: "system", Resource: "secrets", Verb: "get"}
	healthz := Right{URL: "/healthz", Verb: "get"}
	one := Right{Namespace: "system", Resource: "configmaps", Name: "one", Verb: "get"}
	g.Expect(rights).To(ConsistOf(
		Right{Group: group, Resource: "things", Verb: "get"}, Right{Group: group, Resource: "things", Verb: "patch"},
		Right{Group: group, Resource: "things/status", Verb: "get"}, Right{Group: group, Resource: "things/status", Verb: "patch"},
		healthz, Right{URL: "/version", Verb: "get"},
		secrets, one, Right{Namespace: "system", Resource: "configmaps", Name: "another", Verb: "get"},
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
	g.Expect(Compare(rights, requests)).To(Equal([]string{
		"missing: get /metrics",
		"missing: patch /apis/b.example.com/v1/things/x",
		"unused: get /version",
		"unused: get configmaps. another in namespace system",
		"unused: get secrets. in namespace system",
		"unused: patch things.a.example.com in every namespace",
	}))

	requests[4].Namespace = "system"
	g.Expect(Compare([]Right{secrets, healthz, one}, requests[4:6])).To(Equal([]string{"unused: get configmaps. one in namespace system"}))
	g.Expect(Compare([]Right{secrets, healthz}, requests[4:6])).To(BeEmpty())
}

// Some requests show the need of more than their own verb.
func TestNeeded(t *testing.T) {
	tests := map[string]struct {
		request harness.Request
		want    []string
	}{
		"an apply that makes an object": {harness.Request{Verb: "patch", Code: 201}, []string{"patch", "create"}},
		"a patch":                       {harness.Request{Verb: "patch", Code: 200}, []string{"patch"}},
		"a watch that lists":            {harness.Request{Verb: "watch", URI: "/api/v1/pods?sendInitialEvents=true&watch=true"}, []string{"watch", "list"}},
		"a watch":                       {harness.Request{Verb: "watch", URI: "/api/v1/pods?watch=true"}, []string{"watch"}},
		"a watch from now on":           {harness.Request{Verb: "watch", URI: "/api/v1/pods?sendInitialEvents=false&watch=true"}, []string{"watch"}},
		"an event":                      {harness.Request{Verb: "create", Group: "events.k8s.io", Resource: "events", Code: 201}, []string{"create", "patch"}},
		"another object":                {harness.Request{Verb: "create", Group: "a.example.com", Resource: "events", Code: 201}, []string{"create"}},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(needed(test.request)).To(Equal(test.want))

			for _, verb := range test.want {
				right := Right{Group: test.request.Group, Resource: test.request.Resource, Verb: verb}
				g.Expect(Compare([]Right{right}, []harness.Request{test.request})).To(BeEmpty())
			}
		})
	}
}
