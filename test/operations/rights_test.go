// SPDX-License-Identifier: Apache-2.0

package operations_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/bootstrap/setup"
	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/test/builder"
	"github.com/maesh-dev/ichor/test/installation"
)

const (
	managerRole = "ichor-bootstrap-manager-role"

	// goesOn bounds the wait for what has waited for a right: a minute, and time for the work.
	goesOn = 90 * time.Second
)

// take takes verbs on a resource from the ClusterRole that the manager is installed with, and returns what gives them back.
func (w *tenant) take(resource string, verbs ...string) (give func()) {
	w.t.Helper()

	role := &rbacv1.ClusterRole{}
	w.Expect(admin.Get(w.t.Context(), client.ObjectKey{Name: managerRole}, role)).To(Succeed())

	whole, group := slices.Clone(role.DeepCopy().Rules), ""

	for i := range role.Rules {
		if rule := &role.Rules[i]; slices.Contains(rule.Resources, resource) {
			left := slices.DeleteFunc(slices.Clone(rule.Verbs), func(verb string) bool { return slices.Contains(verbs, verb) })
			group = rule.APIGroups[0]
			rule.Verbs = left
		}
	}

	role.Rules = slices.DeleteFunc(role.Rules, func(rule rbacv1.PolicyRule) bool { return len(rule.Verbs) == 0 })
	w.Expect(admin.Update(w.t.Context(), role)).To(Succeed())

	give = func() {
		ctx := context.WithoutCancel(w.t.Context())
		w.Expect(admin.Get(ctx, client.ObjectKey{Name: managerRole}, role)).To(Succeed())
		role.Rules = whole
		w.Expect(admin.Update(ctx, role)).To(Succeed())
	}
	w.t.Cleanup(give)

	// The API server heeds a role a moment after it has taken it.
	name, subresource, _ := strings.Cut(resource, "/")
	for _, verb := range verbs {
		w.Eventually(func(g Gomega) bool {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: managerUser, Groups: installation.Bootstrap.Groups(),
				ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: w.namespace, Verb: verb, Group: group, Resource: name, Subresource: subresource},
			}}
			g.Expect(admin.Create(w.t.Context(), review)).To(Succeed())

			return review.Status.Allowed
		}).Should(BeFalse(), verb)
	}

	return give
}

// says waits until the condition of an object has the reason and the message.
func says[T conditions.Getter](w *tenant, object T, name, conditionType, reason string, message ...types.GomegaMatcher) {
	w.t.Helper()
	w.Eventually(func(g Gomega) {
		g.Expect(admin.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, any(object).(client.Object))).To(Succeed())

		condition := conditions.Get(object, conditionType)
		g.Expect(condition).NotTo(BeNil())
		g.Expect(condition.Status).NotTo(Equal(metav1.ConditionTrue), "%s", condition.Message)
		g.Expect(condition.Reason).To(Equal(reason), "%s", condition.Message)
		g.Expect(condition.Message).To(And(message...))
	}).WithTimeout(goesOn).Should(Succeed())
}

// isReady waits until an object is ready.
func isReady[T conditions.Getter](w *tenant, object T, name string) {
	w.t.Helper()
	w.Eventually(func(g Gomega) {
		g.Expect(admin.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, any(object).(client.Object))).To(Succeed())
		g.Expect(conditions.IsTrue(object, bootstrapv1.TalosConfigReadyCondition)).To(BeTrue(), "%v", object.GetConditions())
	}).WithTimeout(goesOn).Should(Succeed())
}

// steady says that the object is not written while the manager tries again and again.
func (w *tenant) steady(object client.Object, name string) {
	w.t.Helper()
	w.get(object, name)

	before := object.GetResourceVersion()
	w.Consistently(func() string {
		w.get(object, name)

		return object.GetResourceVersion()
	}, "5s", "200ms").Should(Equal(before), "%T %s is written for each try", object, name)
}

// A manager whose rights are taken away says so on each object that waits, once, and loses nothing; when they are given back everything goes on
// by itself. A machine that has its config hears of none of it.
func TestRightsTakenAway(t *testing.T) {
	w := newTenant(t, "rights")
	w.secret("registry", map[string]string{"password": "hunter2-hunter2"})
	w.secret(builder.WireguardSecret, map[string]string{builder.WireguardKey: "yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk="})
	w.create(builder.References("c", "storage"))

	// As in production: an object is reconciled once a second at most, and a queue waits ever longer.
	m := startWith(t, nil, "rights", managerUser, "--leader-elect=false", "--insecure-diagnostics")
	w.machine("w-1")
	before := w.ready("w-1")
	w.pool("pool")
	w.ready("pool")

	bundle := &corev1.Secret{}
	w.get(bundle, secrets.BundleName("c"))

	machine := &bootstrapv1.TalosConfig{}
	w.get(machine, "w-1")

	w.withoutReads()
	w.withoutCreates()
	w.withoutPatches()
	w.withoutStatus()
	w.withoutTheRest()

	after := &corev1.Secret{}
	w.get(after, "w-1")
	w.Expect(after.ResourceVersion).To(Equal(before.ResourceVersion), "a machine keeps what it was given")
	w.get(after, secrets.BundleName("c"))
	w.Expect(after.UID).To(Equal(bundle.UID))
	w.Expect(after.Data).To(Equal(bundle.Data))

	now := &bootstrapv1.TalosConfig{}
	w.get(now, "w-1")
	w.Expect(now.ResourceVersion).To(Equal(machine.ResourceVersion), "%v", now.Status.Conditions)
	w.Expect(m.Stop()).To(Succeed())
}

