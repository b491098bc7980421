// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"slices"

	"github.com/maesh-dev/ichor/internal/etcd"
	"github.com/maesh-dev/ichor/internal/rollout"
)

// A foreign control plane is one of this cluster whose Machines are not here: another management cluster has them, or none has any more. Its
// nodes are of the world as all others, but for their Machines, which nobody sees before they are brought.

// foreignControlPlane begins the world with one. So does, sometimes, a machine that was made here before there were secrets to ask anybody by.
func (w *world) foreignControlPlane() {
	members := []int{1, 3, 3}[w.rng.IntN(3)]

	// A node of here that was let go before anybody could tell that it joins takes a vote with it, which a single member cannot lose.
	w.discovers, w.bootstraps = members > 1 && w.rng.IntN(2) == 0, 1

	for range members {
		n := w.machine()
		n.foreign, n.up, n.provisioned, n.joined, n.data, n.coming = true, true, true, true, true, 0
		n.member = w.add(n)

		m := w.memberBy(n.member)
		m.learner, m.started = false, true
	}

	if w.rng.IntN(3) == 0 {
		w.machine()
	}

	w.elect()
}

// machine is a new one in the world, as one that is made here.
func (w *world) machine() *node {
	w.made++

	n := &node{
		Machine: rollout.Machine{Name: fmt.Sprintf("cp%02d", w.made), Created: w.now, Ours: true, Hook: true},
		version: w.spec.Version, template: w.template, address: fmt.Sprintf("10.0.0.%d", w.made), reachable: true, coming: 2,
	}
	w.nodes = append(w.nodes, n)

	return n
}

// here are the nodes whose Machines are here.
func (w *world) here() []*node {
	return slices.DeleteFunc(slices.Clone(w.nodes), func(n *node) bool { return n.foreign })
}

// elsewhere is true as long as a control plane of this cluster lives whose Machines are not here.
func (w *world) elsewhere() bool {
	return slices.ContainsFunc(w.nodes, func(n *node) bool { return n.foreign })
}

// serves is true when an API server of the cluster answers whoever asks at the endpoint: that of the foreign control plane, also when its Machines
// have just been brought, and nobody here has heard of them.
func (w *world) serves() bool {
	return !w.outOfReach && w.quorum(0) && slices.ContainsFunc(w.nodes, func(n *node) bool { return n.joined && n.up })
}

// recordServing notes down that it does.
func (w *world) recordServing() {
	if !w.serves() {
		w.against("it is noted down that an API server answers, and none does")
	}

	w.noted = true
}

// bring has the Machines of the foreign control plane here, as a backup does: without status, and without the owner that they had. Some of them may be
// left out for now.
func (w *world) bring(some bool) {
	for _, n := range w.nodes {
		if n.foreign && (!some || w.rng.IntN(2) == 0) {
			n.foreign, n.Ours, n.Orphan, n.forgotten = false, false, true, w.rng.IntN(5)
		}
	}
}

// lose has nothing left of it. That does not happen once a machine of here has joined its etcd: it is this control plane's then, and what is lost
// with it is for a backup to bring back.
func (w *world) lose() bool {
	if w.initialized || w.own.Record.Done || w.bundle.Record.Done || slices.ContainsFunc(w.here(), func(n *node) bool { return n.data }) {
		return false
	}

	w.nodes, w.members, w.list, w.leader, w.bootstraps = w.here(), nil, nil, 0, 0

	return true
}

// foreignEvent is something that happens to a foreign control plane. Nobody who has never heard of it can know of one that is out of reach, so it is
// only then.
func (w *world) foreignEvent(h *history) {
	switch w.rng.IntN(5) {
	case 0, 1:
		w.outOfReach = !w.outOfReach && w.noted
		h.add("the foreign control plane is out of reach: %t", w.outOfReach)
	case 2:
		some := w.rng.IntN(2) == 0
		h.add("the Machines of the foreign control plane are brought: %s", map[bool]string{true: "some of them", false: "all"}[some])
		w.bring(some)
	case 3:
		if n := w.nodes[w.rng.IntN(len(w.nodes))]; n.foreign && n.up && w.spare(n) {
			h.add("%s dies, where nobody sees it", n.Name)
			w.kill(n)
		}
	default:
		if w.lose() {
			h.add("the foreign control plane is lost, and a user says so")

			w.noted = false
		}
	}
}

// foreignEnds brings a foreign control plane, or has it gone for good, and a user says that nothing of it is elsewhere any more.
func (w *world) foreignEnds(h *history) {
	if w.elsewhere() && (w.rng.IntN(2) == 0 || !w.lose()) {
		w.bring(false)
	}

	h.add("nothing is elsewhere any more")

	w.outOfReach, w.noted = false, false
}

// sparing looks at who has said what when a member is removed that is on no Machine: beside it, those that answer must be a quorum of all that
// there are, since nobody knows whether it is well.
func (w *world) sparing(orphan etcd.MemberID) {
	voters, answer := map[etcd.MemberID]bool{}, 0

	for i := range w.shown {
		for _, m := range w.shown[i].Etcd.Members {
			voters[m.ID] = voters[m.ID] || !m.Learner
		}
	}

	all := 0

	for _, votes := range voters {
		if votes {
			all++
		}
	}

	for i := range w.shown {
		if self := w.shown[i].Etcd.Self; w.shown[i].Etcd.Answered && self != orphan && voters[self] && len(w.shown[i].Etcd.Errors) == 0 {
			answer++
		}
	}

	if answer < etcd.Quorum(all) {
		w.against("member %s is removed, which is on no Machine, and %d of %d voters answer beside it", orphan, answer, all)
	}
}
