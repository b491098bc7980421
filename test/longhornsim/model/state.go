// SPDX-License-Identifier: Apache-2.0

package model

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	lh "github.com/maesh-dev/ichor/test/longhornsim/api/v1beta2"
)

// State is everything that Longhorn reads and writes, by name.
type State struct {
	// Now is the time of the step.
	Now time.Time
	// Namespace that Longhorn is installed in.
	Namespace string

	// Settings that were changed from their defaults.
	Settings map[string]string

	BackingImages     map[string]*lh.BackingImage
	Engines           map[string]*lh.Engine
	EngineImages      map[string]*lh.EngineImage
	InstanceManagers  map[string]*lh.InstanceManager
	Nodes             map[string]*lh.Node
	Replicas          map[string]*lh.Replica
	Shards            map[string]*lh.Shard
	ShardGroups       map[string]*lh.ShardGroup
	ShareManagers     map[string]*lh.ShareManager
	Volumes           map[string]*lh.Volume
	VolumeAttachments map[string]*lh.VolumeAttachment

	// Pods and Budgets are Longhorn's own.
	Pods    map[string]*corev1.Pod
	Budgets map[string]*policyv1.PodDisruptionBudget

	// KubeNodes are only read.
	KubeNodes map[string]*corev1.Node
	// Claims say who uses a volume; they are only read.
	Claims map[string]lh.KubernetesStatus

	// Reality is what no object says. It is kept from step to step.
	Reality *Reality

	// Wake is when something will happen without anybody doing anything. Zero: never.
	Wake time.Time
}

// NewState returns an empty state.
func NewState(namespace string, reality *Reality, now time.Time) *State {
	return &State{
		Now: now, Namespace: namespace, Reality: reality,
		Settings:      map[string]string{},
		BackingImages: map[string]*lh.BackingImage{}, Engines: map[string]*lh.Engine{},
		EngineImages: map[string]*lh.EngineImage{}, InstanceManagers: map[string]*lh.InstanceManager{},
		Nodes: map[string]*lh.Node{}, Replicas: map[string]*lh.Replica{},
		Shards: map[string]*lh.Shard{}, ShardGroups: map[string]*lh.ShardGroup{},
		ShareManagers: map[string]*lh.ShareManager{}, Volumes: map[string]*lh.Volume{},
		VolumeAttachments: map[string]*lh.VolumeAttachment{},
		Pods:              map[string]*corev1.Pod{}, Budgets: map[string]*policyv1.PodDisruptionBudget{},
		KubeNodes: map[string]*corev1.Node{}, Claims: map[string]lh.KubernetesStatus{},
	}
}

// maxSteps bounds Settle. A step moves every object on by one, so that the longest chain of consequences is far shorter; more
// is a rule that undoes another.
const maxSteps = 200

// Settle steps until nothing changes, and says whether it got there. Wake is then when to come back.
func (s *State) Settle() bool {
	for range maxSteps {
		before := s.clone()

		s.Wake = time.Time{}
		s.step()

		if s.same(before) {
			return true
		}
	}

	return false
}

// step lets each of Longhorn's controllers look once.
func (s *State) step() {
	s.syncReality()
	s.syncNodes()
	s.syncInstanceManagers()
	s.syncEngineImages()
	s.syncEvictionRequests()
	s.syncShareManagers()
	s.syncEvictionTickets()
	s.syncRebuildingTickets()
	s.syncAttachments()

	for _, v := range sorted(s.Volumes) {
		s.syncVolume(v)
	}

	s.syncInstances()
	s.syncBackingImages()
	s.syncShards()
	s.syncBudgets()
}

// wakeAt notes that something happens at a time to come.
func (s *State) wakeAt(t time.Time) {
	if t.After(s.Now) && (s.Wake.IsZero() || t.Before(s.Wake)) {
		s.Wake = t
	}
}

// stamp is the time of the step as Longhorn writes it.
func (s *State) stamp() string { return s.Now.UTC().Format(time.RFC3339) }

// since is how long ago a time in Longhorn's form was.
func (s *State) since(stamp string) time.Duration {
	t, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		return 0
	}

	return s.Now.Sub(t)
}

