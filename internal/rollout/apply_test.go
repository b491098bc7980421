// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"maps"
	"slices"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/etcd"
	"github.com/maesh-dev/ichor/internal/rollout"
)

// apply carries an action out in the world, and says what is wrong with it. Half is for a controller that is killed in the middle of what
// takes two writes.
func (w *world) apply(action rollout.Action, half bool) {
	had := w.quorum(0)

	switch a := action.(type) {
	case rollout.Rest, rollout.Wait:
	case rollout.AdoptMachine:
		w.machines[a.Machine].Ours, w.machines[a.Machine].Orphan = true, false
	case rollout.AddHook:
		w.machines[a.Machine].Hook = true
	case rollout.RecordMember:
		n := w.machines[a.Machine]
		n.RecordedMembers = append(n.RecordedMembers, a.Member)
	case rollout.RecordBootstrap:
		w.bundle = rollout.BootstrapMark{Set: true, Record: a.Record}
		if !half {
			w.own = w.bundle
		}
	case rollout.Bootstrap:
		w.bootstrap(a.Machine, half)
	case rollout.CreateMachine:
		w.create(a)
	case rollout.DeleteMachine:
		w.delete(a.Machine)
	case rollout.RecordRemediation:
		record := a.Record
		w.remediation = &record
	case rollout.ClearRemediation:
		w.remediation = nil
	case rollout.ForwardLeadership:
		w.forward(a)
	case rollout.LeaveEtcd:
		w.leave(a)
	case rollout.RemoveEtcdMember:
		w.remove(a)
	case rollout.ReleaseHook:
		w.release(a.Machine)
	case rollout.ReleaseHooks:
		w.whole()

		for _, name := range a.Machines {
			w.machines[name].Hook = false
		}
	case rollout.DeleteMachines:
		w.whole()

		for _, name := range a.Machines {
			w.userDeletes(w.machines[name])
		}
	case rollout.ReleaseControlPlane:
		w.whole()

		if len(w.machines) > 0 {
			w.against("the control plane is let go with Machines left")
		}

		w.gone = true
	}

	if had && !w.quorum(0) && !w.deleting {
		w.against("%s costs the quorum", rollout.Name(action))
	}

	w.elect()
}

func (w *world) whole() {
	if !w.deleting || (!w.clusterGone && len(w.workers) > 0) {
		w.against("the whole control plane goes too early")
	}
}

// bootstrap makes a cluster of one member. half: the controller is killed before the call.
func (w *world) bootstrap(machine string, half bool) {
	if w.own.Record.Machine != machine || w.bundle.Record.Machine != machine {
		w.against("etcd is bootstrapped on %s without a record in both places", machine)
	}

	for _, n := range w.machines {
		if n.data {
			w.against("etcd is bootstrapped on %s, and %s has data", machine, n.Name)
		}
	}

	if half {
		return
	}

	if w.bootstraps++; w.bootstraps > 1 {
		w.against("etcd is bootstrapped a second time")
	}

	n := w.machines[machine]
	n.member, n.data = w.add(n), true
	w.members[n.member].learner, w.members[n.member].started = false, true
}

func (w *world) create(a rollout.CreateMachine) {
	live, leaving := 0, 0

	for _, n := range w.machines {
		if n.stage == 0 {
			live++
		} else {
			leaving++
		}
	}

	if live > int(*w.spec.Replicas) {
		w.against("a machine is made beside %d, and replicas is %d", live, *w.spec.Replicas)
	}

	if leaving > 0 && live > 0 {
		w.against("a machine is made while another goes")
	}

	w.made++
	name := fmt.Sprintf("cp%02d", w.made)
	w.machines[name] = &node{
		Machine: rollout.Machine{
			Name: name, Created: w.now, Ours: true, Hook: true, FailureDomain: a.FailureDomain, RemediationFor: a.Remediation,
		},
		version: w.spec.Version, template: w.template, address: fmt.Sprintf("10.0.0.%d", w.made), reachable: true, coming: 2,
	}
}

func (w *world) delete(machine string) {
	n := w.machines[machine]

	for _, other := range w.machines {
		// One that is dead may go to let another one go that waits for it.
		if other.stage > 0 && (n.up || other.stage < len(stages)-1 || !other.Hook) {
			w.against("%s is deleted while %s goes", machine, other.Name)
		}
	}

	if !n.Hook {
		w.against("%s is deleted without our hook", machine)
	}

	if !w.quorum(n.member) && w.initialized {
		w.against("%s is deleted, and the others are no quorum", machine)
	}

	w.userDeletes(n)
}

// forward gives leadership to the first other voter that is up, as Talos does: it does not ask for whom.
func (w *world) forward(a rollout.ForwardLeadership) {
	if a.From != w.leader {
		w.against("leadership is forwarded by %s, which does not lead", a.Machine)
	}

	if heir := w.members[a.To]; heir == nil || heir.learner || w.machines[heir.host] == nil || !w.machines[heir.host].up {
		w.against("leadership is meant for a member that cannot take it")
	}

	for _, id := range slices.Sorted(maps.Keys(w.members)) {
		if m := w.members[id]; id != a.From && !m.learner && w.machines[m.host] != nil && w.machines[m.host].up {
			w.leader = id

			return
		}
	}
}

func (w *world) leave(a rollout.LeaveEtcd) {
	n := w.machines[a.Machine]
	if n.stage != len(stages)-1 {
		w.against("the member of %s leaves before it is drained", a.Machine)
	}

	if w.leader == a.Member {
		w.against("the leader leaves")
	}

	if n.leaveFails {
		n.LeaveFailed = true

		return
	}

	delete(w.members, a.Member)

	n.member, n.data = 0, false
	n.member = noMember // Talos does not join again before the next boot
}

// noMember is on a node that has left etcd.
const noMember = etcd.MemberID(1 << 60)

func (w *world) remove(a rollout.RemoveEtcdMember) {
	through := w.machines[a.Through]
	if through == nil || !through.up || !through.reachable || w.members[through.member] == nil || through.member == a.Member {
		w.against("member %s is removed through %s, which cannot do it", a.Member, a.Through)
	}

	m := w.members[a.Member]
	if m == nil {
		w.against("member %s is removed and is none", a.Member)

		return
	}

	if n := w.machines[m.host]; n != nil && n.stage != len(stages)-1 {
		w.against("the member of %s is removed, and the Machine stays", m.host)
	}

	delete(w.members, a.Member)
}

func (w *world) release(machine string) {
	n := w.machines[machine]
	if n.stage != len(stages)-1 {
		w.against("%s is let go before its turn", machine)
	}

	if w.members[n.member] != nil && w.initialized {
		w.against("%s is let go as a member of etcd", machine)
	}

	if w.initialized && !w.quorum(0) {
		w.against("%s is let go without a quorum", machine)
	}

	for _, other := range w.machines {
		if other != n && other.stage > 0 && !other.Hook {
			w.against("%s is let go while %s goes", machine, other.Name)
		}
	}

	n.Hook = false
}

// asked is true when a decision waits for a person.
func asked(d rollout.Decision) bool {
	return slices.Contains([]string{
		controlplanev1.PlanBootstrapMachineGoneReason, controlplanev1.PlanBootstrapRecordInvalidReason, controlplanev1.PlanOnDeleteReason,
		controlplanev1.PlanInPlaceReason, controlplanev1.PlanInPlaceImpossibleReason, controlplanev1.PlanCannotBeRemediatedReason,
	}, d.Reason)
}
