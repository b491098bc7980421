// SPDX-License-Identifier: Apache-2.0

package model

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"path"
	"time"

	corev1 "k8s.io/api/core/v1"

	lh "github.com/maesh-dev/ichor/test/longhornsim/api/v1beta2"
)

// Pace is how fast things go.
type Pace struct {
	// RebuildBytes are copied in a second, for each copy that is made.
	RebuildBytes int64
	// DeltaPercent is how much of a volume is copied when a copy that failed is used again.
	DeltaPercent int64
	// Attach is how long attaching takes.
	Attach time.Duration
}

// Reality is what is behind the objects: machines, disks, processes, and what is wrong with them.
type Reality struct {
	Pace   Pace
	Faults Faults

	// Mounted says what is at a path of a node: its size, and whether there is anything.
	Mounted func(node, path string) (size int64, there bool)

	machines  map[string]machine
	disks     map[diskKey]disk
	processes map[string]process
	rebuilds  map[string]rebuild
	attaching map[string]time.Time
	moves     map[string]time.Time
	backoffs  map[string]backoff
	names     int
}

// backoff is until when a failed replica is not used again.
type backoff struct {
	until time.Time
	wait  time.Duration
}

type diskKey struct{ node, path string }

// machine is a node's computer.
type machine struct {
	off    bool
	bootID string
	// dead is since when it has not run, notReady since when its kubelet has said that it is not well. Zero: it is not so.
	dead, notReady time.Time
}

// disk is what is at a path.
type disk struct {
	uuid string
	// other is what others have stored there.
	other  int64
	wiped  int
	broken bool
}

// process is an engine or a replica that runs.
type process struct {
	node   string
	engine lh.DataEngine
}

// rebuild is a copy that is being made.
type rebuild struct {
	volume      string
	from        string
	total, done int64
	at          time.Time
}

// NewReality returns a world in which nothing has happened.
func NewReality(pace Pace, mounted func(node, path string) (int64, bool)) *Reality {
	return &Reality{
		Pace: pace, Mounted: mounted, Faults: NewFaults(),
		machines: map[string]machine{}, disks: map[diskKey]disk{}, processes: map[string]process{},
		rebuilds: map[string]rebuild{}, attaching: map[string]time.Time{}, moves: map[string]time.Time{},
		backoffs: map[string]backoff{},
	}
}

func (r *Reality) clone() *Reality {
	c := *r
	c.Faults = r.Faults.clone()
	c.machines, c.disks, c.processes = maps.Clone(r.machines), maps.Clone(r.disks), maps.Clone(r.processes)
	c.rebuilds, c.attaching, c.moves = maps.Clone(r.rebuilds), maps.Clone(r.attaching), maps.Clone(r.moves)
	c.backoffs = maps.Clone(r.backoffs)

	return &c
}

// changing is what a step may change, in a form that can be compared.
func (r *Reality) changing() map[string]any {
	return map[string]any{
		"machines": len(r.machines), "processes": keys(r.processes), "rebuilds": keys(r.rebuilds),
		"attaching": keys(r.attaching), "moves": keys(r.moves), "names": r.names,
	}
}

func keys[T any](all map[string]T) map[string]bool {
	set := make(map[string]bool, len(all))
	for key := range all {
		set[key] = true
	}

	return set
}

// unique returns a suffix that no other object has. The same history gives the same names.
func (r *Reality) unique(parts ...string) string {
	r.names++

	return digest(append(parts, string(rune('0'+r.names%10)), time.Duration(r.names).String())...)[:8]
}

func digest(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}

	return hex.EncodeToString(h.Sum(nil))
}

// physical returns the disk at a path of a node.
func (r *Reality) physical(node, at string) (d disk, size int64, there bool) {
	at = path.Clean(at)
	size, there = r.Mounted(node, at)
	d = r.disks[diskKey{node, at}]

	if d.uuid == "" {
		d.uuid = diskUUID(node, at, d.wiped)
	}

	return d, size, there && !d.broken
}

func diskUUID(node, at string, wiped int) string {
	h := digest("disk", node, at, string(rune('a'+wiped)))

	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:32]
}

// change changes the disk at a path.
func (r *Reality) change(node, at string, change func(*disk)) {
	key := diskKey{node, path.Clean(at)}
	d := r.disks[key]
	change(&d)
	r.disks[key] = d
}

// Fill has others use so many bytes of a disk.
func (r *Reality) Fill(node, at string, bytes int64) {
	r.change(node, at, func(d *disk) { d.other = bytes })
}

