// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

	cluster        rollout.Cluster
	clusterGone    bool
	paused         bool
	deleting, gone bool // of the control plane
	workers        []string

	initialized      bool // status
	own, bundle      rollout.BootstrapMark
	remediation      *rollout.RemediationRecord
	machines         map[string]*node
	members          map[etcd.MemberID]*member
	leader           etcd.MemberID
	lastID           etcd.MemberID
	made, bootstraps int
	orphans          map[etcd.MemberID]time.Time

	// broken is what the world says against the actions that it was given.
	broken []string
}

// node is a Machine and what runs on it.
type node struct {
	rollout.Machine

	version, template string
	address           string
	stage             int // of its deletion, 0 when it has none
	up                bool
	reachable         bool
	dead              bool // its disk is lost
	coming            int  // ticks until it is up
	data              bool
	member            etcd.MemberID
	leaveFails        bool
	ill               int // ticks since it was last well
}

type member struct {
	host    string
	address string
	learner bool
	started bool
}

var stages = []string{"", clusterv1.MachineDeletingReason, clusterv1.MachineDeletingDrainingNodeReason, clusterv1.MachineDeletingWaitingForPreTerminateHookReason}

func newWorld(replicas int32, strategy controlplanev1.RolloutStrategyType) *world {
	return &world{
		now: time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC),
		spec: controlplanev1.TalosControlPlaneSpec{
			Replicas: &replicas, Version: "v1.35.4", Rollout: controlplanev1.RolloutSpec{Strategy: controlplanev1.RolloutStrategy{Type: strategy}},
		},
		template: "t1",
		cluster:  rollout.Cluster{Name: "demo", InfrastructureProvisioned: true, Endpoint: true, FailureDomains: []string{"a", "b", "c"}},
		machines: map[string]*node{}, members: map[etcd.MemberID]*member{}, orphans: map[etcd.MemberID]time.Time{},
	}
}

func (w *world) sorted() []*node {
	out := make([]*node, 0, len(w.machines))
	for _, name := range slices.Sorted(maps.Keys(w.machines)) {
		out = append(out, w.machines[name])
	}

	return out
}

// quorum is the truth about etcd, beside a member that is taken away.
func (w *world) quorum(beside etcd.MemberID) bool {
	up, voters := 0, 0

	for id, m := range w.members {
		if m.learner || id == beside {
			continue
		}

		voters++

		if n := w.machines[m.host]; n != nil && n.up && n.member == id {
			up++
		}
	}

	return voters > 0 && up >= etcd.Quorum(voters)
}

// elect sees to it that a member which is up leads, if there is a quorum.
func (w *world) elect() {
	if m := w.members[w.leader]; m != nil && !m.learner && w.machines[m.host] != nil && w.machines[m.host].up && w.quorum(0) {
		return
	}

	w.leader = 0

	if !w.quorum(0) {
		return
	}

	for _, id := range slices.Sorted(maps.Keys(w.members)) {
		if m := w.members[id]; !m.learner && w.machines[m.host] != nil && w.machines[m.host].up {
			w.leader = id

			return
		}
	}
}

// tick lets the world go on for half a minute.
func (w *world) tick() {
	w.now = w.now.Add(30 * time.Second)

	for _, n := range w.sorted() {
		w.tickNode(n)
	}

	w.elect()

	for _, n := range w.sorted() {
		if n.up && n.reachable && n.NodeName != "" {
			w.initialized = true
		}
	}
}

func (w *world) tickNode(n *node) {
	if n.stage > 0 {
		if n.stage < len(stages)-1 {
			n.stage++
		} else if !n.Hook && len(n.OtherHooks) == 0 {
			w.destroy(n)

			return
		}
	}

	if n.coming > 0 {
		n.coming--
		if n.coming == 0 && !n.dead {
			n.up, n.HadAddress, n.Addresses = true, true, []string{n.address}
		}
	}

	if n.up {
		w.join(n)
	}

	if n.up && n.reachable {
		n.ill = 0
	} else {
		n.ill++
	}
}

// join does what Talos does by itself: a control-plane node joins as a learner, one at a time, and becomes a voter.
func (w *world) join(n *node) {
	switch m := w.members[n.member]; {
	case n.member == 0 && !n.data && w.quorum(0) && !w.learning():
		n.member, n.data = w.add(n), true
	case m != nil && m.learner && !m.started:
		m.started = true
	case m != nil && m.learner && w.quorum(0):
		m.learner = false
	case m != nil && n.NodeName == "" && w.quorum(0):
		n.NodeName = n.Name
	}
}

func (w *world) learning() bool {
	for _, m := range w.members {
		if m.learner {
			return true
		}
	}

	return false
}

