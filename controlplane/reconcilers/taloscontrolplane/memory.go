// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/maesh-dev/ichor/internal/etcd"
	"github.com/maesh-dev/ichor/internal/secrets"
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

	// applied says what was applied to the objects of a Machine, by its UID and their kind, and how each was then: it is not applied again as
	// long as both are the same.
	applied map[types.UID]map[schema.GroupKind]string

	// opened is the cluster's bundle, and the Secret that it was decoded from. The connections to the nodes hold it, too.
	opened       *secrets.Bundle
	openedSecret types.UID
	openedAt     string

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
		applied: map[types.UID]map[schema.GroupKind]string{},
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
	forgetOthers(p.views, there)
	forgetOthers(p.leaveFailed, there)
	forgetOthers(p.forwards, there)
	forgetOthers(p.bootstraps, there)
	forgetOthers(p.applied, there)
}

func forgetOthers[V any](known map[types.UID]V, there map[types.UID]bool) {
	maps.DeleteFunc(known, func(uid types.UID, _ V) bool { return !there[uid] })
}

// remember notes what was applied to an object of a Machine, and how the object is after that.
func (p *plane) remember(machine types.UID, wanted *unstructured.Unstructured, state string) {
	if p.applied[machine] == nil {
		p.applied[machine] = map[schema.GroupKind]string{}
	}

	p.applied[machine][wanted.GroupVersionKind().GroupKind()] = digest(wanted.Object) + state
}

// bundle decodes the cluster's bundle, once for each version of its Secret.
func (p *plane) bundle(secret *corev1.Secret, read func(*corev1.Secret) (*secrets.Bundle, error)) (*secrets.Bundle, error) {
	if p.opened != nil && p.openedSecret == secret.UID && p.openedAt == secret.ResourceVersion {
		return p.opened, nil
	}

	opened, err := read(secret)
	if err != nil {
		return nil, err
	}

	p.opened, p.openedSecret, p.openedAt = opened, secret.UID, secret.ResourceVersion

	return opened, nil
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
