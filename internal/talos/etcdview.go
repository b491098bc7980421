// SPDX-License-Identifier: Apache-2.0

package talos

import (
	"context"
	"errors"
	"fmt"
	"io"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/maesh-dev/ichor/internal/etcd"
)

// etcdService is the ID of Talos' service.
const etcdService = "etcd"

// observeEtcd asks a control-plane node of etcd. While etcd does not run there, nobody asks it: Talos would try to reach it for seconds.
func (s *session) observeEtcd(ctx context.Context, node *Node) {
	view := etcd.View{Answered: true}

	service, ok := node.Service(etcdService)

	switch {
	case len(node.Services) == 0:
		view.Problem = "its node does not say whether etcd runs"
	case !ok:
		view.Problem = "its node has no etcd"
	case !service.Running():
		view.Problem = service.Problem()
		if view.Problem == "" {
			view.Problem = "etcd has stopped" // it has left, and is not started before the next boot
		}
	default:
		s.askEtcd(ctx, node, &view)
	}

	if view.Self == 0 {
		data, err := s.etcdData(ctx)
		view.Data = data
		node.gap("its etcd data", err)
	}

	node.Etcd = view
}

// askEtcd asks the node's own member.
func (s *session) askEtcd(ctx context.Context, node *Node, view *etcd.View) {
	var (
		own             *machineapi.EtcdMemberStatus
		members         []etcd.Member
		alarms          []etcd.Alarm
		said, list, bad error
		reads           errgroup.Group
	)

	reads.Go(func() error { own, said = s.etcdStatus(ctx); return nil })
	reads.Go(func() error { members, list = s.etcdMembers(ctx, true); return nil })
	reads.Go(func() error { alarms, bad = s.etcdAlarms(ctx); return nil })
	_ = reads.Wait() // their errors are looked at below

	if said != nil {
		view.Problem = "etcd does not answer: " + asNodeError(said).message

		return
	}

	view.Self, view.Leader = etcd.MemberID(own.GetMemberId()), etcd.MemberID(own.GetLeader())
	view.Applied, view.Errors, view.Data = own.GetRaftAppliedIndex(), own.GetErrors(), etcd.DataPresent
	node.Learner = own.GetIsLearner()

	// A learner lists no members, and is not to be blamed for it.
	if list != nil && !node.Learner {
		view.Problem = "etcd does not list its members: " + asNodeError(list).message
		node.gap("its etcd members", list)
	}

	if bad != nil && !node.Learner {
		node.gap("its etcd alarms", bad)
	}

	view.Members, view.Alarms = members, alarms
}

func (s *session) etcdStatus(ctx context.Context) (*machineapi.EtcdMemberStatus, error) {
	var own *machineapi.EtcdMemberStatus

	err := s.ask(ctx, func(ctx context.Context) error {
		response, err := s.conn.machine.EtcdStatus(ctx, &emptypb.Empty{})
		if err != nil {
			return err
		}

		for _, message := range response.GetMessages() {
			own = message.GetMemberStatus()
		}

		if own.GetMemberId() == 0 {
			return status.Error(codes.Internal, "its node does not say which etcd member it is")
		}

		return nil
	})

	return own, err
}

// etcdMembers lists the members: as the node's own member has them, or as any member does that the node can reach.
func (s *session) etcdMembers(ctx context.Context, local bool) ([]etcd.Member, error) {
	var members []etcd.Member

	err := s.ask(ctx, func(ctx context.Context) error {
		response, err := s.conn.machine.EtcdMemberList(ctx, &machineapi.EtcdMemberListRequest{QueryLocal: local})
		if err != nil {
			return err
		}

		for _, message := range response.GetMessages() {
			for _, member := range message.GetMembers() {
				members = append(members, etcd.Member{
					ID: etcd.MemberID(member.GetId()), Name: member.GetHostname(), PeerURLs: member.GetPeerUrls(), Learner: member.GetIsLearner(),
				})
			}
		}

		return nil
	})

	return members, err
}

func (s *session) etcdAlarms(ctx context.Context) ([]etcd.Alarm, error) {
	var alarms []etcd.Alarm

	err := s.ask(ctx, func(ctx context.Context) error {
		response, err := s.conn.machine.EtcdAlarmList(ctx, &emptypb.Empty{})
		if err != nil {
			return err
		}

		for _, message := range response.GetMessages() {
			for _, alarm := range message.GetMemberAlarms() {
				if alarm.GetAlarm() != machineapi.EtcdMemberAlarm_NONE {
					alarms = append(alarms, etcd.Alarm{Member: etcd.MemberID(alarm.GetMemberId()), Type: alarm.GetAlarm().String()})
				}
			}
		}

		return nil
	})

	return alarms, err
}

// etcdData says whether there is etcd data on the node's disk. That there is none is said only when the directory was seen, empty, on the
// volume where etcd keeps its data: a directory that is not mounted yet is empty, too, and an error is no proof of anything. Talos itself
// takes an empty directory for none: Bootstrap refuses all others.
func (s *session) etcdData(ctx context.Context) (etcd.DataState, error) {
	mounted, err := s.etcdMounted(ctx)
	if err != nil || !mounted {
		return etcd.DataUnknown, err
	}

	data := etcd.DataUnknown

	err = s.ask(ctx, func(ctx context.Context) error {
		list, err := s.conn.machine.List(ctx, &machineapi.ListRequest{Root: constants.EtcdDataPath})
		if err != nil {
			return err
		}

		data, err = judgeListing(list.Recv)

		return err
	})

	return data, err
}

// judgeListing reads the listing of the data directory: the directory itself, and what is in it.
func judgeListing(next func() (*machineapi.FileInfo, error)) (etcd.DataState, error) {
	seen := false

	for {
		file, err := next()

		switch {
		case errors.Is(err, io.EOF) && seen:
			return etcd.DataAbsent, nil
		case errors.Is(err, io.EOF):
			return etcd.DataUnknown, status.Error(codes.Internal, "the directory of etcd's data is not in its own listing")
		case err != nil:
			return etcd.DataUnknown, err
		case file.GetError() != "":
			return etcd.DataUnknown, status.Error(codes.Internal, "the directory of etcd's data cannot be listed")
		case file.GetName() != constants.EtcdDataPath:
			return etcd.DataPresent, nil
		case !file.GetIsDir():
			return etcd.DataUnknown, status.Error(codes.Internal, fmt.Sprintf("%s is no directory", constants.EtcdDataPath))
		default:
			seen = true
		}
	}
}

// etcdMounted tells whether the volume with etcd's data is mounted: its own, or that of everything that lasts if it is a directory there.
func (s *session) etcdMounted(ctx context.Context) (bool, error) {
	var mounted, ephemeral, directory bool

	for _, err := range []error{
		read(ctx, s, block.NewMountStatus(block.NamespaceName, constants.EtcdDataVolumeID), func(r *block.MountStatus) {
			mounted = r.TypedSpec().Target == constants.EtcdDataPath
		}),
		read(ctx, s, block.NewMountStatus(block.NamespaceName, constants.EphemeralPartitionLabel), func(r *block.MountStatus) {
			ephemeral = r.TypedSpec().Target == constants.EphemeralMountPoint
		}),
		read(ctx, s, block.NewVolumeStatus(block.NamespaceName, constants.EtcdDataVolumeID), func(r *block.VolumeStatus) {
			directory = r.TypedSpec().Type == block.VolumeTypeDirectory
		}),
	} {
		if err != nil {
			return false, err
		}
	}

	return ephemeral && (mounted || directory), nil
}