func (w *world) add(n *node) etcd.MemberID {
	w.lastID++
	w.members[w.lastID] = &member{host: n.Name, address: n.address, learner: true}

	return w.lastID
}

// destroy is what Cluster API does after the last hook: infrastructure, then the Machine.
func (w *world) destroy(n *node) {
	delete(w.machines, n.Name)
	w.elect()
}

// kill loses a machine for good; its Machine stays.
func (w *world) kill(n *node) {
	n.up, n.dead, n.coming = false, true, 0
	w.elect()
}

// snapshot is what a controller sees.
func (w *world) snapshot() rollout.Snapshot {
	s := rollout.Snapshot{
		Now: w.now,
		ControlPlane: rollout.ControlPlane{
			Name: "demo", Deleting: w.deleting, Paused: w.paused, Spec: w.spec, Initialized: w.initialized,
			Bootstrap: w.own, BundleBootstrap: w.bundle, Remediation: w.remediation,
		},
		Workers: w.workers,
		Nodes:   rollout.Nodes{Known: w.quorum(0)},
		Orphans: maps.Clone(w.orphans),
	}

	if !w.clusterGone {
		cluster := w.cluster
		s.Cluster = &cluster
	}

	for _, n := range w.sorted() {
		s.Machines = append(s.Machines, w.show(n))

		if n.NodeName != "" {
			s.Nodes.Items = append(s.Nodes.Items, rollout.Node{Name: n.NodeName, Addresses: n.Addresses, Ready: n.up})
		}
	}

	w.seeOrphans(s)

	return s
}

func (w *world) seeOrphans(s rollout.Snapshot) {
	found := rollout.Orphans(s)
	maps.DeleteFunc(w.orphans, func(id etcd.MemberID, _ time.Time) bool { return !slices.Contains(found, id) })

	for _, id := range found {
		if _, ok := w.orphans[id]; !ok {
			w.orphans[id] = w.now
		}
	}
}

func (w *world) show(n *node) rollout.Machine {
	m := n.Machine
	m.Version = n.version
	m.RecordedMembers = slices.Clone(n.RecordedMembers)
	m.Differences = nil

	if n.version != w.spec.Version {
		m.Differences = append(m.Differences, rollout.Difference{Field: "version", Message: "Version " + n.version + ", " + w.spec.Version + " required", InPlace: true})
	}

	if n.template != w.template {
		m.Differences = append(m.Differences, rollout.Difference{Field: "infrastructureRef", Message: "Made from " + n.template + ", " + w.template + " required"})
	}

	m.Deletion = nil
	if n.stage > 0 {
		m.Deletion = &rollout.Deletion{Since: n.Deletion.Since, Stage: stages[n.stage], AtHook: n.stage == len(stages)-1}
	}

	m.Etcd, m.Conditions = w.view(n), w.conditions(n)

	return m
}

func (w *world) view(n *node) etcd.View {
	if !n.up || !n.reachable {
		if len(n.Addresses) == 0 {
			return etcd.View{}
		}

		return etcd.View{Problem: "no answer from its Talos API"}
	}

	v := etcd.View{Answered: true, Data: etcd.DataAbsent}
	if n.data {
		v.Data = etcd.DataPresent
	}

	if w.members[n.member] == nil {
		return v
	}

	v.Self, v.Leader, v.Applied = n.member, w.leader, 100

	for id, m := range w.members {
		listed := etcd.Member{ID: id, Learner: m.learner, PeerURLs: []string{"https://" + m.address + ":2380"}}
		if m.started {
			listed.Name = m.host
		}

		v.Members = append(v.Members, listed)
	}

	return v
}

func (w *world) conditions(n *node) []metav1.Condition {
	var out []metav1.Condition

	set := func(name string, status metav1.ConditionStatus, message string) {
		out = append(out, metav1.Condition{Type: name, Status: status, Reason: "Model", Message: message})
	}

	status, message := metav1.ConditionTrue, ""
	if !n.up || !n.reachable || n.NodeName == "" || w.members[n.member] == nil {
		status, message = metav1.ConditionUnknown, "Node does not answer"
	}

	for _, name := range []string{
		controlplanev1.MachineAPIServerPodHealthyCondition, controlplanev1.MachineControllerManagerPodHealthyCondition,
		controlplanev1.MachineSchedulerPodHealthyCondition, controlplanev1.MachineEtcdMemberHealthyCondition, controlplanev1.MachineTalosHealthyCondition,
	} {
		set(name, status, message)
	}

	// A MachineHealthCheck loses patience after six minutes.
	if n.dead && n.ill > 12 {
		set(clusterv1.MachineHealthCheckSucceededCondition, metav1.ConditionFalse, "")
		set(clusterv1.MachineOwnerRemediatedCondition, metav1.ConditionFalse, "")
	}

	return out
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
