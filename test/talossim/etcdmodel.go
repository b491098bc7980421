// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

var (
	errNotRunning = errors.New("etcd is not running on this node")
	// errNoClient is what a call to the node's own member answers while that does not run. A real node answers so after five seconds.
	// Source: Talos, internal/pkg/etcd, NewLocalClient.
	errNoClient = fmt.Errorf("failed to create etcd client: error building etcd client: %w", context.DeadlineExceeded)
	// errTransfer is etcd's of a member that does not take the leadership over.
	errTransfer     = errors.New("etcdserver: request timed out, leader transfer took too long")
	errNoTransferee = errors.New("cannot forfeit leadership, only one member")
)

// etcdVersion is the release whose rules the model has, and which a member of it reports; etcdStorage is the version of
// what it would store.
const (
	etcdVersion = "3.6.16"
	etcdStorage = "3.6.0"
)

// modelEtcd is one node's member in the model.
type modelEtcd struct {
	name    string
	address string
	faults  func() Faults
	// home is the cluster that discovery finds.
	home *etcdCluster

	mu   sync.Mutex
	self *modelMember
	// cluster is the one that self is a member of.
	cluster *etcdCluster
}

func newModelEtcd(home *etcdCluster, name, address string, faults func() Faults) *modelEtcd {
	return &modelEtcd{name: name, address: address, faults: faults, home: home, cluster: home}
}

func (e *modelEtcd) state() (*etcdCluster, *modelMember) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cluster, e.self
}

func (e *modelEtcd) member() *modelMember {
	_, m := e.state()
	return m
}

func (e *modelEtcd) own(c *etcdCluster, m *modelMember) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cluster, e.self = c, m
}

func (e *modelEtcd) exists() bool {
	c, m := e.state()
	c.mu.Lock()
	defer c.mu.Unlock()
	return m != nil && m.started
}

func (e *modelEtcd) id() uint64 {
	if m := e.member(); m != nil {
		return m.id
	}
	return 0
}

func (e *modelEtcd) running() bool {
	c, m := e.state()
	c.mu.Lock()
	defer c.mu.Unlock()
	return m != nil && m.up
}

// bootstrap makes a new cluster, whatever other members there are: a real node that is told to bootstrap does not look
// for them either. If there are some, the result is a second cluster that none of them knows, as in reality.
func (e *modelEtcd) bootstrap(context.Context) error {
	c := e.home
	c.mu.Lock()
	if len(c.members) > 0 {
		c.mu.Unlock()
		c = newEtcdCluster()
		c.mu.Lock()
	}
	defer c.mu.Unlock()
	m := c.newMember(e.address, false)
	m.name, m.started, m.up, m.caughtUp = e.name, true, true, true
	e.own(c, m)
	c.notify()
	return nil
}