// Wipe makes the disk empty: it has another UUID, and what was on it is gone.
func (r *Reality) Wipe(node, at string) {
	r.change(node, at, func(d *disk) { d.wiped++; d.uuid = diskUUID(node, path.Clean(at), d.wiped) })
}

// Pull takes the disk out, or puts it back.
func (r *Reality) Pull(node, at string, out bool) {
	r.change(node, at, func(d *disk) { d.broken = out })
}

// Power switches a node's machine off or on.
func (r *Reality) Power(node string, on bool) {
	m := r.machines[node]
	m.off = !on
	r.machines[node] = m
}

// Crash ends every process of a node's instance manager of a data engine, as its pod does that crashes.
func (r *Reality) Crash(node string, engine lh.DataEngine) {
	for name, p := range r.processes {
		if p.node == node && p.engine == engine {
			delete(r.processes, name)
		}
	}
}

// Kill ends one process: an engine or a replica.
func (r *Reality) Kill(name string) { delete(r.processes, name) }

// syncReality follows the machines, and lets copies grow.
func (s *State) syncReality() {
	r := s.Reality

	for name := range s.Nodes {
		if _, known := s.KubeNodes[name]; !known {
			s.followMachine(name, nil)
		}
	}

	for _, kube := range sorted(s.KubeNodes) {
		s.followMachine(kube.Name, kube)
	}

	for name, copying := range r.rebuilds {
		if _, runs := r.processes[name]; !runs || s.Replicas[name] == nil {
			delete(r.rebuilds, name)

			continue
		}

		r.rebuilds[name] = s.grow(copying)
	}
}

func (s *State) followMachine(name string, kube *corev1.Node) {
	r := s.Reality
	m := r.machines[name]

	ready := corev1.ConditionUnknown
	if kube != nil {
		ready = kubeReady(kube)
	}

	switch {
	case ready == corev1.ConditionTrue:
		m.notReady = time.Time{}
	case m.notReady.IsZero():
		m.notReady = s.Now
	}

	// A kubelet that says nothing is a machine that does not run; one that is not well says so.
	if !m.off && ready != corev1.ConditionUnknown {
		m.dead = time.Time{}
	} else if m.dead.IsZero() {
		m.dead = s.Now
	}

	boot := m.bootID
	if kube != nil && kube.Status.NodeInfo.BootID != "" {
		m.bootID = kube.Status.NodeInfo.BootID
	}

	if !m.dead.IsZero() || (boot != "" && boot != m.bootID) {
		s.endProcesses(name)
	}

	r.machines[name] = m
}

// endProcesses is what a node loses when it stops. Its pods start no more, so that others take their places.
func (s *State) endProcesses(node string) {
	for name, p := range s.Reality.processes {
		if p.node == node {
			delete(s.Reality.processes, name)
		}
	}

	if s.Reality.machines[node].off || s.KubeNodes[node] == nil {
		return
	}

	for name, pod := range s.Pods {
		if pod.Spec.NodeName == node {
			delete(s.Pods, name)
		}
	}
}

// alive is whether the node's machine runs.
func (s *State) alive(node string) bool {
	m, known := s.Reality.machines[node]

	return known && m.dead.IsZero() && s.KubeNodes[node] != nil
}

// Alive is whether the node's machine runs.
func (s *State) Alive(node string) bool { return s.alive(node) }

// managerUp is whether the longhorn-manager of a node works. What it alone does stays undone otherwise.
func (s *State) managerUp(node string) bool {
	return s.alive(node) && !s.Reality.Faults.ManagerDown[node]
}

// downOrDeleted is Longhorn's own judgement of a node (datastore, IsNodeDownOrDeleted): it goes by the Ready condition.
func (s *State) downOrDeleted(node string) bool {
	n := s.Nodes[node]
	if n == nil {
		return true
	}

	ready := lh.FindCondition(n.Status.Conditions, lh.ConditionReady)

	return ready.Status == lh.ConditionFalse &&
		(ready.Reason == lh.ReasonKubernetesNodeGone || ready.Reason == lh.ReasonKubernetesNodeNotReady)
}

func (s *State) cordoned(node string) bool {
	kube := s.KubeNodes[node]

	return kube != nil && kube.Spec.Unschedulable
}

func kubeReady(kube *corev1.Node) corev1.ConditionStatus {
	for _, condition := range kube.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status
		}
	}

	return corev1.ConditionUnknown
}
