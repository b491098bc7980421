// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"context"
	"io"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
)

// etcdMember is what a node does with its etcd. It has two implementations: a model that the nodes of a cluster share
// in this process, and a real member. Errors are those of etcd's own client.
type etcdMember interface {
	// exists tells whether the data directory holds a member. One that was added and has not started has no data.
	exists() bool
	// bootstrap starts a cluster of this member alone.
	bootstrap(ctx context.Context) error
	// start runs the member that the data directory holds.
	start(ctx context.Context) error
	// join adds a member to the cluster of other nodes as a learner, starts it and has it promoted. It waits for a
	// cluster, and for the cluster to accept it, until ctx is done.
	join(ctx context.Context) error
	// stop ends the member's process and keeps its data.
	stop()
	// wipe removes the data of a member that is stopped.
	wipe() error

	// running tells whether the member serves.
	running() bool
	// id is the member's, or zero.
	id() uint64

	// list and remove are answered by any member of the cluster that can be reached, as Talos asks them; list asks this
	// node's own member alone if local is set. All other calls are about this node's own member.
	list(ctx context.Context, local bool) ([]*machine.EtcdMember, error)
	remove(ctx context.Context, id uint64) error

	// healthy asks another member, at the addresses that the list has of it.
	healthy(ctx context.Context, member *machine.EtcdMember) error

	status(ctx context.Context) (*machine.EtcdMemberStatus, error)
	alarms(ctx context.Context) ([]*machine.EtcdMemberAlarm, error)
	disarm(ctx context.Context) ([]*machine.EtcdMemberAlarm, error)
	defragment(ctx context.Context) error
	// forfeit moves leadership away from this member and returns the name of the new leader; empty if this member does
	// not lead.
	forfeit(ctx context.Context) (string, error)
	// leave removes this member from the cluster.
	leave(ctx context.Context) error
	snapshot(ctx context.Context, to io.Writer) error
}
