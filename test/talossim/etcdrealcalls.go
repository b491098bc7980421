// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"context"
	"errors"
	"io"
	"net/url"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func (e *realEtcd) list(ctx context.Context, local bool) (members []*machine.EtcdMember, err error) {
	where := e.anywhere
	if local {
		where = e.local
	}
	err = where(ctx, func(ctx context.Context, c *clientv3.Client) error {
		response, err := c.MemberList(clientv3.WithRequireLeader(ctx))
		if err != nil {
			return err
		}
		for _, m := range response.Members {
			members = append(members, &machine.EtcdMember{
				Id: m.ID, Hostname: m.Name, PeerUrls: m.PeerURLs, ClientUrls: m.ClientURLs, IsLearner: m.IsLearner,
			})
		}
		return nil
	})
	return members, err
}

func (e *realEtcd) remove(ctx context.Context, id uint64) error {
	return e.anywhere(ctx, func(ctx context.Context, c *clientv3.Client) error {
		_, err := c.MemberRemove(clientv3.WithRequireLeader(ctx), id)
		return err
	})
}

func (e *realEtcd) healthy(ctx context.Context, member *machine.EtcdMember) error {
	var addresses []string
	for _, text := range member.GetClientUrls() {
		parsed, err := url.Parse(text)
		if err != nil {
			return err
		}
		addresses = append(addresses, parsed.Hostname())
	}
	return e.with(ctx, addresses, func(ctx context.Context, c *clientv3.Client) error {
		// Any key will do: what counts is that the member answers with the cluster's consent.
		_, err := c.Get(ctx, "health")
		return err
	})
}

func (e *realEtcd) status(ctx context.Context) (status *machine.EtcdMemberStatus, err error) {
	err = e.local(ctx, func(ctx context.Context, c *clientv3.Client) error {
		s, err := c.Status(ctx, clientURL(e.address))
		if err != nil {
			return err
		}
		status = &machine.EtcdMemberStatus{
			StorageVersion: s.StorageVersion, ProtocolVersion: s.Version, MemberId: s.Header.MemberId,
			DbSize: s.DbSize, DbSizeInUse: s.DbSizeInUse, Leader: s.Leader, IsLearner: s.IsLearner, Errors: s.Errors,
			RaftIndex: s.RaftIndex, RaftAppliedIndex: s.RaftAppliedIndex, RaftTerm: s.RaftTerm,
		}
		return nil
	})
	return status, err
}

func alarmRows(alarms []*etcdserverpb.AlarmMember) []*machine.EtcdMemberAlarm {
	var rows []*machine.EtcdMemberAlarm
	for _, alarm := range alarms {
		rows = append(rows, &machine.EtcdMemberAlarm{MemberId: alarm.MemberID, Alarm: machine.EtcdMemberAlarm_AlarmType(alarm.Alarm)})
	}
	return rows
}

func (e *realEtcd) alarms(ctx context.Context) (rows []*machine.EtcdMemberAlarm, err error) {
	err = e.local(ctx, func(ctx context.Context, c *clientv3.Client) error {
		response, err := c.AlarmList(ctx)
		if err == nil {
			rows = alarmRows(response.Alarms)
		}
		return err
	})
	return rows, err
}

func (e *realEtcd) disarm(ctx context.Context) (rows []*machine.EtcdMemberAlarm, err error) {
	err = e.local(ctx, func(ctx context.Context, c *clientv3.Client) error {
		response, err := c.AlarmDisarm(ctx, &clientv3.AlarmMember{})
		if err == nil {
			rows = alarmRows(response.Alarms)
		}
		return err
	})
	return rows, err
}

func (e *realEtcd) defragment(ctx context.Context) error {
	return e.local(ctx, func(ctx context.Context, c *clientv3.Client) error {
		_, err := c.Defragment(ctx, clientURL(e.address))
		return err
	})
}

func (e *realEtcd) forfeit(ctx context.Context) (leader string, err error) {
	err = e.local(ctx, func(ctx context.Context, c *clientv3.Client) error {
		s, err := c.Status(ctx, clientURL(e.address))
		if err != nil {
			return err
		}
		list, err := c.MemberList(clientv3.WithRequireLeader(ctx))
		if err != nil {
			return err
		}
		if len(list.Members) == 1 {
			return errNoTransferee
		}
		if s.Leader != s.Header.MemberId {
			return nil
		}
		// Talos takes the first other one of the list, and does not look whether it votes or runs.
		to := list.Members[slices.IndexFunc(list.Members, func(m *etcdserverpb.Member) bool { return m.ID != s.Header.MemberId })]
		switch _, err = c.MoveLeader(ctx, to.ID); {
		case errors.Is(err, rpctypes.ErrNotLeader):
			return nil // not any more
		case err != nil:
			return err
		}
		leader = to.Name
		return nil
	})
	return leader, err
}

// leave asks the others first: a member that removes itself may end before it has answered.
func (e *realEtcd) leave(ctx context.Context) error {
	if !e.running() {
		return errNotRunning
	}
	addresses := e.peers()
	if len(addresses) == 0 {
		addresses = []string{e.address}
	}
	return e.with(ctx, addresses, func(ctx context.Context, c *clientv3.Client) error {
		_, err := c.MemberRemove(clientv3.WithRequireLeader(ctx), e.id())
		if errors.Is(err, rpctypes.ErrMemberNotFound) {
			return nil // by an earlier try whose answer was lost
		}
		return err
	})
}

func (e *realEtcd) snapshot(ctx context.Context, to io.Writer) error {
	return e.local(ctx, func(ctx context.Context, c *clientv3.Client) error {
		response, err := c.SnapshotWithVersion(ctx)
		if err != nil {
			return err
		}
		defer response.Snapshot.Close() //nolint:errcheck // It was read.
		_, err = io.Copy(to, response.Snapshot)
		return err
	})
}
