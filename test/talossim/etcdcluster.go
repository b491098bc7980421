// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// etcdCluster is the model of an etcd cluster: who is a member, who runs, who leads, and the rules by which etcd accepts
// or refuses a change. It stores no keys. Rules are those of etcd 3.6.16 with its default strict reconfiguration check
// (server/etcdserver: mayAddMember, mayPromoteMember, mayRemoveMember). Those of earlier releases add a member only while
// every voter is connected.
type etcdCluster struct {
	mu      sync.Mutex
	members []*modelMember
	leader  uint64
	term    uint64
	index   uint64
	// alarms are those of members, in the order in which they were raised. They stay when their member is removed, until they are disarmed.
	alarms []*machine.EtcdMemberAlarm
	// added counts the members ever added, so that no ID comes twice.
	added uint64
	// changed is closed and replaced when anything changed.
	changed chan struct{}
}

// modelMember is one row of the membership list. A member that was added and never ran has no name.
type modelMember struct {
	id       uint64
	name     string
	address  string
	learner  bool
	started  bool
	up       bool
	caughtUp bool
	dbSize   int64
}

// learnerLimit is etcd's default for learners at a time.
const learnerLimit = 1

func newEtcdCluster() *etcdCluster {
	return &etcdCluster{changed: make(chan struct{})}
}

// notify wakes those who wait for a change, after the leader was settled. The caller holds the lock.
func (c *etcdCluster) notify() {
	c.elect()
	c.index++
	close(c.changed)
	c.changed = make(chan struct{})
}

// watch returns a channel that is closed at the next change.
func (c *etcdCluster) watch() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

func (c *etcdCluster) find(id uint64) *modelMember {
	i := slices.IndexFunc(c.members, func(m *modelMember) bool { return m.id == id })
	if i < 0 {
		return nil
	}
	return c.members[i]
}

func (c *etcdCluster) voters() []*modelMember {
	var voters []*modelMember
	for _, m := range c.members {
		if !m.learner {
			voters = append(voters, m)
		}
	}
	return voters
}

func count(members []*modelMember, condition func(*modelMember) bool) int {
	n := 0
	for _, m := range members {
		if condition(m) {
			n++
		}
	}
	return n
}

// quorum is how many of a number of voters must agree.
func quorum(voters int) int { return voters/2 + 1 }

func isUp(m *modelMember) bool      { return m.up }
func isStarted(m *modelMember) bool { return m.started }

func (c *etcdCluster) hasQuorum() bool {
	voters := c.voters()
	return len(voters) > 0 && count(voters, isUp) > len(voters)/2
}

func (c *etcdCluster) elect() {
	if !c.hasQuorum() {
		c.leader = 0
		return
	}
	if m := c.find(c.leader); m != nil && m.up && !m.learner {
		return
	}
	for _, m := range c.voters() {
		if m.up {
			c.leader = m.id
			c.term++
			return
		}
	}
}

// newMember adds a row. The caller holds the lock and has checked the rules.
func (c *etcdCluster) newMember(address string, learner bool) *modelMember {
	c.added++
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(address), c.added))
	m := &modelMember{id: binary.BigEndian.Uint64(sum[:]), address: address, learner: learner, dbSize: 64 << 10}
	c.members = append(c.members, m)
	return m
}

// serves returns the error of a call that needs the cluster's agreement, made at a member.
func (c *etcdCluster) serves(id uint64) error {
	m := c.find(id)
	switch {
	case m == nil || !m.up:
		return errNotRunning
	case !c.hasQuorum():
		return rpctypes.ErrTimeout
	}
	return nil
}

// leads returns the error of a call by which Talos requires that there is a leader: it is refused at once when there is none.
func (c *etcdCluster) leads(id uint64) error {
	if m := c.find(id); m != nil && m.up && c.leader == 0 {
		return rpctypes.ErrNoLeader
	}
	return c.serves(id)
}

func (c *etcdCluster) addLearner(address string) (*modelMember, error) {
	voters := c.voters()
	switch {
	case !c.hasQuorum():
		return nil, rpctypes.ErrTimeout
	case len(voters) > 1 && count(voters, isUp) < quorum(len(voters)+1):
		// The new member counts as one that does not run. A member alone may always have a second one.
		return nil, rpctypes.ErrUnhealthy
	case count(c.members, func(m *modelMember) bool { return m.address == address }) > 0:
		return nil, rpctypes.ErrPeerURLExist
	case len(c.members)-len(voters) >= learnerLimit:
		return nil, rpctypes.ErrTooManyLearners
	}
	m := c.newMember(address, true)
	c.notify()
	return m, nil
}

func (c *etcdCluster) promote(id uint64) error {
	m := c.find(id)
	switch {
	case !c.hasQuorum():
		return rpctypes.ErrTimeout
	case m == nil:
		return rpctypes.ErrMemberNotFound
	case !m.learner:
		return rpctypes.ErrMemberNotLearner
	case !m.up || !m.caughtUp:
		return rpctypes.ErrMemberLearnerNotReady
	case count(c.voters(), isStarted)+1 < quorum(len(c.voters())+1):
		return rpctypes.ErrMemberNotEnoughStarted
	}
	m.learner = false
	c.notify()
	return nil
}

// removeMember applies the rules that keep the rest alive.
func (c *etcdCluster) removeMember(asker, id uint64) error {
	if err := c.leads(asker); err != nil {
		return err
	}
	m := c.find(id)
	if m == nil {
		return rpctypes.ErrMemberNotFound
	}
	if !m.learner {
		rest := slices.DeleteFunc(c.voters(), func(other *modelMember) bool { return other.id == id })
		if count(rest, isStarted) < quorum(len(rest)) {
			return rpctypes.ErrMemberNotEnoughStarted
		}
		// A member that is down is no part of the quorum that is active.
		if (m.up || id == asker) && count(c.voters(), isUp)-1 < quorum(len(rest)) {
			return rpctypes.ErrUnhealthy
		}
	}
	c.members = slices.DeleteFunc(c.members, func(other *modelMember) bool { return other.id == id })
	m.up = false
	c.notify()
	return nil
}

// moveLeader hands leadership to the first other member of the list, whatever it is: Talos does not look whether it votes or runs, and tries no
// other one. Source: Talos, internal/pkg/etcd, ForfeitLeadership; etcd, server/etcdserver, MoveLeader.
func (c *etcdCluster) moveLeader(id uint64) (string, error) {
	if c.leader != id {
		return "", nil
	}
	other := slices.IndexFunc(c.members, func(m *modelMember) bool { return m.id != id })
	switch m := c.members[other]; {
	case m.learner:
		return "", rpctypes.ErrBadLeaderTransferee
	case !m.up:
		return "", errTransfer
	default:
		c.leader = m.id
		c.term++
		c.notify()
		return m.name, nil
	}
}
