// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"github.com/maesh-dev/ichor/internal/etcd"
	"github.com/maesh-dev/ichor/internal/rollout"
)

// apply carries an action out in the world, and says what is wrong with it. Half is for a controller that is killed in the middle of what
// takes two writes.
func (w *world) apply(action rollout.Action, half bool) {
	had := w.quorum(0)

	switch a := action.(type) {
	case rollout.Rest, rollout.Wait:
		return
	case rollout.AdoptMachine:
		n := w.node(a.Machine)
		n.Ours, n.Orphan = true, false
	case rollout.AddHook:
		if n := w.node(a.Machine); n.released {
			w.against("%s gets the hook back that was just taken off", a.Machine)
		} else {
			n.Hook = true
		}
	case rollout.RecordAddress:
		if n := w.node(a.Machine); !n.provisioned || n.AddressRecorded {
			w.against("an address of %s is noted down, which has none or has it noted down", a.Machine)
		} else {
			n.AddressRecorded = true
		}
	case rollout.RecordMember:
		n := w.node(a.Machine)
		n.RecordedMembers = append(n.RecordedMembers, a.Member)
	case rollout.RecordBootstrap:
		w.bundle = rollout.BootstrapMark{Set: true, Record: a.Record}
		if !half {
			w.own = w.bundle
		}
	case rollout.RecordServing:
		w.recordServing()
	case rollout.Bootstrap:
		w.bootstrap(a.Machine, half)
	case rollout.CreateMachine:
		w.create(a)
	case rollout.DeleteMachine:
		w.delete(a.Machine)
	case rollout.RecordRemediation:
		w.remediate(a.Record)
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
			w.node(name).Hook = false
		}
	case rollout.DeleteMachines:
		w.whole()

		for _, name := range a.Machines {
			w.userDeletes(w.node(name))
		}
	case rollout.ReleaseControlPlane:
		w.whole()

		if len(w.nodes) > 0 {
			w.against("the control plane is let go with Machines left")
		}

		w.gone = true
	}

	if had && !w.quorum(0) && !w.deleting {
		w.against("%s costs the quorum", rollout.Name(action))
	}

	w.elect()

	for _, n := range w.nodes {
		n.earlier = nil // who acts observes after that
	}
}

func (w *world) whole() {
	if !w.deleting || (!w.clusterGone && len(w.workers) > 0) {
		w.against("the whole control plane goes too early")
	}
}

// bootstrap has a node start a cluster of one member, which it has some ticks later, or never when what it does is lost. half: the controller
// is killed before the call.
func (w *world) bootstrap(machine string, half bool) {
	if w.own.Record.Machine != machine || w.bundle.Record.Machine != machine {
		w.against("etcd is bootstrapped on %s without a record in both places", machine)
	}

	for _, n := range w.nodes {
		if n.data {
			w.against("etcd is bootstrapped on %s, and %s has data", machine, n.Name)
		}
	}

	if half {
		return
	}

	n := w.node(machine)

	if called := n.BootstrapCalled; !called.IsZero() && w.now.Before(called.Add(rollout.BootstrapWait)) {
		w.against("%s is asked to bootstrap etcd at %s, and again at %s", machine, called, w.now)
	}

	n.BootstrapCalled, n.starting = w.now, 2

	switch {
	case w.rng != nil && w.rng.IntN(8) == 0, n.startFails:
		n.starting = 0
	case w.rng != nil:
		n.starting = 1 + w.rng.IntN(6)
	}
}

// start has a node's etcd come up that was bootstrapped.
func (w *world) start(n *node) {
	if n.starting--; n.starting > 0 {
		return
	}

	if w.bootstraps++; w.bootstraps > 1 {
		w.against("etcd is bootstrapped a second time")
	}

	n.member, n.data, n.earlier = w.add(n), true, nil // who bootstraps looks first

	m := w.memberBy(n.member)
	m.learner, m.started = false, true
}

