// SPDX-License-Identifier: Apache-2.0

package operations_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/bootstrap/metrics"
	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/test/builder"
	"github.com/maesh-dev/ichor/test/harness"
	"github.com/maesh-dev/ichor/test/installation"
	"github.com/maesh-dev/ichor/test/rights"
)

// maxEvents bounds what is told of everything that work does. What it waits for comes one by one, so that each thing that is missing may be
// told, and a fault that cannot be written into the status is told again and again, more slowly each time.
const maxEvents = 50

// The manager as it is installed goes through all of its work. It has every right that it needs and no other; what it says
// in metrics, logs and events is right, complete and free of secrets; and it says nothing twice.
func TestManager(t *testing.T) {
	g := NewWithT(t)
	m := start(t, "whole", managerUser, "--leader-elect", "--leader-elect-namespace="+systemNamespace, "--v=5")
	w := newTenant(t, "whole")

	work(w)

	scraper := newScraper(t)
	text := m.scrape(scraper)

	t.Run("metrics", func(t *testing.T) { checkMetrics(t, text) })
	t.Run("diagnostics", func(t *testing.T) { checkDiagnostics(t, m, scraper) })

	events := eventsOf(w)

	t.Run("events", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(events).NotTo(HaveKey(ContainSubstring("DataSecretCreated")), "what is as it should be is no event")
		g.Expect(events).To(HaveKeyWithValue("TalosConfig w-2: Warning DataSecretRecreated", BeEquivalentTo(1)))
		g.Expect(events).To(HaveKeyWithValue("Cluster c: Normal SecretsBundleCreated", BeEquivalentTo(1)))
		g.Expect(events).To(HaveKeyWithValue("TalosConfig pool: Normal DataSecretUpdated", BeNumerically(">=", 1)))
		g.Expect(events).To(HaveKeyWithValue("TalosConfig w-1: Warning InvalidReference", BeNumerically(">=", 3)), "each change of what is wrong is told")

		// Each is one of the things that work has done, or has waited for; a storm would have hundreds.
		total := int32(0)
		for _, count := range events {
			total += count
		}

		g.Expect(total).To(BeNumerically("<=", maxEvents), "%v", events)
	})

	waitForReports(t, w)

	log, err := m.Log()
	g.Expect(err).NotTo(HaveOccurred())
	t.Run("logs", func(t *testing.T) { checkLog(t, w, log) })
	t.Run("secrets", func(t *testing.T) { checkSecrets(t, w) })

	g.Expect(m.Stop()).To(Succeed())

	t.Run("a manager that finds everything done says and does nothing", func(t *testing.T) { checkSteady(t, w, events) })

	requests, err := cluster.Requests(managerUser)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(requests)).To(BeNumerically(">", 100))

	granted, faults := rights.Granted(components.Others, installation.Bootstrap.Account)
	g.Expect(faults).To(BeEmpty())
	g.Expect(len(granted)).To(BeNumerically(">", 20))
	g.Expect(rights.Compare(granted, requests)).To(BeEmpty(), "the rights in config/bootstrap/rbac are those that the manager needs")
}

