// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/maesh-dev/ichor/internal/etcd"
	"github.com/maesh-dev/ichor/internal/talos"
)

// memory is what the process remembers of control planes. It may be lost at any time: it says for how long something has lasted, and saves
// calls.
type memory struct {
	mu     sync.Mutex
	planes map[types.NamespacedName]*plane
}

func newMemory() *memory { return &memory{planes: map[types.NamespacedName]*plane{}} }

// plane is what is remembered of one control plane. One reconcile at a time uses it.
type plane struct {
	uid types.UID

	// cluster is the key of its connections.
	cluster types.NamespacedName

	// mute says since when nobody can ask nodes; zero when somebody can.
	mute time.Time

	// views are what nodes said, by the UID of their Machine.
	views map[types.UID]view

	// orphans says since when etcd members have been seen that no Machine has.
	orphans map[etcd.MemberID]time.Time

	// leaveFailed are the Machines whose member was asked to leave and did not; forwards are how often one was asked to give up
	// leadership.
	leaveFailed map[types.UID]bool
	forwards    map[types.UID]int

	// bootstraps are when Machines were asked to bootstrap etcd and may have begun.
	bootstraps map[types.UID]time.Time

	// settled is true when there was nothing to do the last time.
	settled bool
}

// view is what a node said.
type view struct {
	node talos.Node

	// of is what the node was asked by: other addresses are another question.
	of string

	// at is when it was asked, heard when it last answered, or was first asked here.
	at, heard time.Time
}

// of returns what is remembered of a control plane. Another of its name is not it.
func (m *memory) of(key types.NamespacedName, uid types.UID) *plane {
	m.mu.Lock()
	defer m.mu.Unlock()

	if p := m.planes[key]; p != nil && p.uid == uid {
		return p
	}

	p := &plane{
		uid: uid, views: map[types.UID]view{}, orphans: map[etcd.MemberID]time.Time{},
		leaveFailed: map[types.UID]bool{}, forwards: map[types.UID]int{}, bootstraps: map[types.UID]time.Time{},
	}
	m.planes[key] = p

	return p
}

// forget forgets a control plane, and returns the key of its connections.
func (m *memory) forget(key types.NamespacedName) types.NamespacedName {
	m.mu.Lock()
	defer m.mu.Unlock()

	p := m.planes[key]
	delete(m.planes, key)

	if p == nil {
		return types.NamespacedName{}
	}

	return p.cluster
}

// keep forgets the Machines that are gone.
func (p *plane) keep(there map[types.UID]bool) {
	for uid := range p.views {
		if !there[uid] {
			delete(p.views, uid)
		}
	}

	for uid := range p.leaveFailed {
		if !there[uid] {
			delete(p.leaveFailed, uid)
		}
	}

	for uid := range p.forwards {
		if !there[uid] {
			delete(p.forwards, uid)
		}
	}

	for uid := range p.bootstraps {
		if !there[uid] {
			delete(p.bootstraps, uid)
		}
	}
}

// note notes which etcd members are on no Machine, and forgets those that no longer are.
func (p *plane) note(orphans []etcd.MemberID, now time.Time) {
	seen := make(map[etcd.MemberID]time.Time, len(orphans))

	for _, id := range orphans {
		since, known := p.orphans[id]
		if !known {
			since = now
		}

		seen[id] = since
	}

	p.orphans = seen
}

// forget drops what is remembered of a control plane that is gone, and its connections.
func (r *Reconciler) forget(key types.NamespacedName) {
	if cluster := r.memory.forget(key); cluster.Name != "" {
		r.Talos.Forget(cluster)
	}
}