const mayNotRead = "the API server does not let the manager read Secret registry (Forbidden): give its ServiceAccount the rights back"

func (w *tenant) withoutReads() {
	give := w.take("secrets", "get")

	// It changes while it cannot be read.
	w.secret("registry", map[string]string{"password": "hunter3-hunter3"})
	w.machine("w-2")

	says(w, &bootstrapv1.TalosConfig{}, "w-2", "DataSecretAvailable", "NotAvailable", ContainSubstring(mayNotRead))
	says(w, &bootstrapv1.TalosConfig{}, "w-2", "Ready", "NotReady", ContainSubstring(mayNotRead))
	says(w, &bootstrapv1.TalosConfig{}, "pool", "ConfigRendered", "RenderFailed", ContainSubstring(mayNotRead))
	says(w, &bootstrapv1.TalosClusterConfig{}, "c", "Ready", "NotRead", ContainSubstring(mayNotRead))
	says(w, &bootstrapv1.TalosClusterConfig{}, "c", "RegistriesResolved", "NotRead", ContainSubstring(mayNotRead))
	says(w, &bootstrapv1.TalosConfigPatch{}, "references", "Valid", "NotRead", ContainSubstring("does not let the manager read Secret"))
	w.steady(&bootstrapv1.TalosConfig{}, "w-2")
	w.steady(&bootstrapv1.TalosConfig{}, "pool")
	w.steady(&bootstrapv1.TalosClusterConfig{}, "c")

	give()
	w.Eventually(func() string { return string(w.ready("pool").Data["value"]) }).WithTimeout(goesOn).Should(ContainSubstring("hunter3-hunter3"))
	isReady(w, &bootstrapv1.TalosConfig{}, "w-2")
	isReady(w, &bootstrapv1.TalosClusterConfig{}, "c")
	isReady(w, &bootstrapv1.TalosConfigPatch{}, "references")
}

func (w *tenant) withoutCreates() {
	give := w.take("secrets", "create")
	w.machine("w-3")
	says(w, &bootstrapv1.TalosConfig{}, "w-3", "DataSecretAvailable", "NotAvailable", ContainSubstring("The API server refuses Secret w-3"), ContainSubstring("cannot create resource"))
	w.steady(&bootstrapv1.TalosConfig{}, "w-3")
	give()
	isReady(w, &bootstrapv1.TalosConfig{}, "w-3")
}

func (w *tenant) withoutPatches() {
	give := w.take("secrets", "patch")
	w.secret("registry", map[string]string{"password": "hunter4-hunter4"})
	says(w, &bootstrapv1.TalosConfig{}, "pool", "ConfigRendered", "RenderFailed",
		ContainSubstring("The API server refuses the new content of Secret pool: Forbidden"), ContainSubstring("for want of a right of the manager"))
	w.steady(&bootstrapv1.TalosConfig{}, "pool")
	give()
	w.Eventually(func() string { return string(w.ready("pool").Data["value"]) }).WithTimeout(goesOn).Should(ContainSubstring("hunter4-hunter4"))
	isReady(w, &bootstrapv1.TalosConfig{}, "pool")
}

func (w *tenant) withoutStatus() {
	give := w.take("talosconfigs/status", "patch")
	w.machine("w-4")
	w.Eventually(func() map[string]int32 { return eventsOf(w) }).Should(HaveKeyWithValue("TalosConfig w-4: Warning StatusRefused", BeEquivalentTo(1)))

	config := &bootstrapv1.TalosConfig{}
	w.get(config, "w-4")
	w.Expect(config.Status.Conditions).To(BeEmpty())
	give()
	isReady(w, config, "w-4")
	w.Expect(eventsOf(w)).To(HaveKeyWithValue("TalosConfig w-4: Warning StatusRefused", BeEquivalentTo(1)), "it is told once")
}