// work has the manager do everything that it can.
func work(w *tenant) {
	// A machine that waits for its inputs: one is missing, wrong, wrong in another way, wrong in the first way again.
	w.machine("w-1")
	w.faulty("w-1", "InvalidReference", `"registry"`)

	for _, values := range []map[string]string{{"auth": "aWNob3I6aWNob3I="}, {"nothing": "of-use"}, {"auth": "aWNob3I6aWNob3I="}} {
		w.secret("registry", values)
		words := `"auth"`

		if values["auth"] == "" {
			words = "password"
		}

		w.faulty("w-1", "InvalidReference", words)
	}

	w.create(builder.References("c", "storage"))
	w.secret("registry", map[string]string{"password": "hunter2-hunter2"})
	w.faulty("w-1", "InvalidReference", `"wireguard"`)
	w.secret(builder.WireguardSecret, map[string]string{builder.WireguardKey: "yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk="})
	w.ready("w-1")

	// A pool, whose config follows its inputs.
	w.pool("pool")
	w.ready("pool")
	w.secret("registry", map[string]string{"password": "hunter3-hunter3"})
	w.Eventually(func() string { return string(w.ready("pool").Data["value"]) }).Should(ContainSubstring("hunter3-hunter3"))

	// Bootstrap data that is deleted before the machine has joined.
	w.machine("w-2")
	first := w.ready("w-2")
	w.Expect(admin.Delete(w.t.Context(), first)).To(Succeed())
	w.Eventually(func(g Gomega) {
		again := first.DeepCopy()
		g.Expect(admin.Get(w.t.Context(), client.ObjectKeyFromObject(first), again)).To(Succeed())
		g.Expect(again.UID).NotTo(Equal(first.UID))
	}).Should(Succeed())

	// A data Secret that has lost its label, and a cluster's Secret that a restore has stripped of it.
	data := w.ready("w-2")
	w.Expect(admin.Patch(w.t.Context(), data, client.RawPatch("application/merge-patch+json",
		[]byte(`{"metadata":{"labels":{"cluster.x-k8s.io/cluster-name":"x"}}}`)))).To(Succeed())
	w.Eventually(func(g Gomega) {
		g.Expect(admin.Get(w.t.Context(), client.ObjectKeyFromObject(data), data)).To(Succeed())
		g.Expect(data.Labels).To(HaveKeyWithValue("cluster.x-k8s.io/cluster-name", "c"))
	}).Should(Succeed())

	repeatEvent(w)

	// The API server's events come after the objects.
	w.Eventually(func() map[string]int32 { return eventsOf(w) }).Should(And(
		HaveKey("TalosConfig w-2: Warning DataSecretRecreated"), HaveKey("TalosConfig pool: Normal DataSecretUpdated")))
	w.Eventually(func() map[string]int32 { return eventsOf(w) }).Should(HaveKeyWithValue("TalosConfig w-1: Warning InvalidReference", BeNumerically(">=", 3)))
}

