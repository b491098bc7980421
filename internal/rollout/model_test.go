// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/etcd"
	"github.com/maesh-dev/ichor/internal/rollout"
)

// world is a small model of a Cluster: Machines with nodes that come up, join etcd as learners first, and go through the stages of Cluster
// API's deletion. It has the truth; snapshot shows of it what a controller would see.
type world struct {
	now      time.Time
	spec     controlplanev1.TalosControlPlaneSpec
	template string // what infrastructureRef names

	// rng draws what differs from one moment to the next: which nodes were asked before the last change, and which addresses come back. A
	// world without has everything asked at once, and no address twice.
	rng *rand.Rand

	// strict is etcd up to 3.6.9: it takes no member in while it is not connected to every voter. Later ones want a quorum of the members
	// that there will be.
	strict bool

	cluster        rollout.Cluster
	clusterGone    bool
	paused         bool
	deleting, gone bool // of the control plane
	workers        []string

	initialized      bool // status
	own, bundle      rollout.BootstrapMark
	remediation      *rollout.RemediationRecord
	nodes            []*node   // by name
	members          []*member // by ID
	list             []etcd.Member
	leader           etcd.MemberID
	lastID           etcd.MemberID
	made, bootstraps int
	orphans          map[etcd.MemberID]time.Time
	freed            []string // addresses

	// A control plane of this cluster whose Machines are not here: whether it is out of reach, whether it is noted down that it has answered, and
	// whether nodes of here find its etcd and join it.
	outOfReach, noted, discovers bool

	shown      []rollout.Machine
	shownNodes []rollout.Node

	// broken is what the world says against the actions that it was given.
	broken []string
}

// node is a Machine and what runs on it.
type node struct {
	rollout.Machine

	version, template string
	differ            [4]string // what Differences were made of
	address           string
	stage             int // of its deletion, 0 when it has none
	up                bool
	reachable         bool
	dead              bool // its disk is lost
	coming            int  // ticks until it is up
	away              int  // ticks until an operation in place is over
	forgotten         int  // ticks until its Machine has a status again
	provisioned       bool // it has been up, so its infrastructure machine knows its address
	joined            bool // it has a Node
	released          bool // its hook was taken off
	lingers           int  // ticks that Cluster API and the infrastructure take for it when no hook is left
	data              bool
	member            etcd.MemberID
	leaveFails        bool
	forwardFails      bool
	startFails        bool // it answers Bootstrap, and nothing comes of it
	starting          int  // ticks until the etcd that was bootstrapped has data
	ill               int  // ticks since it was last well
	ails              bool // its Talos is not well, and etcd and Kubernetes are
	suffers           bool // a MachineHealthCheck wants one that ails replaced
	foreign           bool // its Machine is not here

	// earlier is what it said before the last tick. It is gone once something has been done.
	earlier *etcd.View
	kept    etcd.View
}

type member struct {
	id               etcd.MemberID
	host             string
	peers            []string
	learner, started bool
}

var stages = []string{
	"", clusterv1.MachineDeletingReason, clusterv1.MachineDeletingDrainingNodeReason, clusterv1.MachineDeletingWaitingForPreTerminateHookReason,
	clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason,
}

// atHook is the stage at which a Machine waits for its hooks.
const atHook = 3

func newWorld(replicas int32, strategy controlplanev1.RolloutStrategyType) *world {
	return &world{
		now: time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC),
		spec: controlplanev1.TalosControlPlaneSpec{
			Replicas: &replicas, Version: "v1.35.4", Rollout: controlplanev1.RolloutSpec{Strategy: controlplanev1.RolloutStrategy{Type: strategy}},
		},
		template: "t1", strict: true,
		cluster: rollout.Cluster{Name: "demo", InfrastructureProvisioned: true, Endpoint: true, FailureDomains: []string{"a", "b", "c"}},
		orphans: map[etcd.MemberID]time.Time{},
	}
}

func (w *world) node(name string) *node {
	for _, n := range w.nodes {
		if n.Name == name {
			return n
		}
	}

	return nil
}

func (w *world) memberBy(id etcd.MemberID) *member {
	for _, m := range w.members {
		if m.id == id {
			return m
		}
	}

	return nil
}

// runs is true when a member's node is up with it.
func (w *world) runs(m *member) bool {
	n := w.node(m.host)

	return n != nil && n.up && n.member == m.id
}

// voters are how many there are, and how many run, beside one.
func (w *world) voters(beside etcd.MemberID) (up, all int) {
	for _, m := range w.members {
		if m.learner || m.id == beside {
			continue
		}

		all++

		if w.runs(m) {
			up++
		}
	}

	return up, all
}

// quorum is the truth about etcd, beside a member that is taken away.
func (w *world) quorum(beside etcd.MemberID) bool {
	up, all := w.voters(beside)

	return all > 0 && up >= etcd.Quorum(all)
}

// takesIn is etcd's word on one more member.
func (w *world) takesIn() bool {
	up, all := w.voters(0)
	if slices.ContainsFunc(w.members, func(m *member) bool { return m.learner }) || !w.quorum(0) {
		return false
	}

	return all == 1 || (w.strict && up == all) || (!w.strict && up >= etcd.Quorum(all+1))
}

// elect sees to it that a member which is up leads, if there is a quorum.
func (w *world) elect() {
	if m := w.memberBy(w.leader); m != nil && !m.learner && w.runs(m) && w.quorum(0) {
		return
	}

	w.leader = 0

	if !w.quorum(0) {
		return
	}

	for _, m := range w.members {
		if !m.learner && w.runs(m) {
			w.leader = m.id

			return
		}
	}
}