// withoutTheRest takes what no machine waits for.
func (w *tenant) withoutTheRest() {
	give := w.take("events", "create", "patch")
	w.machine("w-5")
	w.ready("w-5")
	give()

	// What is watched stays so until the watch ends; a manager that is started then does not begin to work.
	give = w.take("secrets", "list", "watch")
	w.machine("w-6")
	w.ready("w-6")
	give()
	w.secret("registry", map[string]string{"password": "hunter6-hunter6"})
	w.Eventually(func() string { return string(w.ready("pool").Data["value"]) }).WithTimeout(goesOn).Should(ContainSubstring("hunter6-hunter6"))
}

// A manager that is started without the right to see a kind says which, makes nothing of what it does not know, and works as soon as it is given the
// right; one that waits for longer than it should ends.
func TestStartWithoutRightToList(t *testing.T) {
	w := newTenant(t, "startless")
	w.secret("registry", map[string]string{"password": "hunter2-hunter2"})

	give := w.take("secrets", "list", "watch")
	w.ends()

	m := startWith(t, nil, "startless", managerUser, "--leader-elect=false", "--insecure-diagnostics")
	w.machine("w-1")
	w.Eventually(m.Log).Should(And(ContainSubstring("Failed to watch"), ContainSubstring("cannot list resource")))
	w.Consistently(func() error {
		return admin.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "w-1"}, &corev1.Secret{})
	}, "3s", "200ms").Should(MatchError(ContainSubstring("not found")))

	give()
	w.ready("w-1")
	w.Expect(m.Stop()).To(Succeed())
}

// ends runs a manager in this process that waits for its caches a short time only, and says that it ends. Its error names whichever kind it has waited
// for first; the log has what is refused.
func (w *tenant) ends() {
	w.t.Helper()

	config, err := cluster.UserConfig(managerUser, installation.Bootstrap.Groups()...)
	w.Expect(err).NotTo(HaveOccurred())

	webhooks, err := cluster.NewWebhookServer("impatient")
	w.Expect(err).NotTo(HaveOccurred())

	options := setup.NewOptions()
	options.HealthAddress, options.LeaderElect = "0", false
	options.WebhookPort, options.WebhookCertDir = webhooks.Port, webhooks.CertDir
	options.Diagnostics.DiagnosticsAddress, options.Diagnostics.InsecureDiagnostics = "0", true
	options.Diagnostics.TLSMinVersion = "VersionTLS12"

	mgr, err := setup.NewManager(w.t.Context(), config, options, func(o *ctrl.Options) {
		o.Controller.CacheSyncTimeout, o.Controller.SkipNameValidation = 5*time.Second, new(true)
	})
	w.Expect(err).NotTo(HaveOccurred())

	ctx, cancel := context.WithTimeout(w.t.Context(), goesOn)
	defer cancel()

	err = mgr.Start(ctx)
	w.Expect(ctx.Err()).NotTo(HaveOccurred(), "it ends by itself")
	w.Expect(err).To(MatchError(ContainSubstring("timed out waiting for cache to be synced")))
}

// A leader that may not renew its lease ends itself, and says why; the next one leads.
func TestRightToLeasesTakenAway(t *testing.T) {
	w := newTenant(t, "leases")
	w.secret("registry", map[string]string{"password": "hunter2-hunter2"})

	elect := []string{
		"--leader-elect", "--leader-elect-namespace=" + systemNamespace, "--insecure-diagnostics",
		"--leader-elect-lease-duration=10s", "--leader-elect-renew-deadline=8s", "--leader-elect-retry-period=500ms",
	}
	first := start(t, "leases-first", managerUser, elect...)
	w.Eventually(first.leads).Should(BeTrue())

	role := &rbacv1.Role{}
	key := client.ObjectKey{Namespace: systemNamespace, Name: "ichor-bootstrap-leader-election-role"}
	w.Expect(admin.Get(t.Context(), key, role)).To(Succeed())

	whole := role.DeepCopy()
	role.Rules = slices.DeleteFunc(role.Rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "leases") })
	w.Expect(role.Rules).NotTo(HaveLen(len(whole.Rules)))
	w.Expect(admin.Update(t.Context(), role)).To(Succeed())

	give := func() {
		ctx := context.WithoutCancel(t.Context())
		w.Expect(admin.Get(ctx, key, role)).To(Succeed())
		role.Rules = whole.Rules
		w.Expect(admin.Update(ctx, role)).To(Succeed())
	}
	t.Cleanup(give)

	w.Eventually(first.Done()).WithTimeout(time.Minute).Should(BeClosed())

	log, err := first.Log()
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(log).To(And(ContainSubstring("leader election lost"), ContainSubstring("cannot get resource")))
	w.machine("w-1")
	give()

	second := start(t, "leases-second", managerUser, elect...)
	w.ready("w-1")
	w.Expect(second.Stop()).To(Succeed())
	w.Expect(admin.Get(t.Context(), client.ObjectKey{Namespace: systemNamespace, Name: "ichor-bootstrap-manager-leader-election"}, &coordinationv1.Lease{})).To(Succeed())
}