const frozenYAML = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: frozen}
spec:
  failurePolicy: Fail
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: whole}}
    resourceRules:
    - {apiGroups: [bootstrap.ichor.maesh.dev], apiVersions: ["*"], operations: [UPDATE], resources: [talosconfigs/status]}
  validations:
  - expression: "!has(object.status.conditions) || !object.status.conditions.exists(c, c.type == 'ConfigRendered')"
    message: this status is frozen
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: frozen}
spec: {policyName: frozen, validationActions: [Deny]}
`

// repeatEvent has the manager tell the same thing of the same version of an object twice, which makes a series of one event:
// the status cannot be written, so the fault is found again.
func repeatEvent(w *tenant) {
	policy, err := harness.DecodeYAML([]byte(frozenYAML))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(cluster.Apply(w.t.Context(), policy...)).To(Succeed())

	// The API server heeds a policy some time after it has taken it.
	w.Eventually(func() error {
		config := &bootstrapv1.TalosConfig{}
		w.get(config, "w-1")

		return admin.Status().Update(w.t.Context(), config, client.DryRunAll)
	}).Should(MatchError(ContainSubstring("this status is frozen")))

	w.machine("w-3", func(config *bootstrapv1.TalosConfig) {
		config.Spec.PatchRefs = []bootstrapv1.PatchReference{{Name: "nowhere"}}
	})
	w.Eventually(func() map[string]int32 { return eventsOf(w) }).Should(HaveKeyWithValue("TalosConfig w-3: Warning InvalidReference", BeNumerically(">=", 2)))

	for _, each := range policy {
		w.Expect(admin.Delete(w.t.Context(), each)).To(Succeed())
	}

	w.faulty("w-3", "InvalidReference", `"nowhere"`)
	w.Expect(admin.Delete(w.t.Context(), &bootstrapv1.TalosConfig{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "w-3"}})).To(Succeed())
}

// eventsOf counts the events in the namespace by object, type and reason.
func eventsOf(w *tenant) map[string]int32 {
	list := &eventsv1.EventList{}
	w.Expect(admin.List(w.t.Context(), list, client.InNamespace(w.namespace))).To(Succeed())

	counts := map[string]int32{}

	for _, event := range list.Items {
		count := int32(1)
		if event.Series != nil {
			count = event.Series.Count
		}

		counts[fmt.Sprintf("%s %s: %s %s", event.Regarding.Kind, event.Regarding.Name, event.Type, event.Reason)] += count
	}

	return counts
}

// kinds are those that each controller reconciles.
var kinds = map[string]client.ObjectList{
	"clustersecrets":     &clusterv1.ClusterList{},
	"talosconfig":        &bootstrapv1.TalosConfigList{},
	"talosclusterconfig": &bootstrapv1.TalosClusterConfigList{},
	"talosconfigpatch":   &bootstrapv1.TalosConfigPatchList{},
}

// enough is how often each object is reconciled while nothing changes.
const enough = 3

// checkSteady starts a second manager after the first and waits until each of its controllers has looked at everything.
func checkSteady(t *testing.T, w *tenant, events map[string]int32) {
	g := NewWithT(t)

	before, err := cluster.Requests(managerUser)
	g.Expect(err).NotTo(HaveOccurred())

	want := map[string]any{}

	for controller, list := range kinds {
		g.Expect(admin.List(t.Context(), list)).To(Succeed())
		g.Expect(meta.LenList(list)).To(BeNumerically(">", 0), controller)
		want[controller] = BeNumerically(">=", enough*meta.LenList(list))
	}

	// Its client lists before it watches, as it does with an API server that has no streaming lists.
	m := startWith(t, []string{"KUBE_FEATURE_WatchListClient=false"}, "again", managerUser,
		"--feature-gates=ReconcilerRateLimiting=false", "--insecure-diagnostics", "--sync-period=2s")
	g.Eventually(m.reconciles, patience, interval).Should(HaveLen(len(kinds)), "a controller that the test does not know")

	for controller := range kinds {
		g.Eventually(m.reconciles, patience, interval).Should(HaveKeyWithValue(controller, want[controller]))
	}

	g.Expect(m.metrics()).NotTo(MatchRegexp(`(?m)^controller_runtime_reconcile_errors_total{controller="\w+"} [1-9]`))

	g.Expect(m.Stop()).To(Succeed())
	g.Expect(eventsOf(w)).To(Equal(events))

	requests, err := cluster.Requests(managerUser)
	g.Expect(err).NotTo(HaveOccurred())

	reads := map[string]int{}

	for _, request := range requests[len(before):] {
		if request.Namespace != w.namespace || request.Verb == "watch" || request.Verb == "list" {
			continue
		}

		g.Expect(request.Verb).To(Equal("get"), "nothing is written: %s", request.URI)

		reads[request.URI]++
	}

	// Nothing remembers for a new manager what the MachinePool's config was rendered from, and what was reported on: each of those who
	// render reads once, which is the pool's TalosConfig, the TalosClusterConfig and two TalosConfigPatches.
	for uri, count := range reads {
		g.Expect(count).To(BeNumerically("<=", 4), "nothing is read live again: %s", uri)
	}
}

// reconciles is how many each controller has ended.
func (m *manager) reconciles() map[string]int {
	m.t.Helper()

	found := map[string]int{}

	for line := range strings.Lines(m.metrics()) {
		labels, ok := strings.CutPrefix(line, `controller_runtime_reconcile_total{controller="`)
		if !ok {
			continue
		}

		controller, rest, _ := strings.Cut(labels, `"`)
		_, value, _ := strings.Cut(rest, "} ")

		count, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		NewWithT(m.t).Expect(err).NotTo(HaveOccurred(), line)

		found[controller] += int(count)
	}

	return found
}

