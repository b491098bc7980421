// SPDX-License-Identifier: Apache-2.0

package operations_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/test/builder"
	"github.com/maesh-dev/ichor/test/installation"
	"github.com/maesh-dev/ichor/test/rights"
)

// createControlPlane creates one that is paused, of which a manager that reconciles it says so.
func createControlPlane(t *testing.T, namespace string, labels map[string]string) client.Object {
	t.Helper()

	g := NewWithT(t)
	g.Expect(client.IgnoreAlreadyExists(admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))).To(Succeed())

	objects := builder.ControlPlane("c", "t", 1).On(builder.Generic{}).With(func(controlPlane *controlplanev1.TalosControlPlane) {
		controlPlane.Namespace, controlPlane.Name, controlPlane.GenerateName, controlPlane.Labels = namespace, "", "cp-", labels
		controlPlane.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
	}).Objects()
	made := objects[len(objects)-1]
	g.Expect(admin.Create(t.Context(), made)).To(Succeed())

	return made
}

// isReconciled says whether a manager has said that the control plane is paused.
func isReconciled(ctx context.Context, g Gomega, object client.Object) bool {
	found := &controlplanev1.TalosControlPlane{}
	g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(object), found)).To(Succeed())

	return len(found.Status.Conditions) > 0
}

// The control-plane manager as it is installed elects a leader, asks who reads its metrics, and says and does nothing that it may not.
func TestControlPlaneManager(t *testing.T) {
	g := NewWithT(t)
	user, namespace := installation.ControlPlane.User(), installation.ControlPlane.Namespace
	elect := []string{"--leader-elect", "--leader-elect-namespace=" + namespace, "--leader-elect-lease-duration=6s", "--leader-elect-renew-deadline=4s", "--leader-elect-retry-period=500ms"}

	first := startControlPlane(t, "controlplane-first", user, elect...)
	scraper := newScraper(t)

	reconciled := func(object client.Object) {
		g.Eventually(func(g Gomega) bool { return isReconciled(t.Context(), g, object) }, patience, interval).Should(BeTrue())
	}

	reconciled(createControlPlane(t, "controlplanes", nil))
	g.Expect(valueOf(first.scrape(scraper), `leader_election_master_status{name="ichor-controlplane-manager-leader-election"}`)).To(BeEquivalentTo(1))
	g.Expect(first.scrape(scraper)).To(ContainSubstring(`controller="taloscontrolplane"`))
	g.Expect(first.get("https://", "/metrics", nil).Code).To(Or(Equal(http.StatusUnauthorized), Equal(http.StatusForbidden)))

	// A node dies, and another manager takes over.
	second := startControlPlane(t, "controlplane-second", user, elect...)
	g.Expect(first.Kill()).To(Succeed())
	reconciled(createControlPlane(t, "controlplanes", nil))
	g.Expect(second.Stop()).To(Succeed())

	requests, err := cluster.Requests(user)
	g.Expect(err).NotTo(HaveOccurred())

	granted, faults := rights.Granted(controlPlane.Others, installation.ControlPlane.Account)
	g.Expect(faults).To(BeEmpty(), "no wildcard")

	var lacking, unused []string

	for _, fault := range rights.Compare(granted, requests) {
		if strings.HasPrefix(fault, "missing: ") {
			lacking = append(lacking, fault)
		} else {
			unused = append(unused, fault)
		}
	}

	g.Expect(lacking).To(BeEmpty())

	// What is there for the process itself is used. What is there for machines is used by the scenarios.
	for _, fault := range unused {
		g.Expect(fault).NotTo(Or(ContainSubstring("authentication.k8s.io"), ContainSubstring("authorization.k8s.io"), ContainSubstring("in namespace "+namespace)))
	}
}

// contract: a manager with --namespace reconciles the objects of that namespace alone, and one with --watch-filter those with the label.
func TestControlPlaneNamespaceAndWatchFilter(t *testing.T) {
	const account = "namespaced-controlplane-manager"

	g := NewWithT(t)

	overlay, err := installation.Build(t.Context(), root, "config/controlplane/namespaced")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(argsOf(g, overlay)).To(ContainElement("--namespace=" + exampleNamespace))

	// The ServiceAccount of the whole installation has more rights, so the overlay's go to another one.
	bindings := installation.Rights(overlay)
	for _, component := range bindings {
		rename(g, component, account)
	}

	labelled := map[string]string{"cluster.x-k8s.io/watch-filter": "mine"}
	mine, theirs := createControlPlane(t, exampleNamespace, labelled), createControlPlane(t, exampleNamespace, nil)
	elsewhere := createControlPlane(t, "controlplanes", labelled)
	g.Expect(cluster.Apply(t.Context(), bindings...)).To(Succeed())

	user := "system:serviceaccount:" + installation.ControlPlane.Namespace + ":" + account
	m := startControlPlane(t, "controlplane-namespaced", user, "--namespace="+exampleNamespace, "--watch-filter=mine", "--insecure-diagnostics")

	g.Eventually(func(g Gomega) bool { return isReconciled(t.Context(), g, mine) }, patience, interval).Should(BeTrue())
	later := createControlPlane(t, exampleNamespace, labelled)
	g.Eventually(func(g Gomega) bool { return isReconciled(t.Context(), g, later) }, patience, interval).Should(BeTrue())
	g.Expect(isReconciled(t.Context(), g, theirs)).To(BeFalse())
	g.Expect(isReconciled(t.Context(), g, elsewhere)).To(BeFalse())
	g.Expect(m.Stop()).To(Succeed())

	requests, err := cluster.Requests(user)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(requests).NotTo(BeEmpty())

	for _, request := range requests {
		g.Expect(request.Forbidden()).To(BeFalse(), "%s %s", request.Verb, request.URI)

		if request.Resource != "" && request.Resource != "customresourcedefinitions" {
			g.Expect(request.Namespace).To(Equal(exampleNamespace), "%s %s", request.Verb, request.URI)
		}
	}
}
