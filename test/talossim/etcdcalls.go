// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"context"
	"errors"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// leaveRetry is how long a real node tries to leave a cluster that is unhealthy, and every how often.
const (
	leaveRetry    = 5 * time.Minute
	leaveInterval = 250 * time.Millisecond
)

// Bootstrap has this node start a new etcd cluster, and answers before it has.
func (s *machineService) Bootstrap(_ context.Context, request *machine.BootstrapRequest) (*machine.BootstrapResponse, error) {
	b := s.boot
	c := b.config()
	if c != nil && !c.controlPlane() && !b.image.version.Contract().AtLeast(14) {
		return nil, status.Error(codes.FailedPrecondition, "bootstrap can only be performed on a control plane node")
	}
	if err := b.mustBeControlPlane("bootstrap"); err != nil {
		return nil, err
	}
	switch {
	case c.etcdCA() == nil:
		return nil, status.Error(codes.InvalidArgument, "etcd is not configured, bootstrap is not possible")
	case b.node.Faults().TimeUnsynced:
		return nil, status.Error(codes.FailedPrecondition, "time is not in sync yet")
	case request.GetRecoverEtcd():
		// A real one would start with the data of a snapshot: an empty cluster is no answer to that.
		return nil, status.Error(codes.Unimplemented, "a simulated node does not recover etcd from a snapshot")
	}
	etcd := b.node.member()
	if etcd.exists() {
		return nil, status.Error(codes.AlreadyExists, "etcd data directory is not empty")
	}
	b.bootstrapEtcd(etcd)
	return &machine.BootstrapResponse{Messages: []*machine.Bootstrap{{}}}, nil
}

// etcdOf is the node's etcd, for a call. A worker has none.
func (s *machineService) etcdOf(api string) (etcdMember, error) {
	if err := s.boot.mustBeControlPlane(api); err != nil {
		return nil, err
	}
	etcd := s.boot.node.member()
	if etcd == nil {
		return nil, etcdError(errNoClient)
	}
	return etcd, nil
}

// etcdError is an error as a real node passes it on: it knows one of etcd's own, and wraps the others.
func etcdError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, rpctypes.ErrMemberNotFound):
		return status.Error(codes.NotFound, err.Error())
	case errors.Is(err, context.DeadlineExceeded):
		return status.Error(codes.DeadlineExceeded, err.Error())
	default:
		return status.Error(codes.Unknown, err.Error())
	}
}

func (s *machineService) EtcdMemberList(ctx context.Context, request *machine.EtcdMemberListRequest) (*machine.EtcdMemberListResponse, error) {
	etcd, err := s.etcdOf("member list")
	if err != nil {
		return nil, err
	}
	members, err := etcd.list(ctx, request.GetQueryLocal())
	if err != nil {
		return nil, etcdError(err)
	}
	list := &machine.EtcdMembers{Members: members}
	for _, member := range members {
		list.LegacyMembers = append(list.LegacyMembers, member.GetHostname())
	}
	return &machine.EtcdMemberListResponse{Messages: []*machine.EtcdMembers{list}}, nil
}

func (s *machineService) EtcdRemoveMemberByID(ctx context.Context, request *machine.EtcdRemoveMemberByIDRequest) (*machine.EtcdRemoveMemberByIDResponse, error) {
	etcd, err := s.etcdOf("etcd remove member")
	if err != nil {
		return nil, err
	}
	remark(ctx).say("member=%s", s.boot.node.world.ownerOf(request.GetMemberId()))
	if err := etcd.remove(ctx, request.GetMemberId()); err != nil {
		return nil, etcdError(err)
	}
	return &machine.EtcdRemoveMemberByIDResponse{Messages: []*machine.EtcdRemoveMemberByID{{}}}, nil
}

// ownerOf names the machine whose etcd member has an ID.
func (w *World) ownerOf(member uint64) string {
	for _, n := range w.Nodes() {
		if n.EtcdMemberID() == member {
			return n.Name()
		}
	}
	return "of no machine"
}

func (s *machineService) EtcdLeaveCluster(ctx context.Context, _ *machine.EtcdLeaveClusterRequest) (*machine.EtcdLeaveClusterResponse, error) {
	if _, err := s.etcdOf("etcd leave"); err != nil {
		return nil, err
	}
	if !s.boot.node.Faults().LeaveDoesNothing {
		if err := s.boot.leaveEtcd(ctx); err != nil {
			return nil, etcdError(err)
		}
	}
	return &machine.EtcdLeaveClusterResponse{Messages: []*machine.EtcdLeaveCluster{{}}}, nil
}

