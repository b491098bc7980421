// SPDX-License-Identifier: Apache-2.0

package invariants_test

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/role"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/test/harness"
	"github.com/maesh-dev/ichor/test/invariants"
	"github.com/maesh-dev/ichor/test/talossim"
)

// patience bounds every wait.
const patience = 30 * time.Second

// cluster is one of simulated nodes, watched.
type cluster struct {
	*WithT
	*talossim.World

	t     *testing.T
	of    *talossim.Cluster
	watch *invariants.Watch
}

// newCluster starts control-plane nodes, of which the first is told to bootstrap etcd, and waits until all have a vote.
func newCluster(t *testing.T, names ...string) *cluster {
	t.Helper()

	c := &cluster{WithT: NewWithT(t), World: talossim.ForTest(t, talossim.Options{}), t: t}
	c.SetDefaultEventuallyTimeout(patience)

	var err error
	c.of, err = talossim.NewCluster("c", "https://127.0.0.1:6443", "v1.14", "v1.36.1")
	c.Expect(err).NotTo(HaveOccurred())

	config, err := c.of.Config(machine.TypeControlPlane)
	c.Expect(err).NotTo(HaveOccurred())

	for _, name := range names {
		_, err := c.Start(t.Context(), talossim.NodeOptions{Name: name}, config)
		c.Expect(err).NotTo(HaveOccurred())
	}

	c.bootstrap(0)
	c.settle()

	c.watch = invariants.Start(t.Context(), invariants.Options{Nodes: c.Nodes, Transcript: c.Transcript, Bootstraps: c.Bootstraps})
	t.Cleanup(c.watch.Stop)
	c.Expect(c.watch.Check(t.Context())).To(Succeed())

	return c
}

func (c *cluster) bootstrap(node int) {
	c.t.Helper()

	talos, err := c.of.Client(c.t.Context(), c.Nodes()[node], role.Admin)
	c.Expect(err).NotTo(HaveOccurred())
	// A node that has an etcd already refuses; the call counts.
	_ = talos.Bootstrap(c.t.Context(), &machineapi.BootstrapRequest{})
	c.Expect(talos.Close()).To(Succeed())
}

func (c *cluster) settle() {
	c.t.Helper()

	for _, node := range c.Nodes() {
		c.Eventually(node.State).Should(Equal(talossim.NodeReady), node.Name())
		c.Eventually(func() bool {
			view, err := node.AskEtcd(c.t.Context())

			return err == nil && !view.Learner
		}).Should(BeTrue(), "%s has a vote", node.Name())
	}
}

// broken are the invariants that do not hold.
func (c *cluster) broken() map[invariants.Invariant]string {
	c.t.Helper()

	return brokenOf(c.t, c.watch.Check(c.t.Context()))
}

func brokenOf(t *testing.T, err error) map[invariants.Invariant]string {
	t.Helper()

	broken := map[invariants.Invariant]string{}

	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, each := range joined.Unwrap() {
			fault, ok := errors.AsType[*invariants.Fault](each)
			if !ok {
				t.Fatal(each)
			}

			broken[fault.Invariant] = fault.Text
		}
	} else if err != nil {
		t.Fatal(err)
	}

	return broken
}

// One node may be away, and it may come back; the next one may go then.
func TestOneAfterTheOther(t *testing.T) {
	c := newCluster(t, "cp1", "cp2", "cp3")

	for _, node := range c.Nodes() {
		c.Expect(node.Crash(t.Context())).To(Succeed())
		c.settle()
	}

	c.Expect(c.broken()).To(BeEmpty())
}

// Two of three at once are too many nodes and too few members, also when both have come back before anybody asks.
func TestTwoAtOnce(t *testing.T) {
	c := newCluster(t, "cp1", "cp2", "cp3")

	for _, node := range c.Nodes()[1:] {
		node.PowerOff()
	}

	c.Eventually(c.watch.Most).Should(Equal(2))

	for _, node := range c.Nodes()[1:] {
		c.Expect(node.PowerOn(t.Context())).To(Succeed())
	}

	c.settle()
	c.Expect(c.broken()).To(And(HaveLen(2),
		HaveKeyWithValue(invariants.Disturbances, ContainSubstring("2 nodes at once, where 1 may be: cp2 (off), cp3 (off)")),
		HaveKeyWithValue(invariants.Quorum, ContainSubstring("of 3 members with a vote too few run: cp2, cp3 do not"))))
}

// What a scenario breaks itself is no fault.
func TestExpected(t *testing.T) {
	c := newCluster(t, "cp1", "cp2", "cp3")

	c.watch.Allow(2)
	resume := c.watch.Pause(invariants.Quorum)

	for _, node := range c.Nodes()[1:] {
		node.PowerOff()
	}

	c.Eventually(c.watch.Most).Should(Equal(2))
	c.Expect(c.broken()).To(BeEmpty())

	for _, node := range c.Nodes()[1:] {
		c.Expect(node.PowerOn(t.Context())).To(Succeed())
	}

	c.settle()
	resume()
	c.Expect(c.broken()).To(BeEmpty())
}

