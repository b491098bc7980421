// SPDX-License-Identifier: Apache-2.0

package talos

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"

	"github.com/maesh-dev/ichor/internal/etcd"
)

// Machine is what is known of a machine before its node is asked.
type Machine struct {
	// Name of the Machine. It must be unique.
	Name string

	// Addresses that it has by its status.
	Addresses []clusterv1.MachineAddress

	// NodeName is the name of its Node, or empty as long as Cluster API has not linked one. It is what proves best that a node is the
	// machine's: of one cluster's Nodes no two have the same name.
	NodeName string

	// SystemUUID is that of its Node, or empty.
	SystemUUID string

	// Recorded are the etcd members that its node has said it was, earlier.
	Recorded []etcd.MemberID

	// ControlPlane says whether it is one of the control plane.
	ControlPlane bool
}

// MachineOf is what a Machine says. Recorded is left to the caller.
func MachineOf(machine *clusterv1.Machine) Machine {
	m := Machine{
		Name: machine.Name, Addresses: machine.Status.Addresses, NodeName: machine.Status.NodeRef.Name,
		ControlPlane: util.IsControlPlaneMachine(machine),
	}

	if machine.Status.NodeInfo != nil {
		m.SystemUUID = machine.Status.NodeInfo.SystemUUID
	}

	return m
}

// mostAtOnce bounds how many nodes are asked at the same time. Those that do not answer cost a socket and a few goroutines each.
const mostAtOnce = 64

// Nodes are the nodes of a cluster as its Machines are now. It is made for one reconcile.
type Nodes struct {
	cluster  *Cluster
	reach    Reach
	machines map[string]*Machine
	shared   map[string][]string
}

// Nodes says where the nodes of Machines are. The Machines are all of the Cluster, workers too: an address that two of them have is not
// dialled, since nobody can tell whose it is. Connections to what is no machine's any more are closed.
func (c *Cluster) Nodes(reach Reach, machines []Machine) *Nodes {
	n := &Nodes{cluster: c, reach: reach, machines: make(map[string]*Machine, len(machines)), shared: sharedAddresses(machines)}

	used := map[string]bool{}

	for i := range machines {
		n.machines[machines[i].Name] = &machines[i]

		ways, _ := reach.candidates(&machines[i], n.shared)
		for _, way := range ways {
			used[way.dial] = true
		}
	}

	c.keep(used, n.machines)

	return n
}

// Observe asks the nodes of the named Machines, or of all of the control plane, everything that is to be known, all at the same time. It
// never fails: what is wrong is in the Node. None of them is waited for longer than the pool's timeout.
func (n *Nodes) Observe(ctx context.Context, names ...string) map[string]Node {
	if len(names) == 0 {
		names = n.controlPlane()
	}

	ctx, cancel := context.WithTimeout(ctx, n.cluster.timeout)
	defer cancel()

	var (
		mu     sync.Mutex
		asking sync.WaitGroup
	)

	found, free := make(map[string]Node, len(names)), make(chan struct{}, mostAtOnce)

	for _, name := range names {
		asking.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()

			node := n.observe(ctx, name)

			mu.Lock()
			defer mu.Unlock()

			found[name] = node
		})
	}

	asking.Wait()
	n.separate(found)

	return found
}

func (n *Nodes) controlPlane() []string {
	var names []string

	for name, m := range n.machines {
		if m.ControlPlane {
			names = append(names, name)
		}
	}

	return names
}

// observe asks one node.
func (n *Nodes) observe(ctx context.Context, name string) Node {
	m := n.machines[name]
	if m == nil {
		return unobserved(name, &nodeError{ErrNotFound, "is no Machine of the cluster"})
	}

	s, err := n.open(ctx, m, reader)
	if err != nil {
		return unobserved(name, err)
	}
	defer s.close()

	return s.observe(ctx)
}

// separate finds Machines of which one and the same node answers, as it does behind an address that moves. The node is that of the Machine
// of which there is proof; if there is none, it is nobody's.
func (n *Nodes) separate(found map[string]Node) {
	same := map[string][]string{}

	for name, node := range found {
		if node.Err == nil {
			same[node.identity()] = append(same[node.identity()], name)
		}
	}

	for _, names := range same {
		if len(names) == 1 {
			continue
		}

		slices.SortFunc(names, func(a, b string) int {
			return cmp.Or(cmp.Compare(found[b].proof, found[a].proof), strings.Compare(a, b))
		})

		owner := names[0]
		if found[owner].proof <= found[names[1]].proof {
			owner = ""
		}

		for _, name := range names {
			if name != owner {
				found[name] = unobserved(name, sharedNode(found[name], owner, names))
			}
		}
	}
}

func sharedNode(node Node, owner string, names []string) *nodeError {
	if owner != "" {
		return &nodeError{ErrAnotherNode, fmt.Sprintf("the node of Machine %s answers at %s", owner, node.Address)}
	}

	slices.Sort(names)

	return &nodeError{ErrAnotherNode, fmt.Sprintf("one node (%s) answers for the Machines %s, and nothing proves whose it is", node.Hostname, strings.Join(names, ", "))}
}