// leaveEtcd removes this node's member, stops it and wipes its data. The service stays down until the next boot, at which
// the node joins again.
func (b *boot) leaveEtcd(ctx context.Context) error {
	etcd := b.node.member()
	if fault := b.node.Faults().LeaveFails; fault != "" {
		return errors.New(fault)
	}
	ctx, cancel := context.WithTimeout(ctx, leaveRetry)
	defer cancel()
	ticker := time.NewTicker(leaveInterval)
	defer ticker.Stop()
	for {
		err := etcd.leave(ctx)
		if err == nil {
			break
		}
		// A proposal that meets a change of leader is lost, and its call times out.
		lost := errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
		if !lost && !errors.Is(err, rpctypes.ErrUnhealthy) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-b.ctx.Done():
			return errGoingDown
		case <-ticker.C:
		}
	}
	b.mu.Lock()
	b.left = true
	b.mu.Unlock()
	etcd.stop()
	err := etcd.wipe()
	b.publish()
	return err
}

func (s *machineService) EtcdForfeitLeadership(ctx context.Context, _ *machine.EtcdForfeitLeadershipRequest) (*machine.EtcdForfeitLeadershipResponse, error) {
	etcd, err := s.etcdOf("etcd forfeit leadership")
	if err != nil {
		return nil, err
	}
	leader, err := etcd.forfeit(ctx)
	if err != nil {
		return nil, etcdError(err)
	}
	return &machine.EtcdForfeitLeadershipResponse{Messages: []*machine.EtcdForfeitLeadership{{Member: leader}}}, nil
}

func (s *machineService) EtcdStatus(ctx context.Context, _ *emptypb.Empty) (*machine.EtcdStatusResponse, error) {
	etcd, err := s.etcdOf("etcd status")
	if err != nil {
		return nil, err
	}
	member, err := etcd.status(ctx)
	if err != nil {
		return nil, etcdError(err)
	}
	return &machine.EtcdStatusResponse{Messages: []*machine.EtcdStatus{{MemberStatus: member}}}, nil
}

func (s *machineService) EtcdAlarmList(ctx context.Context, _ *emptypb.Empty) (*machine.EtcdAlarmListResponse, error) {
	etcd, err := s.etcdOf("etcd alarm list")
	if err != nil {
		return nil, err
	}
	alarms, err := etcd.alarms(ctx)
	if err != nil {
		return nil, etcdError(err)
	}
	return &machine.EtcdAlarmListResponse{Messages: []*machine.EtcdAlarm{{MemberAlarms: alarms}}}, nil
}

func (s *machineService) EtcdAlarmDisarm(ctx context.Context, _ *emptypb.Empty) (*machine.EtcdAlarmDisarmResponse, error) {
	etcd, err := s.etcdOf("etcd alarm disarm")
	if err != nil {
		return nil, err
	}
	alarms, err := etcd.disarm(ctx)
	if err != nil {
		return nil, etcdError(err)
	}
	return &machine.EtcdAlarmDisarmResponse{Messages: []*machine.EtcdAlarmDisarm{{MemberAlarms: alarms}}}, nil
}

func (s *machineService) EtcdDefragment(ctx context.Context, _ *emptypb.Empty) (*machine.EtcdDefragmentResponse, error) {
	etcd, err := s.etcdOf("etcd defragment")
	if err != nil {
		return nil, err
	}
	if err := etcd.defragment(ctx); err != nil {
		return nil, etcdError(err)
	}
	return &machine.EtcdDefragmentResponse{Messages: []*machine.EtcdDefragment{{}}}, nil
}

func (s *machineService) EtcdSnapshot(_ *machine.EtcdSnapshotRequest, stream machine.MachineService_EtcdSnapshotServer) error {
	etcd, err := s.etcdOf("etcd snapshot")
	if err != nil {
		return err
	}
	return etcdError(etcd.snapshot(stream.Context(), chunks{stream}))
}

// chunks sends what is written to it as messages.
type chunks struct {
	stream machine.MachineService_EtcdSnapshotServer
}

func (c chunks) Write(b []byte) (int, error) {
	if err := c.stream.Send(&common.Data{Bytes: b}); err != nil {
		return 0, err
	}
	return len(b), nil
}