// tick lets the world go on for half a minute.
func (w *world) tick() {
	w.now = w.now.Add(30 * time.Second)

	if w.rng != nil {
		for _, n := range w.nodes {
			n.kept = w.view(n)
			n.earlier = &n.kept
		}
	}

	for _, n := range slices.Clone(w.nodes) {
		w.tickNode(n)
	}

	w.elect()

	for _, n := range w.here() {
		if n.up && n.reachable && n.NodeName != "" && (n.stage == 0 || n.Hook) {
			w.initialized = true
		}
	}
}

func (w *world) tickNode(n *node) {
	if w.tickDeletion(n) {
		return
	}

	w.tickOperation(n)

	if n.coming > 0 {
		n.coming--
		if n.coming == 0 && !n.dead {
			n.up, n.provisioned = true, true
		}
	}

	if n.up && n.starting > 0 {
		w.start(n)
	} else if n.up {
		w.join(n)
	}

	if n.forgotten > 0 {
		n.forgotten--
	}

	if n.forgotten == 0 {
		if n.provisioned && n.Addresses == nil {
			n.Addresses = []string{n.address}
		}

		if n.joined && n.NodeName == "" && w.quorum(0) {
			n.NodeName = n.Name
		}
	}

	if n.up && n.reachable {
		n.ill = 0
	} else {
		n.ill++
	}
}

// tickDeletion lets the deletion of a Machine go on. It is true when nothing is left. Between the last hook and the end the node goes on, and
// now and then Cluster API takes a while to see that there is no hook any more.
func (w *world) tickDeletion(n *node) bool {
	switch {
	case n.stage == 0:
	case n.stage < atHook:
		n.stage++
	case n.stage == atHook && (n.Hook || len(n.OtherHooks) > 0):
	case n.lingers == 0:
		w.destroy(n)

		return true
	default:
		n.lingers--

		if w.rng.IntN(3) > 0 {
			n.stage = atHook + 1
		}
	}

	return false
}

// tickOperation takes a node away for a tick and brings it back, when the quorum allows that.
func (w *world) tickOperation(n *node) {
	switch {
	case n.Operation == "":
	case n.dead:
		n.Operation, n.away = "", 0
	case n.away > 0:
		if n.away--; n.away == 0 {
			n.Operation, n.up = "", true
		}
	case n.up && w.spare(n):
		n.up, n.away, n.earlier = false, 2, nil
	}
}

// join does what Talos does by itself: a control-plane node joins as a learner, one at a time, and becomes a voter. Etcd refuses a member
// whose peer URL it has already.
func (w *world) join(n *node) {
	m := w.memberBy(n.member)

	switch {
	case n.member == 0 && !n.foreign && w.elsewhere() && !w.discovers:
	case n.member == 0 && !n.data && w.takesIn() && !w.addressTaken(n.address):
		n.member, n.data = w.add(n), true
	case m == nil:
	case m.learner && !m.started:
		m.started = true
		w.list = nil
	case m.learner && w.quorum(0):
		m.learner = false
		w.list = nil
	case w.quorum(0):
		n.joined = true
	}
}

func (w *world) addressTaken(address string) bool {
	return slices.ContainsFunc(w.members, func(m *member) bool { return m.peers[0] == peer(address) })
}

func peer(address string) string { return "https://" + address + ":2380" }

func (w *world) add(n *node) etcd.MemberID {
	w.lastID++
	w.members = append(w.members, &member{id: w.lastID, host: n.Name, peers: []string{peer(n.address)}, learner: true})
	w.list = nil

	return w.lastID
}

func (w *world) drop(id etcd.MemberID) {
	w.members = slices.DeleteFunc(w.members, func(m *member) bool { return m.id == id })
	w.list = nil
}

// destroy is what Cluster API does after the last hook: infrastructure, then the Machine.
func (w *world) destroy(n *node) {
	if done := w.initialized || w.own.Record.Done || w.bundle.Record.Done; done && !w.deleting && w.quorum(0) && !w.quorum(n.member) {
		w.against("%s takes the quorum with it", n.Name)
	}

	w.nodes = slices.DeleteFunc(w.nodes, func(other *node) bool { return other == n })
	w.freed = append(w.freed, n.address)
	w.elect()
}

// kill loses a machine for good; its Machine stays.
func (w *world) kill(n *node) {
	n.up, n.dead, n.coming, n.earlier = false, true, 0, nil
	w.elect()
}

// move loses what clusterctl move and a restored backup lose: all status, and what the controller has only seen.
func (w *world) move(ticks func() int) {
	w.initialized = false
	clear(w.orphans)

	for _, n := range w.nodes {
		n.NodeName, n.Addresses, n.earlier = "", nil, nil
		n.LeaveFailed, n.ForwardFailed, n.BootstrapCalled = false, false, time.Time{}
		n.forgotten = ticks()
	}
}

// userDeletes is kubectl delete machine.
func (w *world) userDeletes(n *node) {
	if n.stage == 0 {
		n.stage, n.Deletion = 1, &rollout.Deletion{Since: w.now}
	}
}

func (w *world) against(format string, args ...any) {
	w.broken = append(w.broken, fmt.Sprintf(format, args...))
}

// spare is true when a machine can be lost without the quorum.
func (w *world) spare(n *node) bool {
	m := w.memberBy(n.member)

	switch {
	case m == nil:
		return w.bootstraps > 0
	case m.learner:
		return true
	default:
		up, _ := w.voters(m.id)
		_, all := w.voters(0)

		return up > all/2
	}
}

// seeOrphans is the observer's memory.
func (w *world) seeOrphans(found []etcd.MemberID) {
	maps.DeleteFunc(w.orphans, func(id etcd.MemberID, _ time.Time) bool { return !slices.Contains(found, id) })

	for _, id := range found {
		if _, ok := w.orphans[id]; !ok {
			w.orphans[id] = w.now
		}
	}
}