// A machine that is taken away is no disturbance, and a member that has left has no vote.
func TestScaleDown(t *testing.T) {
	c := newCluster(t, "cp1", "cp2", "cp3")

	for _, node := range c.Nodes()[1:] {
		talos, err := c.of.Client(t.Context(), node, role.Admin)
		c.Expect(err).NotTo(HaveOccurred())
		c.Expect(talos.EtcdLeaveCluster(t.Context(), &machineapi.EtcdLeaveClusterRequest{})).To(Succeed())
		c.Expect(talos.Close()).To(Succeed())
		c.Expect(node.Destroy()).To(Succeed())
	}

	c.Expect(c.broken()).To(BeEmpty())
}

// A machine that is taken away with its member is one that is missing.
func TestLostMembers(t *testing.T) {
	c := newCluster(t, "cp1", "cp2", "cp3")

	for _, node := range c.Nodes()[1:] {
		c.Expect(node.Destroy()).To(Succeed())
	}

	c.Eventually(c.broken).Should(HaveKeyWithValue(invariants.Quorum, ContainSubstring("of 3 members with a vote too few run")))
}

// A second bootstrap makes a second cluster, which is seen as such, and by the calls.
func TestTwoClusters(t *testing.T) {
	c := newCluster(t, "cp1")

	config, err := c.of.Config(machine.TypeControlPlane)
	c.Expect(err).NotTo(HaveOccurred())

	other, err := c.NewNode(talossim.NodeOptions{Name: "cp2"})
	c.Expect(err).NotTo(HaveOccurred())
	// It must not join before it is told to make one of its own.
	other.SetFaults(talossim.Faults{EtcdNeverStarts: true})
	other.SetUserData(config)
	c.Expect(other.PowerOn(t.Context())).To(Succeed())
	c.bootstrap(1)

	broken := c.broken()
	c.Expect(broken).To(HaveKeyWithValue(invariants.Bootstrap, ContainSubstring("several nodes were told to bootstrap etcd: cp1, cp2")))

	// The node has answered, and makes its cluster some moments later.
	c.Eventually(func() error { return c.watch.Check(t.Context()) }).Should(MatchError(ContainSubstring("etcd was bootstrapped 2 times")))
}

// machineOf is a Machine of a control plane.
func machineOf(kind, name string, annotations map[string]string) *clusterv1.Machine {
	return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: "uid-of-machine", Annotations: annotations,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "x/v1", Kind: kind, Name: "cp", UID: "u", Controller: new(true)}},
	}}
}

// A Machine that gets its hook later has been without it, and nobody sees that who does not watch.
func TestHooks(t *testing.T) {
	hook := map[string]string{controlplanev1.PreTerminateHookAnnotation: ""}

	tests := map[string]struct {
		machine *clusterv1.Machine
		fault   string
	}{
		"with its hook":     {machine: machineOf("TalosControlPlane", "a", hook)},
		"of a MachineSet":   {machine: machineOf("MachineSet", "a", nil)},
		"made by hand":      {machine: &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}},
		"without its hook":  {machine: machineOf("TalosControlPlane", "a", nil), fault: "Machine a of TalosControlPlane cp was created without the annotation"},
		"with another hook": {machine: machineOf("TalosControlPlane", "a", map[string]string{"pre-terminate.delete.hook.machine.cluster.x-k8s.io/other": ""}), fault: "Machine a"},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := fake.NewClientBuilder().WithScheme(harness.NewScheme()).Build()
			seen := make(chan struct{}, 1)
			watch := invariants.Start(t.Context(), invariants.Options{
				Client: &watchedClient{WithWatch: c, watched: seen}, Namespace: "ns",
				Nodes: func() []*talossim.Node { return nil }, Transcript: func() string { return "" }, Bootstraps: func() int { return 0 },
			})

			defer watch.Stop()

			g.Eventually(seen, patience).Should(Receive())
			g.Expect(c.Create(t.Context(), test.machine)).To(Succeed())

			// It gets the hook, too late.
			current := test.machine.DeepCopy()
			current.Annotations = hook
			g.Expect(c.Update(t.Context(), current)).To(Succeed())

			// The watch has told of this one after the other.
			last := machineOf("TalosControlPlane", "last", nil)
			last.UID = "another"
			g.Expect(c.Create(t.Context(), last)).To(Succeed())

			g.Eventually(func() error { return watch.Check(t.Context()) }, patience).Should(MatchError(ContainSubstring("Machine last")))

			err := watch.Check(t.Context())
			if test.fault == "" {
				g.Expect(err).NotTo(MatchError(ContainSubstring("Machine a")))
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(test.fault)))
			}
		})
	}
}