func (e *modelEtcd) start(context.Context) error {
	c, m := e.state()
	if m == nil {
		return errNotRunning
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.find(m.id) != m {
		return fmt.Errorf("member %x has been removed from the cluster", m.id)
	}
	m.up = true
	c.notify()
	return nil
}

// join takes a place in the list once in a boot. If the member is removed before it has started, it stays down, as a process
// does that finds itself removed.
func (e *modelEtcd) join(ctx context.Context) error {
	c, added := e.home, e.exists()
	for {
		changed := c.watch()
		if !added && !e.exists() {
			added = e.add() == nil
		}
		if m := e.member(); m != nil && (added || e.exists()) && e.advance(m) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// add gives the node a place in the list, as its data directory is empty. A member with its name is one that lost its data,
// and is removed first; a learner at its address that never started is taken for its own, from an attempt before.
func (e *modelEtcd) add() error {
	c := e.home
	c.mu.Lock()
	defer c.mu.Unlock()
	voters := c.voters()
	asked := slices.IndexFunc(voters, isUp)
	if asked < 0 {
		return rpctypes.ErrTimeout
	}
	if same := slices.IndexFunc(c.members, func(m *modelMember) bool { return m.name == e.name }); same >= 0 {
		if err := c.removeMember(voters[asked].id, c.members[same].id); err != nil {
			return err
		}
	}
	m, err := c.addLearner(e.address)
	if errors.Is(err, rpctypes.ErrPeerURLExist) {
		if left := slices.IndexFunc(c.members, func(m *modelMember) bool { return m.address == e.address && m.learner && m.name == "" }); left >= 0 {
			m, err = c.members[left], nil
		}
	}
	if err == nil {
		e.own(c, m)
		c.notify()
	}
	return err
}

// advance brings a member that was added as far as its faults let it: started, caught up, promoted.
func (e *modelEtcd) advance(m *modelMember) (done bool) {
	c, faults := e.home, e.faults()
	c.mu.Lock()
	defer c.mu.Unlock()
	if faults.EtcdNeverStarts || c.find(m.id) != m {
		return false
	}
	if !m.up {
		m.name, m.started, m.up = e.name, true, true
		c.notify()
	}
	if m.caughtUp = !faults.EtcdNeverCatchesUp; !m.caughtUp {
		return false
	}
	return !m.learner || c.promote(m.id) == nil
}

func (e *modelEtcd) stop() {
	c, m := e.state()
	if m == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	m.up = false
	c.notify()
}

func (e *modelEtcd) wipe() error {
	e.own(e.home, nil)
	return nil
}

// at runs a call at this member under the cluster's lock.
func (e *modelEtcd) at(call func(c *etcdCluster, m *modelMember) error) error {
	c, m := e.state()
	if m == nil {
		return errNoClient
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !m.up {
		return errNoClient
	}
	return call(c, m)
}

// asVoter is at, for a call that a learner does not answer. Source: etcd, server/etcdserver/api/v3rpc, isRPCSupportedForLearner.
func (e *modelEtcd) asVoter(call func(c *etcdCluster, m *modelMember) error) error {
	return e.at(func(c *etcdCluster, m *modelMember) error {
		if m.learner {
			return rpctypes.ErrGRPCNotSupportedForLearner
		}
		return call(c, m)
	})
}

// anywhere runs a call at this member, or else at any voting member that runs.
func (e *modelEtcd) anywhere(call func(c *etcdCluster, m *modelMember) error) error {
	c, m := e.state()
	c.mu.Lock()
	defer c.mu.Unlock()
	if m == nil || !m.up || m.learner {
		i := slices.IndexFunc(c.voters(), isUp)
		if i < 0 {
			return rpctypes.ErrTimeout
		}
		m = c.voters()[i]
	}
	return call(c, m)
}

func (e *modelEtcd) list(_ context.Context, local bool) (members []*machine.EtcdMember, err error) {
	where := e.anywhere
	if local {
		where = e.at
	}
	err = where(func(c *etcdCluster, m *modelMember) error {
		if m.learner {
			return rpctypes.ErrGRPCNotSupportedForLearner
		}
		if err := c.leads(m.id); err != nil {
			return err
		}
		for _, other := range c.members {
			row := &machine.EtcdMember{
				Id: other.id, Hostname: other.name, IsLearner: other.learner,
				PeerUrls: []string{"https://" + net.JoinHostPort(other.address, "2380")},
			}
			if other.started {
				row.ClientUrls = []string{"https://" + net.JoinHostPort(other.address, "2379")}
			}
			members = append(members, row)
		}
		return nil
	})
	return members, err
}

func (e *modelEtcd) healthy(_ context.Context, member *machine.EtcdMember) error {
	return e.anywhere(func(c *etcdCluster, _ *modelMember) error {
		if err := c.serves(member.GetId()); err != nil {
			return err
		}
		if m := c.find(member.GetId()); m.learner {
			return rpctypes.ErrGRPCNotSupportedForLearner
		}
		if slices.ContainsFunc(c.alarms, func(a *machine.EtcdMemberAlarm) bool { return a.GetAlarm() == machine.EtcdMemberAlarm_CORRUPT }) {
			return rpctypes.ErrCorrupt // no member reads while one is corrupt
		}
		return nil
	})
}

func (e *modelEtcd) status(context.Context) (status *machine.EtcdMemberStatus, err error) {
	err = e.at(func(c *etcdCluster, m *modelMember) error {
		status = &machine.EtcdMemberStatus{
			StorageVersion: etcdStorage, ProtocolVersion: etcdVersion,
			MemberId: m.id, DbSize: m.dbSize, DbSizeInUse: m.dbSize, Leader: c.leader, IsLearner: m.learner,
			RaftIndex: c.index, RaftAppliedIndex: c.index, RaftTerm: c.term,
		}
		if c.leader == 0 {
			status.Errors = append(status.Errors, "etcdserver: no leader")
		}
		for _, alarm := range c.alarms {
			status.Errors = append(status.Errors, fmt.Sprintf("memberID:%d alarm:%s", alarm.GetMemberId(), alarm.GetAlarm()))
		}
		return nil
	})
	return status, err
}

func (e *modelEtcd) alarms(context.Context) (rows []*machine.EtcdMemberAlarm, err error) {
	err = e.asVoter(func(c *etcdCluster, m *modelMember) error {
		rows = slices.Clone(c.alarms)
		return c.serves(m.id)
	})
	return rows, err
}

func (e *modelEtcd) disarm(context.Context) (rows []*machine.EtcdMemberAlarm, err error) {
	err = e.asVoter(func(c *etcdCluster, m *modelMember) error {
		if err := c.serves(m.id); err != nil {
			return err
		}
		rows, c.alarms = c.alarms, nil
		c.notify()
		return nil
	})
	return rows, err
}

func (e *modelEtcd) defragment(context.Context) error {
	return e.asVoter(func(_ *etcdCluster, m *modelMember) error {
		m.dbSize = min(m.dbSize, 64<<10)
		return nil
	})
}

func (e *modelEtcd) remove(_ context.Context, id uint64) error {
	return e.anywhere(func(c *etcdCluster, m *modelMember) error { return c.removeMember(m.id, id) })
}

func (e *modelEtcd) forfeit(context.Context) (leader string, err error) {
	err = e.at(func(c *etcdCluster, m *modelMember) error {
		if err := c.leads(m.id); err != nil {
			return err
		}
		if len(c.members) == 1 {
			return errNoTransferee
		}
		leader, err = c.moveLeader(m.id)
		return err
	})
	return leader, err
}

func (e *modelEtcd) leave(context.Context) error {
	return e.at(func(c *etcdCluster, m *modelMember) error { return c.removeMember(m.id, m.id) })
}

func (e *modelEtcd) snapshot(_ context.Context, to io.Writer) error {
	return e.at(func(c *etcdCluster, _ *modelMember) error {
		_, err := fmt.Fprintf(to, "snapshot of the model at index %d, members %d\n", c.index, len(c.members))
		return err
	})
}

// raise sets an alarm on this member.
func (e *modelEtcd) raise(alarm machine.EtcdMemberAlarm_AlarmType) error {
	return e.at(func(c *etcdCluster, m *modelMember) error {
		raised := func(a *machine.EtcdMemberAlarm) bool { return a.GetMemberId() == m.id && a.GetAlarm() == alarm }
		if !slices.ContainsFunc(c.alarms, raised) {
			c.alarms = append(c.alarms, &machine.EtcdMemberAlarm{MemberId: m.id, Alarm: alarm})
		}
		c.notify()
		return nil
	})
}
