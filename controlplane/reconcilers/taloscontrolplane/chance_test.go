// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/test/talossim"
)

// happen is what may come between two things that the control plane does.
func (l *life) happen(p *process, what string, done bool) {
	if !done {
		l.steps++
	}

	if l.killAt > 0 {
		if l.steps == l.killAt && done == l.killAfter && !p.dead {
			l.killAt = -1
			l.say("    %s is killed at step %d, %s: done %t", p.name, l.steps, what, done)
			p.kill()
		}

		return
	}

	if !l.storm || l.killAt < 0 || l.inside {
		return
	}

	l.inside = true
	defer func() { l.inside = false }()

	l.draw(p, what, done)
	l.once()
}

// draw has something happen, or nothing.
func (l *life) draw(p *process, what string, done bool) {
	switch l.rng.IntN(30) {
	case 0, 1, 2:
		l.say("    %s is killed at %s, done: %t", p.name, what, done)
		p.kill()
	case 3, 4, 5:
		l.reach()
	case 6:
		l.trap()
	case 7, 8:
		l.another(p)
	case 9:
		if l.rng.IntN(3) == 0 {
			l.elsewhere(p)
		}
	case 10:
		l.backUp()
	case 11:
		if l.rng.IntN(4) == 0 {
			l.userDeletes()
		}
	case 12:
		l.core()
	}
}

// anyNode is a machine that there is, or nil.
func (l *life) anyNode() *talossim.Node {
	if len(l.nodes) == 0 {
		return nil
	}

	names := make([]string, 0, len(l.nodes))
	for name := range l.nodes {
		names = append(names, name)
	}

	slices.Sort(names)

	return l.nodes[names[l.rng.IntN(len(names))]]
}

// reach takes a node out of reach, or brings it back.
func (l *life) reach() {
	if node := l.anyNode(); node != nil {
		faults := node.Faults()
		faults.Unreachable = !faults.Unreachable
		node.SetFaults(faults)
		l.say("    a node is out of reach: %t", faults.Unreachable)
	}
}

// trap has a node lose power with the next Bootstrap, before it does anything or before anybody hears of it, or has it answer that it is not
// ready.
func (l *life) trap() {
	node := l.anyNode()
	if node == nil {
		return
	}

	switch l.rng.IntN(3) {
	case 0:
		node.CrashBefore("Bootstrap")
	case 1:
		node.CrashAfter("Bootstrap")
	default:
		faults := node.Faults()
		faults.TimeUnsynced = !faults.TimeUnsynced
		node.SetFaults(faults)
	}
}

// another has a second manager reconcile in the middle of what the first one does.
func (l *life) another(p *process) {
	if p.store != l.store {
		return
	}

	at := slices.IndexFunc(l.processes, func(other *process) bool { return other != p && !other.dead && other.store == l.store })
	if at < 0 {
		l.start()

		at = len(l.processes) - 1
	}

	l.say("    meanwhile:")
	l.processes[at].reconcile()
}

// backUp keeps what there is.
func (l *life) backUp() {
	var err error

	l.kept, err = l.store.objects(l.ctx)
	l.must(err)
}

// elsewhere restores everything in another management cluster: what is there now, or a backup that has the same Machines. The managers of the
// old one end, or end when they have done what they are doing.
func (l *life) elsewhere(p *process) {
	now, err := l.store.objects(l.ctx)
	l.must(err)

	objects := now
	if l.kept != nil && slices.Equal(machineNames(l.kept), machineNames(now)) && l.rng.IntN(2) == 0 {
		objects = l.kept
	}

	l.store, l.kept = newStore(l.clock, &l.uids), nil
	l.must(l.store.restore(l.ctx, objects))

	goesOn := l.rng.IntN(2) == 0
	l.say("    everything is restored elsewhere without status, and %s goes on: %t", p.name, goesOn)

	for _, other := range l.processes {
		if other != p || !goesOn {
			other.kill()
		}
	}

	l.start()
}

func machineNames(objects []client.Object) []string {
	var names []string

	for _, object := range objects {
		if machine, ok := object.(*clusterv1.Machine); ok && machine.DeletionTimestamp.IsZero() {
			names = append(names, machine.Name)
		}
	}

	slices.Sort(names)

	return names
}

// userDeletes is kubectl delete machine.
func (l *life) userDeletes() {
	machines := l.machines()
	if len(machines) == 0 {
		return
	}

	machine := &machines[l.rng.IntN(len(machines))]
	l.say("    a user deletes a Machine")
	l.must(client.IgnoreNotFound(l.store.Delete(l.ctx, machine)))
}

// calm ends what people and networks can end.
func (l *life) calm() {
	l.say("everything is mended that can be")

	l.storm = false

	for _, node := range l.nodes {
		node.SetFaults(talossim.Faults{})
		l.must(node.PowerOn(l.ctx))
	}

	// One manager is left, as with leader election.
	for _, p := range l.processes[min(1, len(l.processes)):] {
		p.kill()
	}
}
