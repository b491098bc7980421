// SPDX-License-Identifier: Apache-2.0

package talos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"

	"github.com/maesh-dev/ichor/internal/etcd"
)

const (
	// operationBound is how long a node may take for what it does at once.
	operationBound = 15 * time.Second

	// leaveBound is how long it may take to leave etcd. Talos tries for minutes while the cluster is not well; it is asked again instead. It
	// leaves time in a reconcile, which has a minute, to find the node before and to prove and report what came of it after.
	leaveBound = 25 * time.Second
)

// Bootstrap makes the node of a machine the first member of a new etcd cluster. It is called only when the node has proved that it has no etcd
// data: ErrAlreadyExists says that there is some, ErrNotReady that nothing is proved. Whether no other node has data is for the caller to know.
func (n *Nodes) Bootstrap(ctx context.Context, machine string) error {
	return n.operate(ctx, machine, func(ctx context.Context, s *session) error {
		if !s.facts.controlPlane {
			return &nodeError{ErrPrecondition, "etcd cannot be bootstrapped on a worker"}
		}

		data, err := s.etcdData(ctx)

		switch {
		case err != nil:
			return err
		case data == etcd.DataPresent:
			return &nodeError{ErrAlreadyExists, "its node has etcd data"}
		case data != etcd.DataAbsent:
			return &nodeError{ErrNotReady, "its node has not mounted the volume for etcd's data yet"}
		}

		err = s.call(ctx, operationBound, func(ctx context.Context) error {
			_, err := s.conn.machine.Bootstrap(ctx, &machineapi.BootstrapRequest{})

			return err
		})
		if errors.Is(err, ErrPrecondition) {
			// What Talos waits for by itself: the time, or the end of its own boot.
			return &nodeError{ErrNotReady, "etcd cannot be bootstrapped yet: " + asNodeError(err).message}
		}

		return err
	})
}

// ForwardLeadership has an etcd member that leads give that up, and returns the hostname of the new leader. A member that does not lead is left
// alone, and the name is empty. From is the member that is meant; ErrPrecondition says that the node is another one.
func (n *Nodes) ForwardLeadership(ctx context.Context, machine string, from etcd.MemberID) (leader string, err error) {
	err = n.operate(ctx, machine, func(ctx context.Context, s *session) error {
		own, err := s.etcdStatus(ctx)

		switch {
		case err != nil:
			return err
		case etcd.MemberID(own.GetMemberId()) != from:
			return s.otherMember(etcd.MemberID(own.GetMemberId()), from)
		case own.GetLeader() != own.GetMemberId():
			return nil
		}

		return s.call(ctx, operationBound, func(ctx context.Context) error {
			response, err := s.conn.machine.EtcdForfeitLeadership(ctx, &machineapi.EtcdForfeitLeadershipRequest{})
			for _, message := range response.GetMessages() {
				leader = message.GetMember()
			}

			return err
		})
	})

	return leader, err
}

// LeaveEtcd has a node's own etcd member leave the cluster, and proves that it has left. A member that is gone already is no error. Member is the
// one that is meant; ErrPrecondition says that the node is another one, ErrNotReady that etcd does not run there, so that the member can only be
// removed through another node.
func (n *Nodes) LeaveEtcd(ctx context.Context, machine string, member etcd.MemberID) error {
	return n.operate(ctx, machine, func(ctx context.Context, s *session) error {
		own, err := s.etcdStatus(ctx)

		if err != nil || etcd.MemberID(own.GetMemberId()) != member {
			gone, listed := s.gone(ctx, member, false)

			switch {
			case listed == nil && gone:
				return nil
			case err != nil:
				return &nodeError{ErrNotReady, fmt.Sprintf("etcd does not answer there, so that member %s cannot leave: %s", member, asNodeError(err).message)}
			default:
				return s.otherMember(etcd.MemberID(own.GetMemberId()), member)
			}
		}

		err = s.call(ctx, leaveBound, func(ctx context.Context) error {
			_, err := s.conn.machine.EtcdLeaveCluster(ctx, &machineapi.EtcdLeaveClusterRequest{})

			return err
		})
		if err != nil {
			return err
		}

		return s.proveGone(ctx, member, false)
	})
}

// RemoveEtcdMember removes an etcd member by its ID, asked of the node of another machine, and proves that it is gone. A member that is gone
// already is no error. ErrPrecondition says that the member is the node's own.
func (n *Nodes) RemoveEtcdMember(ctx context.Context, through string, member etcd.MemberID) error {
	return n.operate(ctx, through, func(ctx context.Context, s *session) error {
		own, err := s.etcdStatus(ctx)

		switch {
		case err != nil:
			return err
		case etcd.MemberID(own.GetMemberId()) == member:
			return &nodeError{ErrPrecondition, fmt.Sprintf("etcd member %s is its node's own, and is to be removed through another", member)}
		}

		gone, err := s.gone(ctx, member, true)
		if gone || err != nil {
			return err
		}

		err = s.call(ctx, operationBound, func(ctx context.Context) error {
			_, err := s.conn.machine.EtcdRemoveMemberByID(ctx, &machineapi.EtcdRemoveMemberByIDRequest{MemberId: uint64(member)})

			return err
		})
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}

		return s.proveGone(ctx, member, true)
	})
}

// operate finds a machine's node with an administrator's certificate made for this, and does something there. What is done goes over the very
// connection on which the node was proved to be the machine's.
func (n *Nodes) operate(ctx context.Context, machine string, do func(context.Context, *session) error) error {
	m := n.machines[machine]
	if m == nil {
		return (&nodeError{ErrNotFound, "is no Machine of the cluster"}).of(machine)
	}

	finding, cancel := context.WithTimeout(ctx, n.cluster.timeout)
	defer cancel()

	s, err := n.open(finding, m, admin)
	if err != nil {
		return asNodeError(err).of(machine)
	}
	defer s.close()

	if err := do(ctx, s); err != nil {
		return asNodeError(err).of(machine)
	}

	return nil
}

func (s *session) otherMember(is, meant etcd.MemberID) error {
	return &nodeError{ErrPrecondition, fmt.Sprintf("its node is etcd member %s now, and %s was meant", is, meant)}
}

// gone tells whether a member is in the list no more. The error says that nobody knows.
func (s *session) gone(ctx context.Context, member etcd.MemberID, local bool) (bool, error) {
	members, err := s.etcdMembers(ctx, local)
	if err != nil {
		return false, err
	}

	if len(members) == 0 {
		return false, &nodeError{ErrFailed, "etcd lists no members"}
	}

	return !slices.ContainsFunc(members, func(m etcd.Member) bool { return m.ID == member }), nil
}

// proveGone looks whether what Talos says it has done is so. That the list cannot be read is no error: Talos has answered.
func (s *session) proveGone(ctx context.Context, member etcd.MemberID, local bool) error {
	if gone, err := s.gone(ctx, member, local); err == nil && !gone {
		return &nodeError{ErrFailed, fmt.Sprintf("Talos says that etcd member %s has left, and it is still in the list of members", member)}
	}

	return nil
}
