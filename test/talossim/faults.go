// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Faults are what is wrong with a node. The zero value is a node that works. They hold until others are set, across
// boots.
type Faults struct {
	// Unreachable refuses connections and cuts those that exist.
	Unreachable bool
	// BlackHole accepts connections and never answers, on those that exist too.
	BlackHole bool
	// Delay comes before each call.
	Delay time.Duration

	// WrongCA makes the node show a certificate of an authority that nobody knows, as another cluster's machine at the
	// same address would.
	WrongCA bool
	// ClockSkew is added to the node's time: what it says the time is, how it judges a client's certificate, and from
	// when on its own is valid.
	ClockSkew time.Duration
	// Hostname is what the node calls itself instead of what its configuration says.
	Hostname string
	// TimeUnsynced keeps the node from knowing the time, which Bootstrap wants.
	TimeUnsynced bool

	// LeaveFails is the message with which EtcdLeaveCluster fails.
	LeaveFails string
	// LeaveDoesNothing has EtcdLeaveCluster answer that the member has left, which it has not.
	LeaveDoesNothing bool
	// EtcdNeverStarts leaves the node's etcd member added and not started, as a node does that dies while it joins.
	EtcdNeverStarts bool
	// EtcdNeverCatchesUp leaves the member a learner.
	EtcdNeverCatchesUp bool

	// ValidationTakes is how long the legacy upgrade asks the etcd cluster, while no other node may.
	ValidationTakes time.Duration
	// NotMounted is the ID of a volume that is not mounted yet.
	NotMounted string

	// PullFails is the message with which pulling an image fails.
	PullFails string
	// InstallTakes is how long the installer works, in which the power may go.
	InstallTakes time.Duration
	// InstallExitCode is what the installer ends with.
	InstallExitCode int32
	// BootFails names the image whose boots fail: any image whose reference ends with it. Machined then goes back to the
	// image before, if it was an upgrade, and tries for ever if not.
	BootFails string
	// NeverReady keeps the node from being ready after a boot of this image; the same match as for BootFails.
	NeverReady string
	// ServiceWaits is the extension whose service waits for ever for what the machine does not have: qemu-guest-agent for the device of that
	// name. A boot does not end as long as it waits.
	ServiceWaits string
	// NodeNotReady has the kubelet find its Node not ready, as without a network plugin.
	NodeNotReady bool
}

// SetFaults replaces the node's faults.
func (n *Node) SetFaults(faults Faults) {
	n.mu.Lock()
	news := faults != n.faults
	n.faults = faults
	n.mu.Unlock()
	if news {
		n.note("%s", faults.describe())
	}
	n.gate.set(faults.Unreachable, faults.BlackHole)
	// A member that waits may go on.
	n.world.wake()
	n.refresh()
}

// Faults returns what is set.
func (n *Node) Faults() Faults {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.faults
}

// moment is when in a call something happens.
type moment int

const (
	before moment = iota
	after
)

// trap is a fault that one call springs.
type trap struct {
	method string
	when   moment
	err    error // nil crashes the node
}

// CrashBefore makes the node lose power when the next call of this method arrives, before it does anything. The method
// is named as in Calls: EtcdLeaveCluster, LifecycleService/Upgrade. The node boots again by itself.
func (n *Node) CrashBefore(method string) { n.set(trap{method: method, when: before}) }

// CrashAfter makes the node lose power when it has done the next call of this method, before the caller hears of it. After Bootstrap, etcd
// has started. For a node that goes down sooner, cut its power (Crash) once the call was answered.
func (n *Node) CrashAfter(method string) { n.set(trap{method: method, when: after}) }

// FailNext answers the next call of this method with an error, and does nothing else.
func (n *Node) FailNext(method string, err error) {
	n.set(trap{method: method, when: before, err: err})
}

func (n *Node) set(t trap) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.traps = append(n.traps, t)
}

// spring returns the trap that a call runs into, and removes it.
func (n *Node) spring(method string, when moment) *trap {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, t := range n.traps {
		if t.when == when && t.method == method {
			n.traps = append(n.traps[:i:i], n.traps[i+1:]...)
			return &t
		}
	}
	return nil
}

// OnCall has look see each call that the node is about to carry out. The caller waits until it has looked: what it sees is as it was
// before the call. The method is named as in Calls; a stream has no request. Machines are looked at until they are gone.
func (n *Node) OnCall(look func(ctx context.Context, method string, request any)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lookers = append(n.lookers, look)
}

// look has those who look see a call.
func (n *Node) look(ctx context.Context, method string, request any) {
	n.mu.Lock()
	lookers := slices.Clone(n.lookers)
	n.mu.Unlock()
	for _, look := range lookers {
		look(ctx, method, request)
	}
}

// Call is a call that reached the node.
type Call struct {
	// Method is the name of a method of MachineService, or the service and the method: State/Get.
	Method string
	// Roles are the caller's.
	Roles []string
	// Code is the answer's gRPC code.
	Code string
}

func (c Call) String() string {
	return fmt.Sprintf("%s %v %s", c.Method, c.Roles, c.Code)
}

// Calls returns every call that reached the node, in the order in which they ended, streams included.
func (n *Node) Calls() []Call {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]Call(nil), n.calls...)
}

// CallCount returns how many calls of a method the node answered with success.
func (n *Node) CallCount(method string) int {
	total := 0
	for _, call := range n.Calls() {
		if call.Method == method && call.Code == "OK" {
			total++
		}
	}
	return total
}