// waitForReports waits until what is said of TalosConfigPatches stays the same for longer than changes are gathered.
func waitForReports(t *testing.T, w *tenant) {
	versions := func(g Gomega) map[string]string {
		list := &bootstrapv1.TalosConfigPatchList{}
		g.Expect(admin.List(t.Context(), list, client.InNamespace(w.namespace))).To(Succeed())

		found := map[string]string{}
		for _, patch := range list.Items {
			found[patch.Name] = patch.ResourceVersion
		}

		return found
	}

	NewWithT(t).Eventually(func(g Gomega) {
		g.Consistently(versions, "7s", interval).Should(Equal(versions(g)))
	}, patience, interval).Should(Succeed())
}

// checkMetrics wants every metric of the table, with its type and labels, and no other of ours.
func checkMetrics(t *testing.T, text string) {
	g := NewWithT(t)
	known := map[string]bool{}

	for _, metric := range metrics.Table() {
		known[metric.Name] = true
		g.Expect(text).To(ContainSubstring("# TYPE "+metric.Name+" "+string(metric.Type)+"\n"), metric.Name)
		g.Expect(text).To(ContainSubstring("# HELP "+metric.Name+" "+metric.Help+"\n"), metric.Name)
	}

	for line := range strings.Lines(text) {
		name, _, ok := strings.Cut(strings.TrimPrefix(line, "# TYPE "), " ")
		if ok && strings.HasPrefix(line, "# TYPE ichor_") {
			g.Expect(known).To(HaveKey(name), "a metric that the table does not have")
		}

		if strings.HasPrefix(line, "ichor_") {
			g.Expect(line).NotTo(Or(ContainSubstring("w-1"), ContainSubstring("w-2")), "no label names a machine")
		}
	}

	for series, want := range map[string]any{
		`ichor_bootstrap_data_secrets_written_total{action="Created"}`:                                         BeEquivalentTo(3),
		`ichor_bootstrap_data_secrets_written_total{action="Recreated"}`:                                       BeEquivalentTo(1),
		`ichor_bootstrap_data_secrets_written_total{action="Claimed"}`:                                         BeEquivalentTo(1),
		`ichor_bootstrap_data_secrets_written_total{action="Regenerated"}`:                                     BeNumerically(">=", 1),
		`ichor_bootstrap_secrets_bundles_created_total`:                                                        BeEquivalentTo(1),
		`ichor_bootstrap_renders_total{reason="Rendered",result="Success"}`:                                    BeNumerically(">=", 4),
		`ichor_bootstrap_renders_total{reason="InvalidReference",result="Failure"}`:                            BeNumerically(">=", 4),
		`ichor_bootstrap_render_duration_seconds_count`:                                                        BeNumerically(">=", 4),
		`ichor_bootstrap_object_conditions{condition="Ready",kind="TalosConfig",reason="Ready",status="True"}`: BeNumerically(">=", 3),
		`ichor_bootstrap_secrets_bundle_state{cluster="c",namespace="whole",state="Available"}`:                BeEquivalentTo(1),
		`controller_runtime_max_concurrent_reconciles{controller="talosconfig"}`:                               BeNumerically(">", 1),
		expirySeries(secrets.TalosconfigClient):                                                                BeNumerically(">", float64(metav1.Now().Unix())),
		expirySeries(secrets.TalosAuthority):                                                                   BeNumerically(">", float64(metav1.Now().Unix())),
	} {
		g.Expect(valueOf(text, series)).To(want.(OmegaMatcher), series)
	}
}

func expirySeries(certificate string) string {
	return fmt.Sprintf(`ichor_bootstrap_certificate_expiry_timestamp_seconds{certificate=%q,cluster="c",namespace="whole"}`, certificate)
}

// clientset is for what controller-runtime's client has no method for.
func clientset(t *testing.T) kubernetes.Interface {
	t.Helper()

	set, err := kubernetes.NewForConfig(cluster.Config())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return set
}