func (w *world) create(a rollout.CreateMachine) {
	live, leaving := 0, 0

	for _, n := range w.here() {
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

	if w.busy(nil) {
		w.against("a machine is made during an operation in place")
	}

	// A learner that joins at this moment is soon through with it. A voter that is down is not.
	if up, all := w.voters(0); up < all && len(w.nodes) > 0 {
		w.against("a machine is made, and %d of %d voters are down: etcd may not take it in", all-up, all)
	}

	if live+leaving == 0 && w.elsewhere() && !w.initialized && !w.own.Record.Done && !w.bundle.Record.Done {
		w.against("a first machine is made beside a control plane of this cluster that lives")
	}

	n := w.machine()
	n.FailureDomain, n.RemediationFor = a.FailureDomain, a.Remediation

	if w.rng != nil && len(w.freed) > 0 && w.rng.IntN(2) == 0 {
		n.address = w.freed[len(w.freed)-1]
		w.freed = w.freed[:len(w.freed)-1]
	}
}

// busy is true while an operation in place runs on a machine beside one.
func (w *world) busy(beside *node) bool {
	for _, n := range w.nodes {
		if n != beside && n.Operation != "" {
			return true
		}
	}

	return false
}

func (w *world) delete(machine string) {
	n := w.node(machine)

	for _, other := range w.nodes {
		// One that is dead may go to let another one go that waits for it.
		if other.stage > 0 && (n.up || other.stage < atHook || !other.Hook) {
			w.against("%s is deleted while %s goes", machine, other.Name)
		}
	}

	if !n.Hook {
		w.against("%s is deleted without our hook", machine)
	}

	if !w.quorum(n.member) && w.initialized {
		w.against("%s is deleted, and the others are no quorum", machine)
	}

	if w.busy(nil) {
		w.against("%s is deleted during an operation in place", machine)
	}

	w.userDeletes(n)
}

// remediate notes down which machine is replaced. One at a time is, unless it is what keeps the replacement of the last from joining.
func (w *world) remediate(record rollout.RemediationRecord) {
	if last := w.remediation; last != nil && last.Machine != record.Machine && w.node(last.Machine) == nil {
		replaced := false
		for _, n := range w.nodes {
			replaced = replaced || (n.RemediationFor != nil && n.RemediationFor.Machine == last.Machine)
		}

		m := w.memberBy(w.node(record.Machine).member)
		if !replaced && (m == nil || w.runs(m)) {
			w.against("%s is replaced before there is a machine in place of %s", record.Machine, last.Machine)
		}

		if !replaced && record.RetryCount < last.RetryCount {
			w.against("%d retries are forgotten", last.RetryCount)
		}
	}

	w.remediation = &record
}

// forward gives leadership to the first other voter that is up, as Talos does: it does not ask for whom.
func (w *world) forward(a rollout.ForwardLeadership) {
	if a.From != w.leader {
		w.against("leadership is forwarded by %s, which does not lead", a.Machine)
	}

	if heir := w.memberBy(a.To); heir == nil || heir.learner || !w.runs(heir) {
		w.against("leadership is meant for a member that cannot take it")
	}

	if n := w.node(a.Machine); n.forwardFails {
		n.ForwardFailed = true

		return
	}

	for _, m := range w.members {
		if m.id != a.From && !m.learner && w.runs(m) {
			w.leader = m.id

			return
		}
	}
}

func (w *world) leave(a rollout.LeaveEtcd) {
	n := w.node(a.Machine)
	if n.stage != atHook {
		w.against("the member of %s leaves before it is drained", a.Machine)
	}

	if w.leader == a.Member && !n.ForwardFailed && n.earlier == nil {
		w.against("the leader leaves")
	}

	if w.busy(n) {
		w.against("the member of %s leaves during an operation in place on another machine", a.Machine)
	}

	if n.leaveFails {
		n.LeaveFailed = true

		return
	}

	w.drop(a.Member)

	n.data = false
	n.member = noMember // Talos does not join again before the next boot
}

// noMember is on a node that has left etcd.
const noMember = etcd.MemberID(1 << 60)

func (w *world) remove(a rollout.RemoveEtcdMember) {
	if through := w.node(a.Through); through == nil || !through.up || !through.reachable || w.memberBy(through.member) == nil || through.member == a.Member {
		w.against("member %s is removed through %s, which cannot do it", a.Member, a.Through)
	}

	m := w.memberBy(a.Member)
	if m == nil {
		w.against("member %s is removed and is none", a.Member)

		return
	}

	if a.Machine == "" {
		w.sparing(a.Member)
	}

	n := w.node(m.host)

	switch {
	case n == nil || n.stage == atHook:
	case !n.foreign:
		w.against("the member of %s is removed, and the Machine stays", m.host)
	case w.noted:
		w.against("the member of %s is removed, whose Machine has not been brought", m.host)
	}

	if w.busy(n) {
		w.against("member %s is removed during an operation in place on another machine", a.Member)
	}

	w.drop(a.Member)
}

func (w *world) release(machine string) {
	n := w.node(machine)
	if n.stage != atHook {
		w.against("%s is let go before its turn", machine)
	}

	// One that is just joining cannot be told from one that never will. It has no vote yet.
	m := w.memberBy(n.member)
	if m != nil && !m.learner && w.initialized {
		w.against("%s is let go as a voting member of etcd", machine)
	}

	if w.initialized && !w.quorum(0) {
		w.against("%s is let go without a quorum", machine)
	}

	for _, other := range w.nodes {
		if other != n && other.stage > 0 && !other.Hook {
			w.against("%s is let go while %s goes", machine, other.Name)
		}
	}

	n.Hook, n.released = false, m == nil

	if w.rng != nil {
		n.lingers = w.rng.IntN(4)
	}
}
