// SPDX-License-Identifier: Apache-2.0

package talos

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/maesh-dev/ichor/internal/etcd"
)

// proof is how sure it is that a node is a machine's. All but the strongest is enough only while nobody else has a better one.
type proof int

const (
	// byDialling is when it has a certificate of the cluster and answers where the machine is said to be. An address behind NAT gives no more.
	byDialling proof = iota

	// byAddress is when the node has one of the machine's addresses for its own.
	byAddress

	// byUUID is when it has the system UUID of the machine's Node.
	byUUID

	// byNodeName is when it has the name of the machine's Node.
	byNodeName
)

// prove says that a node is the machine's, or whose it is. An address can be that of another node: a virtual one moves, and one that was set
// free is given to the next machine. The name of the Node decides as soon as there is one.
func (n *Nodes) prove(m *Machine, f facts) (proof, error) {
	switch {
	case f.controlPlane != m.ControlPlane:
		return 0, &nodeError{ErrAnotherNode, fmt.Sprintf("the node that answers is %s, and the Machine is %s", kindOf(f.controlPlane), kindOf(m.ControlPlane))}
	case m.NodeName != "" && f.nodeName != "" && strings.EqualFold(m.NodeName, f.nodeName):
		return byNodeName, nil
	case m.NodeName != "" && f.nodeName != "":
		return 0, &nodeError{ErrAnotherNode, fmt.Sprintf(
			"the Node %q answers, and the Machine's is %q: another machine has the address now, or the node's host name was changed, which Kubernetes takes for another Node; change it back",
			f.nodeName, m.NodeName)}
	case sameUUID(m.SystemUUID, f.uuid):
		return byUUID, nil
	case m.NodeName != "":
		// It has just booted, and does not know its name yet.
		return 0, &nodeError{ErrNotReady, fmt.Sprintf("the node that answers does not say its name yet, and the Machine's is %q", m.NodeName)}
	}

	return n.proveByAddress(m, f)
}

// proveByAddress is for a machine that has not joined yet.
func (n *Nodes) proveByAddress(m *Machine, f facts) (proof, error) {
	var others []string

	for _, address := range f.addresses {
		owners := n.shared[address.String()]

		switch {
		case slices.Equal(owners, []string{m.Name}):
			return byAddress, nil
		case len(owners) == 1:
			others = append(others, owners[0])
		}
	}

	if len(others) > 0 {
		return 0, &nodeError{ErrAnotherNode, fmt.Sprintf("the node that answers has the addresses of Machine %s, and none of this one", slices.Min(others))}
	}

	if owner := n.ownerOfName(f, m.Name); owner != "" {
		return 0, &nodeError{ErrAnotherNode, fmt.Sprintf("the node of Machine %s answers", owner)}
	}

	return byDialling, nil
}

// ownerOfName is another machine that has the node by the name of its Node.
func (n *Nodes) ownerOfName(f facts, beside string) string {
	for name, m := range n.machines {
		if name != beside && f.nodeName != "" && strings.EqualFold(m.NodeName, f.nodeName) {
			return name
		}
	}

	return ""
}

// ownerOfMember is another machine whose node has said, earlier, that it was this etcd member.
func (n *Nodes) ownerOfMember(m *Machine, member etcd.MemberID) string {
	if member == 0 || slices.Contains(m.Recorded, member) {
		return ""
	}

	for name, other := range n.machines {
		if name != m.Name && slices.Contains(other.Recorded, member) {
			return name
		}
	}

	return ""
}

// sameUUID compares UUIDs of systems. Firmware and kernel do not agree on the order of the bytes in the first three groups.
func sameUUID(a, b string) bool {
	one, errOne := uuid.Parse(a)
	two, errTwo := uuid.Parse(b)

	if errOne != nil || errTwo != nil || one == uuid.Nil || one == uuid.Max {
		return false
	}

	return one == two || swapped(one) == two
}

func swapped(id uuid.UUID) uuid.UUID {
	for _, group := range [][]byte{id[0:4], id[4:6], id[6:8]} {
		slices.Reverse(group)
	}

	return id
}

func kindOf(controlPlane bool) string {
	if controlPlane {
		return "one of the control plane"
	}

	return "a worker"
}

// facts are what a node says of itself.
type facts struct {
	version, hostname, nodeName, uuid, bootID string

	addresses    []netip.Addr
	controlPlane bool
	stage        string
	ready        bool
	unmet        []Unmet
	timeSynced   *bool
}
