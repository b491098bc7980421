// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"context"
	"fmt"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	runtimeres "github.com/siderolabs/talos/pkg/machinery/resources/runtime"
)

// NodeState is how far a machine is, as one sees who stands in front of it.
type NodeState string

// States of a machine.
const (
	// NodeOff is a machine without power.
	NodeOff NodeState = "off"
	// NodeWaiting is one that is on and has no configuration that it accepts.
	NodeWaiting NodeState = "waiting for a configuration"
	// NodeUnready is one that boots or goes down.
	NodeUnready NodeState = "not ready"
	// NodeUnhealthy is one that runs, and lacks something that it needs to serve. So does one whose etcd elects another leader, for a moment.
	NodeUnhealthy NodeState = "not healthy"
	// NodeReady is one that does all that its configuration says.
	NodeReady NodeState = "ready"
	// NodeDestroyed is a machine that is gone for good.
	NodeDestroyed NodeState = "destroyed"
)

// State looks at the machine itself: no call is made, and nothing is noted.
func (n *Node) State() NodeState {
	n.mu.Lock()
	on, gone, b := n.on, n.gone, n.boot
	n.mu.Unlock()
	switch {
	case gone:
		return NodeDestroyed
	case !on:
		return NodeOff
	case b == nil:
		return NodeUnready
	case b.config() == nil:
		return NodeWaiting
	}
	b.mu.Lock()
	stage := b.stage
	b.mu.Unlock()
	switch {
	case stage != runtimeres.MachineStageRunning:
		return NodeUnready
	case len(b.unmet()) > 0:
		return NodeUnhealthy
	}
	return NodeReady
}

// ControlPlane tells whether the machine runs with the configuration of a control-plane node.
func (n *Node) ControlPlane() bool {
	b := n.current()
	return b != nil && b.config() != nil && b.config().controlPlane()
}

// EtcdRuns tells whether the node's etcd member serves.
func (n *Node) EtcdRuns() bool {
	etcd := n.member()
	return etcd != nil && etcd.running()
}

// EtcdView is what one etcd member knows.
type EtcdView struct {
	// MemberID is the member's own, Leader the one that it follows, zero without one.
	MemberID, Leader uint64
	// Learner is a member without a vote.
	Learner bool
	// Members are those of its cluster. A learner is not asked for them.
	Members []*machine.EtcdMember
}

// AskEtcd asks the node's own etcd member, and not through the Talos API: it is no call of a caller, and nothing is noted.
func (n *Node) AskEtcd(ctx context.Context) (EtcdView, error) {
	etcd := n.member()
	if etcd == nil || !etcd.running() {
		return EtcdView{}, fmt.Errorf("node %s: %w", n.Name(), errNotRunning)
	}
	status, err := etcd.status(ctx)
	if err != nil {
		return EtcdView{}, fmt.Errorf("node %s: etcd: %w", n.Name(), err)
	}
	view := EtcdView{MemberID: status.GetMemberId(), Leader: status.GetLeader(), Learner: status.GetIsLearner()}
	if view.Learner {
		return view, nil
	}
	if view.Members, err = etcd.list(ctx, true); err != nil {
		return EtcdView{}, fmt.Errorf("node %s: etcd: %w", n.Name(), err)
	}
	return view, nil
}
