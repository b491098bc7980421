// SPDX-License-Identifier: Apache-2.0

package operations_test

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/maesh-dev/ichor/test/installation"
)

// The namespace that config/bootstrap/namespaced has as an example.
const exampleNamespace = "my-clusters"

// contract: a manager with --namespace reconciles the objects of that namespace alone, and one with --watch-filter those with the label.
// A manager for one namespace needs only that namespace's objects, also by its rights; one with a watch filter reconciles
// only what has its label.
func TestNamespaceAndWatchFilter(t *testing.T) {
	const account = "namespaced-manager"

	g := NewWithT(t)

	overlay, err := installation.Build(t.Context(), root, "config/bootstrap/namespaced")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(argsOf(g, overlay)).To(ContainElement("--namespace=" + exampleNamespace))

	// The ServiceAccount of the whole installation has more rights, so the overlay's go to another one.
	bindings := installation.Rights(overlay)
	for _, component := range bindings {
		rename(g, component, account)
	}

	w, elsewhere := newTenant(t, exampleNamespace), newTenant(t, "elsewhere")
	g.Expect(cluster.Apply(t.Context(), bindings...)).To(Succeed())

	for _, each := range []*tenant{w, elsewhere} {
		each.secret("registry", map[string]string{"password": "hunter2-hunter2"})
	}

	elsewhere.machine("labelled", labelled(clusterv1.WatchLabel, "mine"))
	w.machine("unlabelled")
	w.machine("another", labelled(clusterv1.WatchLabel, "theirs"))

	// Cluster API's feature gates are those of production: some of what they turn on must be told what the cache of one namespace has seen.
	user := "system:serviceaccount:" + systemNamespace + ":" + account
	m := startWith(t, nil, "namespaced", user, "--namespace="+exampleNamespace, "--watch-filter=mine", "--insecure-diagnostics")

	// It does its whole work, and what it does first does not keep it from going on.
	w.machine("mine", labelled(clusterv1.WatchLabel, "mine"))
	w.pool("pool", labelled(clusterv1.WatchLabel, "mine"))
	w.ready("mine")
	w.ready("pool")
	w.secret("registry", map[string]string{"password": "hunter4-hunter4"})
	w.Eventually(func() string { return string(w.ready("pool").Data["value"]) }).Should(ContainSubstring("hunter4-hunter4"))
	w.machine("later", labelled(clusterv1.WatchLabel, "mine"))
	w.ready("later")

	w.untouched("unlabelled")
	w.untouched("another")
	elsewhere.untouched("labelled")
	g.Expect(m.created()).To(BeEquivalentTo(3))
	g.Expect(m.metrics()).NotTo(MatchRegexp(`(?m)^controller_runtime_reconcile_errors_total{controller="\w+"} [1-9]`))
	g.Expect(m.Stop()).To(Succeed())

	requests, err := cluster.Requests(user)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(requests).NotTo(BeEmpty())

	for _, request := range requests {
		g.Expect(request.Forbidden()).To(BeFalse(), "%s %s", request.Verb, request.URI)

		if request.Resource != "" {
			g.Expect(request.Namespace).To(Equal(exampleNamespace), "%s %s", request.Verb, request.URI)
		}
	}
}

// rename gives the rights of the manager's ServiceAccount to another one, beside what the whole installation has.
func rename(g *WithT, component *unstructured.Unstructured, account string) {
	if component.GetKind() == "ServiceAccount" {
		component.SetName(account)

		return
	}

	subjects, found, err := unstructured.NestedSlice(component.Object, "subjects")
	g.Expect(err).NotTo(HaveOccurred())

	if !found {
		return
	}

	for i := range subjects {
		g.Expect(unstructured.SetNestedField(subjects[i].(map[string]any), account, "name")).To(Succeed())
	}

	g.Expect(unstructured.SetNestedSlice(component.Object, subjects, "subjects")).To(Succeed())
	component.SetName(account + "-" + component.GetName())
}

func argsOf(g *WithT, components []*unstructured.Unstructured) []string {
	at := slices.IndexFunc(components, func(c *unstructured.Unstructured) bool { return c.GetKind() == "Deployment" })
	g.Expect(at).NotTo(Equal(-1))

	containers, _, err := unstructured.NestedSlice(components[at].Object, "spec", "template", "spec", "containers")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(containers).To(HaveLen(1))

	args, _, err := unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
	g.Expect(err).NotTo(HaveOccurred())

	return args
}