// replicasOf returns a volume's replicas in the order of their names.
func (s *State) replicasOf(volume string) []*lh.Replica {
	var replicas []*lh.Replica

	for _, r := range sorted(s.Replicas) {
		if r.Spec.VolumeName == volume {
			replicas = append(replicas, r)
		}
	}

	return replicas
}

// engineOf returns a volume's active engine, or nil.
func (s *State) engineOf(volume string) *lh.Engine {
	for _, e := range sorted(s.Engines) {
		if e.Spec.VolumeName == volume && e.Spec.Active {
			return e
		}
	}

	return nil
}

// instanceManager returns the instance manager of a node and a data engine, or nil.
func (s *State) instanceManager(node string, engine lh.DataEngine) *lh.InstanceManager {
	return s.InstanceManagers[InstanceManagerName(node, engine)]
}

// disk returns the node and the name of the disk that has a UUID, or nil.
func (s *State) disk(uuid string) (node *lh.Node, name string) {
	if uuid == "" {
		return nil, ""
	}

	for _, n := range sorted(s.Nodes) {
		for _, name := range slices.Sorted(maps.Keys(n.Status.DiskStatus)) {
			if n.Status.DiskStatus[name].DiskUUID == uuid {
				return n, name
			}
		}
	}

	return nil, ""
}

// diskReady is whether the disk of a UUID works.
func (s *State) diskReady(uuid string) bool {
	node, name := s.disk(uuid)

	return node != nil && isTrue(node.Status.DiskStatus[name].Conditions, lh.ConditionReady)
}

func isTrue(conditions []lh.Condition, conditionType string) bool {
	return lh.FindCondition(conditions, conditionType).Status == lh.ConditionTrue
}

func sorted[T any](all map[string]T) []T {
	values := make([]T, 0, len(all))
	for _, key := range slices.Sorted(maps.Keys(all)) {
		values = append(values, all[key])
	}

	return values
}

// same compares what Settle may change.
func (s *State) same(o *State) bool {
	return equality.Semantic.DeepEqual(s.BackingImages, o.BackingImages) &&
		equality.Semantic.DeepEqual(s.Engines, o.Engines) &&
		equality.Semantic.DeepEqual(s.EngineImages, o.EngineImages) &&
		equality.Semantic.DeepEqual(s.InstanceManagers, o.InstanceManagers) &&
		equality.Semantic.DeepEqual(s.Nodes, o.Nodes) &&
		equality.Semantic.DeepEqual(s.Replicas, o.Replicas) &&
		equality.Semantic.DeepEqual(s.Shards, o.Shards) &&
		equality.Semantic.DeepEqual(s.ShardGroups, o.ShardGroups) &&
		equality.Semantic.DeepEqual(s.ShareManagers, o.ShareManagers) &&
		equality.Semantic.DeepEqual(s.Volumes, o.Volumes) &&
		equality.Semantic.DeepEqual(s.VolumeAttachments, o.VolumeAttachments) &&
		equality.Semantic.DeepEqual(s.Pods, o.Pods) &&
		equality.Semantic.DeepEqual(s.Budgets, o.Budgets) &&
		equality.Semantic.DeepEqual(s.Reality.changing(), o.Reality.changing())
}

func (s *State) clone() *State {
	c := *s
	c.BackingImages, c.Engines, c.EngineImages = copied(s.BackingImages), copied(s.Engines), copied(s.EngineImages)
	c.InstanceManagers, c.Nodes, c.Replicas = copied(s.InstanceManagers), copied(s.Nodes), copied(s.Replicas)
	c.Shards, c.ShardGroups, c.ShareManagers = copied(s.Shards), copied(s.ShardGroups), copied(s.ShareManagers)
	c.Volumes, c.VolumeAttachments = copied(s.Volumes), copied(s.VolumeAttachments)
	c.Pods, c.Budgets = copied(s.Pods), copied(s.Budgets)
	c.Reality = s.Reality.clone()

	return &c
}

// Clone returns a copy whose objects are its own.
func (s *State) Clone() *State { return s.clone() }

func copied[T interface{ DeepCopy() T }](all map[string]T) map[string]T {
	copies := make(map[string]T, len(all))
	for key, value := range all {
		copies[key] = value.DeepCopy()
	}

	return copies
}

func sortedKeys[T any](all map[string]T) []string { return slices.Sorted(maps.Keys(all)) }
