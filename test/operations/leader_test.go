// SPDX-License-Identifier: Apache-2.0

package operations_test

import (
	"testing"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Of two managers one works, and both serve webhooks. When the leader dies the other takes over, and when a leader is
// asked to end it gives its lease back first.
func TestLeaderElection(t *testing.T) {
	w := newTenant(t, "leaders")
	w.secret("registry", map[string]string{"password": "hunter2-hunter2"})

	elect := []string{
		"--leader-elect", "--leader-elect-namespace=" + systemNamespace, "--insecure-diagnostics",
		"--leader-elect-lease-duration=10s", "--leader-elect-renew-deadline=8s", "--leader-elect-retry-period=500ms",
	}
	first := start(t, "first", managerUser, elect...)
	w.Eventually(first.leads).Should(BeTrue())

	second := start(t, "second", managerUser, elect...)
	w.machine("w-1")
	before := w.ready("w-1")
	w.Expect(first.created()).To(BeEquivalentTo(1))
	w.Expect(second.created()).To(BeEquivalentTo(0))
	w.Expect(second.leads()).To(BeFalse())
	w.Expect(valueOf(second.metrics(), `controller_runtime_reconcile_total{controller="talosconfig",result="success"}`)).To(BeNumerically("<=", 0))
	w.Expect(second.metrics()).NotTo(ContainSubstring("ichor_bootstrap_object_conditions"), "the leader alone counts objects")

	// A node dies.
	w.Expect(first.Kill()).To(Succeed())
	w.machine("w-2")
	w.ready("w-2")
	w.Expect(second.leads()).To(BeTrue())
	w.Expect(second.created()).To(BeEquivalentTo(1))
	w.Expect(w.ready("w-1").ResourceVersion).To(Equal(before.ResourceVersion), "what the first has written stays")

	// A rollout: the lease is free before the leader is gone.
	holder := holderOf(w)
	w.Expect(holder).NotTo(BeEmpty())
	w.Expect(second.Stop()).To(Succeed())
	w.Expect(holderOf(w)).To(BeEmpty())

	third := start(t, "third", managerUser, elect...)
	w.machine("w-3")
	w.ready("w-3")
	w.Expect(third.created()).To(BeEquivalentTo(1))
	w.Expect(holderOf(w)).NotTo(Or(BeEmpty(), Equal(holder)))
	w.Expect(third.Stop()).To(Succeed())
}

func (m *manager) metrics() string {
	m.t.Helper()

	return m.get("http://", "/metrics", nil).Body
}

// leads says whether the manager reports that it is the leader.
func (m *manager) leads() bool {
	m.t.Helper()

	return valueOf(m.metrics(), `leader_election_master_status{name="ichor-bootstrap-manager-leader-election"}`) == 1
}

// created is how many data Secrets the manager has created.
func (m *manager) created() float64 {
	m.t.Helper()

	return valueOf(m.metrics(), `ichor_bootstrap_data_secrets_written_total{action="Created"}`)
}

func holderOf(w *tenant) string {
	w.t.Helper()

	lease := &coordinationv1.Lease{}
	w.Expect(admin.Get(w.t.Context(), client.ObjectKey{Namespace: systemNamespace, Name: "ichor-bootstrap-manager-leader-election"}, lease)).To(Succeed())

	return ptr.Deref(lease.Spec.HolderIdentity, "")
}
