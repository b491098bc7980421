// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"context"
	"slices"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/test/talossim"
)

// sampleMembers notes which member is whose, since one that is removed may be that of a machine which is gone, and begins to look at
// the calls of nodes that are new.
func (w *Watch) sampleMembers() {
	for _, node := range w.options.Nodes() {
		member := node.EtcdMemberID()

		w.mu.Lock()

		if member != 0 {
			w.members[member] = node.Name()
		}

		looked := w.looked[node]
		w.looked[node] = true

		w.mu.Unlock()

		if !looked && w.options.Client != nil {
			node.OnCall(func(ctx context.Context, method string, request any) { w.seeCall(ctx, node, method, request) })
		}
	}
}

// seeCall judges a call that takes a member out of etcd. The node waits meanwhile, so that the Machine is seen as it is at that moment.
func (w *Watch) seeCall(ctx context.Context, node *talossim.Node, method string, request any) {
	name, neverStarted := node.Name(), false

	switch method {
	case "EtcdLeaveCluster":
	case "EtcdRemoveMemberByID":
		removal, ok := request.(*machineapi.EtcdRemoveMemberByIDRequest)
		if !ok {
			return
		}

		w.mu.Lock()
		name = w.members[removal.GetMemberId()]
		w.mu.Unlock()

		neverStarted = hasNeverStarted(ctx, w.options.Nodes(), removal.GetMemberId())
	default:
		return
	}

	if name == "" {
		return // a member that no machine has ever had, as far as anybody knows
	}

	machine := &clusterv1.Machine{}
	err := w.options.Client.Get(ctx, client.ObjectKey{Namespace: w.options.Namespace, Name: name}, machine)

	w.mu.Lock()
	defer w.mu.Unlock()

	switch reason := conditions.GetReason(machine, clusterv1.MachineDeletingCondition); {
	case apierrors.IsNotFound(err): // its member is left over
	case err != nil:
		w.fault(Leaves, "Machine %s: %s", name, err)
	case machine.DeletionTimestamp.IsZero() && neverStarted: // its node never needed it
	case machine.DeletionTimestamp.IsZero():
		w.fault(Leaves, "%s takes the etcd member of Machine %s out, which is not being deleted", method, name)
	case reason != clusterv1.MachineDeletingWaitingForPreTerminateHookReason:
		w.fault(Leaves, "%s takes the etcd member of Machine %s out before it is drained: Deleting has the reason %s", method, name, reason)
	default:
		w.left[name] = true
	}
}

// hasNeverStarted tells whether etcd's list has a member without a name: it was added, and has never started. To take it out takes nothing away
// from a Machine that stays, whose node joins again.
func hasNeverStarted(ctx context.Context, nodes []*talossim.Node, id uint64) bool {
	view, _ := askEtcd(ctx, nodes)

	return slices.ContainsFunc(view.Members, func(member *machineapi.EtcdMember) bool {
		return member.GetId() == id && member.GetHostname() == ""
	})
}

// Left tells whether the etcd member of a Machine was taken out after the Machine was drained.
func (w *Watch) Left(machine string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()

	return w.left[machine]
}
