// SPDX-License-Identifier: Apache-2.0

package installation_test

import (
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/maesh-dev/ichor/test/installation"
)

// A manager for one namespace has the rights of the whole installation there, and elsewhere none on any object but the few that belong to no
// namespace: a binding that the overlay forgets would go on to count everywhere.
func TestNamespacedRights(t *testing.T) {
	tests := map[string]struct {
		provider installation.Provider

		// everywhere are the roles that count in the whole cluster.
		everywhere []string
	}{
		"bootstrap":    {installation.Bootstrap, []string{"system:auth-delegator"}},
		"controlplane": {installation.ControlPlane, []string{"system:auth-delegator", "ichor-controlplane-definitions-role"}},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			root := filepath.Join("..", "..")

			whole, err := installation.Build(t.Context(), root, test.provider.Directory+"/default")
			g.Expect(err).NotTo(HaveOccurred())

			overlay, err := installation.Build(t.Context(), root, test.provider.Directory+"/namespaced")
			g.Expect(err).NotTo(HaveOccurred())

			g.Expect(bound(g, overlay, test.provider, "")).To(ConsistOf(test.everywhere))
			g.Expect(bound(g, overlay, test.provider, "my-clusters")).To(ConsistOf(bound(g, whole, test.provider, "")), "the same rights, in the namespace")
		})
	}
}

// bound are the roles that the manager has in the namespace; everywhere, if it is empty.
func bound(g Gomega, objects []*unstructured.Unstructured, provider installation.Provider, namespace string) []string {
	kind := "ClusterRoleBinding"
	if namespace != "" {
		kind = "RoleBinding"
	}

	var roles []string

	for _, object := range objects {
		if object.GetKind() != kind || object.GetNamespace() != namespace {
			continue
		}

		g.Expect(object.Object["subjects"]).To(ConsistOf(And(
			HaveKeyWithValue("name", provider.Account), HaveKeyWithValue("namespace", provider.Namespace),
		)), object.GetName())

		role, _, err := unstructured.NestedString(object.Object, "roleRef", "name")
		g.Expect(err).NotTo(HaveOccurred())

		roles = append(roles, role)
	}

	return roles
}
