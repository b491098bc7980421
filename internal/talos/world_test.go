// SPDX-License-Identifier: Apache-2.0

package talos_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/maesh-dev/ichor/internal/etcd"
	"github.com/maesh-dev/ichor/internal/talos"
	"github.com/maesh-dev/ichor/test/talossim"
)

// patience is for what must happen, however busy the machine is.
const patience = time.Minute

var key = types.NamespacedName{Namespace: "default", Name: "sim"}

// simulated makes the secrets of a cluster once: the keys take most of the time of a test.
var simulated = map[string]func() (*talossim.Cluster, error){
	"v1.12": sync.OnceValues(func() (*talossim.Cluster, error) { return newSimulated("v1.12") }),
	"v1.14": sync.OnceValues(func() (*talossim.Cluster, error) { return newSimulated("v1.14") }),
	"other": sync.OnceValues(func() (*talossim.Cluster, error) { return newSimulated("v1.14") }),
}

func newSimulated(contract string) (*talossim.Cluster, error) {
	return talossim.NewCluster("sim", "https://127.0.0.1:6443", contract, "v1.35.0")
}

// world is a cluster of simulated nodes and the pool that asks them.
type world struct {
	*WithT

	ctx     context.Context
	sim     *talossim.World
	cluster *talossim.Cluster
	pool    *talos.Pool
	nodes   []*talossim.Node
}

func newWorld(t *testing.T, options talos.Options) *world {
	t.Helper()

	if options.Timeout == 0 {
		options.Timeout = patience // a machine that has too much to do is no fault of a node
	}

	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	t.Cleanup(cancel)

	w := &world{WithT: NewWithT(t), ctx: ctx, sim: talossim.ForTest(t, talossim.Options{}), pool: talos.NewPool(options)}
	t.Cleanup(w.pool.Close)

	var err error
	w.cluster, err = simulated["v1.14"]()
	w.Expect(err).NotTo(HaveOccurred())

	return w
}

// start boots a node of the world's cluster.
func (w *world) start(name string, kind machine.Type) *talossim.Node {
	config, err := w.cluster.Config(kind)
	w.Expect(err).NotTo(HaveOccurred())

	n, err := w.sim.Start(w.ctx, talossim.NodeOptions{Name: name}, config)
	w.Expect(err).NotTo(HaveOccurred())

	return n
}

// grow adds control-plane nodes named cp1, cp2 and so on. The first is bootstrapped through the pool, and all come to vote.
func (w *world) grow(count int) {
	w.growBare(count)
	w.Expect(w.open().Bootstrap(w.ctx, "cp1")).To(Succeed())

	for _, n := range w.nodes {
		w.Eventually(func() bool { return w.votes(n) }, patience, "5ms").Should(BeTrue(), "etcd on %s", n.Name())
	}
}

func (w *world) growBare(count int) {
	for range count {
		w.nodes = append(w.nodes, w.start(fmt.Sprintf("cp%d", len(w.nodes)+1), machine.TypeControlPlane))
	}
}

func (w *world) votes(n *talossim.Node) bool {
	seen := w.observe(n)

	return seen.Etcd.Self != 0 && !seen.Learner && len(seen.Etcd.Members) > 0
}

// machineOf is the Machine of a node that has joined.
func machineOf(n *talossim.Node) talos.Machine {
	return talos.Machine{
		Name: n.Name(), NodeName: n.Name(), ControlPlane: true,
		Addresses: []clusterv1.MachineAddress{{Type: clusterv1.MachineInternalIP, Address: n.Address()}},
	}
}

func (w *world) machines() []talos.Machine {
	var machines []talos.Machine
	for _, n := range w.nodes {
		machines = append(machines, machineOf(n))
	}

	return machines
}

func (w *world) client() *talos.Cluster {
	client, err := w.pool.Open(key, talos.Credentials{Bundle: w.cluster.Bundle()})
	w.Expect(err).NotTo(HaveOccurred())

	return client
}

// open are the world's nodes, or those of other Machines.
func (w *world) open(machines ...talos.Machine) *talos.Nodes {
	if len(machines) == 0 {
		machines = w.machines()
	}

	return w.client().Nodes(talos.Reach{}, machines)
}

// observe asks one node.
func (w *world) observe(n *talossim.Node) talos.Node {
	return w.open().Observe(w.ctx, n.Name())[n.Name()]
}

func member(n *talossim.Node) etcd.MemberID { return etcd.MemberID(n.EtcdMemberID()) }

// judged is what the etcd cluster is by what its nodes say.
func (w *world) judged() etcd.Cluster {
	var hosts []etcd.Host
	for name, node := range w.open().Observe(w.ctx) {
		hosts = append(hosts, etcd.Host{Name: name, NodeName: node.NodeName, View: node.Etcd})
	}

	return etcd.Assess(hosts)
}

// atAddress puts a node's address into an expected message.
func atAddress(message string, n *talossim.Node) string {
	return strings.ReplaceAll(message, "ADDRESS", n.Address())
}
