// SPDX-License-Identifier: Apache-2.0

package invariants_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/role"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/maesh-dev/ichor/test/harness"
	"github.com/maesh-dev/ichor/test/invariants"
	"github.com/maesh-dev/ichor/test/talossim"
)

// leaving is a Machine that is being deleted, as far as a reason says.
func leaving(name, reason string) *clusterv1.Machine {
	machine := machineOf("TalosControlPlane", name, nil)
	machine.Finalizers = []string{clusterv1.MachineFinalizer}
	machine.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	machine.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineDeletingCondition, Status: metav1.ConditionTrue, Reason: reason}}

	return machine
}

// Whoever takes a member out of etcd whose Machine has not been drained is seen, whether the node is asked itself or another one.
func TestLeaves(t *testing.T) {
	drained, drains := clusterv1.MachineDeletingWaitingForPreTerminateHookReason, clusterv1.MachineDeletingDrainingNodeReason

	tests := map[string]struct {
		machine *clusterv1.Machine
		remove  bool
		fault   string
	}{
		"drained":             {machine: leaving("cp3", drained)},
		"drained, removed":    {machine: leaving("cp3", drained), remove: true},
		"being drained":       {machine: leaving("cp3", drains), fault: "EtcdLeaveCluster takes the etcd member of Machine cp3 out before it is drained: Deleting has the reason DrainingNode"},
		"not to be deleted":   {machine: machineOf("TalosControlPlane", "cp3", nil), fault: "EtcdLeaveCluster takes the etcd member of Machine cp3 out, which is not being deleted"},
		"removed too early":   {machine: leaving("cp3", drains), remove: true, fault: "EtcdRemoveMemberByID takes the etcd member of Machine cp3 out before it is drained"},
		"without its Machine": {machine: machineOf("TalosControlPlane", "cp1", nil), remove: true},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, "cp1", "cp2", "cp3")
			watch := invariants.Start(t.Context(), invariants.Options{
				Client:    fake.NewClientBuilder().WithScheme(harness.NewScheme()).WithObjects(client.Object(test.machine)).Build(),
				Namespace: "ns", Nodes: c.Nodes, Transcript: c.Transcript, Bootstraps: c.Bootstraps,
			})
			t.Cleanup(watch.Stop)
			c.Expect(watch.Check(t.Context())).To(Succeed())

			last := c.Nodes()[2]
			asked := last

			if test.remove {
				asked = c.Nodes()[0]
			}

			talos, err := c.of.Client(t.Context(), asked, role.Admin)
			c.Expect(err).NotTo(HaveOccurred())

			if test.remove {
				c.Expect(talos.EtcdRemoveMemberByID(t.Context(), &machineapi.EtcdRemoveMemberByIDRequest{MemberId: last.EtcdMemberID()})).To(Succeed())
			} else {
				c.Expect(talos.EtcdLeaveCluster(t.Context(), &machineapi.EtcdLeaveClusterRequest{})).To(Succeed())
			}

			c.Expect(talos.Close()).To(Succeed())

			broken := brokenOf(t, watch.Check(t.Context()))
			if test.fault == "" {
				c.Expect(broken).NotTo(HaveKey(invariants.Leaves))
				c.Expect(watch.Left("cp3")).To(Equal(test.machine.Name == "cp3"))
			} else {
				c.Expect(broken).To(HaveKeyWithValue(invariants.Leaves, ContainSubstring(test.fault)))
				c.Expect(watch.Left("cp3")).To(BeFalse())
			}
		})
	}
}

// The member of a Machine that stays may be taken out as long as it has never started.
func TestLeavesOfThoseThatNeverStarted(t *testing.T) {
	c := newCluster(t, "cp1", "cp2", "cp3")
	watch := invariants.Start(t.Context(), invariants.Options{
		Client:    fake.NewClientBuilder().WithScheme(harness.NewScheme()).WithObjects(machineOf("TalosControlPlane", "cp4", nil)).Build(),
		Namespace: "ns", Nodes: c.Nodes, Transcript: c.Transcript, Bootstraps: c.Bootstraps,
	})
	t.Cleanup(watch.Stop)

	config, err := c.of.Config(machine.TypeControlPlane)
	c.Expect(err).NotTo(HaveOccurred())
	stuck, err := c.NewNode(talossim.NodeOptions{Name: "cp4"})
	c.Expect(err).NotTo(HaveOccurred())
	stuck.SetFaults(talossim.Faults{EtcdNeverStarts: true})
	stuck.SetUserData(config)
	c.Expect(stuck.PowerOn(t.Context())).To(Succeed())
	c.Eventually(stuck.EtcdMemberID).ShouldNot(BeZero())
	c.Expect(watch.Check(t.Context())).To(Succeed())

	talos, err := c.of.Client(t.Context(), c.Nodes()[0], role.Admin)
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(talos.EtcdRemoveMemberByID(t.Context(), &machineapi.EtcdRemoveMemberByIDRequest{MemberId: stuck.EtcdMemberID()})).To(Succeed())
	c.Expect(talos.Close()).To(Succeed())
	c.Expect(brokenOf(t, watch.Check(t.Context()))).NotTo(HaveKey(invariants.Leaves))
}

// A Node is Cluster API's to delete.
func TestNodes(t *testing.T) {
	line := func(verb, resource, agent string) string {
		return `{"kind":"Event","apiVersion":"audit.k8s.io/v1","verb":"` + verb + `","userAgent":"` + agent +
			`","objectRef":{"resource":"` + resource + `","name":"cp1","apiVersion":"v1"}}` + "\n"
	}

	tests := map[string]struct {
		log, fault, by string
	}{
		"by Cluster API":        {log: line("delete", "nodes", "cluster-api-controller-manager/v1"), by: "cluster-api-controller-manager/v1"},
		"by Ichor":              {log: line("delete", "nodes", "ichor-controlplane-manager/v1"), fault: "ichor-controlplane-manager/v1 deletes the Node cp1"},
		"all of them":           {log: line("deletecollection", "nodes", "ichor-controlplane-manager/v1"), fault: "deletes the Node cp1"},
		"something else":        {log: line("delete", "pods", "ichor-controlplane-manager/v1")},
		"read":                  {log: line("get", "nodes", "ichor-controlplane-manager/v1")},
		"still being written":   {log: line("get", "nodes", "x") + `{"verb":"delete","resource":"nodes"`},
		"nothing was ever done": {log: ""},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			log := filepath.Join(t.TempDir(), "cp1.log")
			g.Expect(os.WriteFile(log, []byte(test.log), 0o600)).To(Succeed())

			watch := invariants.Start(t.Context(), invariants.Options{
				Nodes: func() []*talossim.Node { return nil }, Transcript: func() string { return "" }, Bootstraps: func() int { return 0 },
				AuditLogs: func() ([]string, error) { return []string{log, log + ".gone"}, nil },
			})
			defer watch.Stop()

			broken := brokenOf(t, watch.Check(t.Context()))
			if test.fault == "" {
				g.Expect(broken).To(BeEmpty())
			} else {
				g.Expect(broken).To(HaveKeyWithValue(invariants.Nodes, ContainSubstring(test.fault)))
			}

			g.Expect(watch.NodeDeletedBy("cp1")).To(Equal(test.by))
		})
	}
}
