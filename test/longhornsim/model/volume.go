// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	lh "github.com/maesh-dev/ichor/test/longhornsim/api/v1beta2"
)

// DefaultImage is the image of the engine.
const DefaultImage = "longhornio/longhorn-engine:v1.12.1"

// syncVolume takes a volume one step further. Source: controller/volume_controller.go, syncVolume.
func (s *State) syncVolume(v *lh.Volume) {
	v.Status.OwnerID = s.owner(v)
	v.Status.KubernetesStatus = s.Claims[v.Name]

	if !v.DeletionTimestamp.IsZero() {
		s.removeVolume(v)

		return
	}

	s.ensureAttachment(v)

	if sharded(v) {
		s.syncShardedVolume(v)

		return
	}

	e := s.engineOf(v.Name)
	if e == nil {
		e = s.newVolume(v)
	}

	s.scheduleReplicas(v)
	s.syncAttached(v, e)
	s.salvage(v, e)
	s.syncState(v, e)
	s.cleanUp(v, e)
}

// owner is the node whose manager is responsible for a volume: where it is attached, or the first that works.
func (s *State) owner(v *lh.Volume) string {
	for _, node := range []string{v.Spec.NodeID, v.Status.OwnerID} {
		if n := s.Nodes[node]; n != nil && s.managerUp(node) && isTrue(n.Status.Conditions, lh.ConditionReady) {
			return node
		}
	}

	for _, n := range sorted(s.Nodes) {
		if s.managerUp(n.Name) && isTrue(n.Status.Conditions, lh.ConditionReady) {
			return n.Name
		}
	}

	return ""
}

// removeVolume takes everything of a volume away, and lets it go.
func (s *State) removeVolume(v *lh.Volume) {
	v.Status.State = lh.VolumeDeleting

	for _, r := range s.replicasOf(v.Name) {
		s.deleteReplica(r)
	}

	for name, e := range s.Engines {
		if e.Spec.VolumeName == v.Name {
			s.Reality.Kill(name)
			delete(s.Engines, name)
		}
	}

	delete(s.VolumeAttachments, v.Name)
	delete(s.ShareManagers, v.Name)
	delete(s.Pods, shareManagerPod(v.Name))
	delete(s.Volumes, v.Name)
}

// newVolume makes the engine and all replicas.
func (s *State) newVolume(v *lh.Volume) *lh.Engine {
	v.Status.State, v.Status.Robustness, v.Status.CurrentImage = lh.VolumeCreating, lh.RobustnessUnknown, v.Spec.Image
	e := s.newVolumeEngine(v)

	for range v.Spec.NumberOfReplicas {
		s.addReplica(v, e, "")
	}

	return e
}

func (s *State) newVolumeEngine(v *lh.Volume) *lh.Engine {
	e := &lh.Engine{
		ObjectMeta: metav1.ObjectMeta{Name: v.Name + "-e-0", Namespace: s.Namespace, Labels: map[string]string{labelVolume: v.Name}},
		Spec: lh.EngineSpec{
			InstanceSpec: lh.InstanceSpec{
				VolumeName: v.Name, VolumeSize: v.Spec.Size, Image: v.Spec.Image, DesireState: lh.InstanceStopped, DataEngine: v.Spec.DataEngine,
			},
			Active: true, Frontend: v.Spec.Frontend,
		},
		Status: lh.EngineStatus{InstanceStatus: lh.InstanceStatus{CurrentState: lh.InstanceStopped}},
	}
	s.Engines[e.Name] = e

	return e
}

// addReplica makes a replica that has no disk yet.
func (s *State) addReplica(v *lh.Volume, e *lh.Engine, affinity string) *lh.Replica {
	r := newReplica(v, e, affinity)
	r.Name, r.Namespace = v.Name+"-r-"+s.Reality.unique("replica", v.Name), s.Namespace
	setLabels(r)
	s.Replicas[r.Name] = r

	return r
}

func newReplica(v *lh.Volume, e *lh.Engine, affinity string) *lh.Replica {
	return &lh.Replica{
		Spec: lh.ReplicaSpec{
			InstanceSpec: lh.InstanceSpec{
				VolumeName: v.Name, VolumeSize: v.Spec.Size, Image: v.Spec.Image, DesireState: lh.InstanceStopped, DataEngine: v.Spec.DataEngine,
			},
			EngineName: e.Name, Active: true, BackingImage: v.Spec.BackingImage, HardNodeAffinity: affinity,
		},
		Status: lh.ReplicaStatus{InstanceStatus: lh.InstanceStatus{CurrentState: lh.InstanceStopped}},
	}
}

// scheduleReplicas finds disks for the replicas that have none, and says whether all have one.
func (s *State) scheduleReplicas(v *lh.Volume) {
	missing := 0
	replicas := s.replicasOf(v.Name)

	for _, r := range replicas {
		if v.Spec.DataLocality == lh.DataLocalityStrictLocal && r.Spec.NodeID == "" {
			r.Spec.HardNodeAffinity = v.Spec.NodeID
		}

		if r.Spec.NodeID == "" && r.Spec.FailedAt == "" && !s.schedule(r, v) {
			missing++
		}
	}

	switch {
	case missing == 0:
		s.setScheduled(v, lh.ConditionTrue, "", "")
	case v.Spec.DataLocality == lh.DataLocalityBestEffort && missing == 1 && len(replicas) > v.Spec.NumberOfReplicas:
		s.setScheduled(v, lh.ConditionFalse, lh.ReasonLocalReplicaSchedulingFailure, "no disk of the volume's node takes a replica")
	default:
		s.setScheduled(v, lh.ConditionFalse, lh.ReasonReplicaSchedulingFailure, fmt.Sprintf("no disk takes %d replicas", missing))
	}
}

func (s *State) setScheduled(v *lh.Volume, status lh.ConditionStatus, reason, message string) {
	v.Status.Conditions = lh.SetCondition(v.Status.Conditions,
		lh.Condition{Type: lh.VolumeConditionScheduled, Status: status, Reason: reason, Message: message}, s.stamp())
}

// syncAttached looks after the replicas of a volume whose engine runs. Source: ReconcileEngineReplicaState.
func (s *State) syncAttached(v *lh.Volume, e *lh.Engine) {
	if v.Status.State == lh.VolumeAttached && !s.alive(v.Status.CurrentNodeID) {
		// Until Kubernetes has noticed, everything looks as it did.
		if s.downOrDeleted(v.Status.CurrentNodeID) {
			e.Status.CurrentState, v.Status.Robustness = lh.InstanceUnknown, lh.RobustnessUnknown
		}

		return
	}

	if e.Status.CurrentState != lh.InstanceRunning || !s.runs(e.Name) {
		s.failBeforeRunning(v, e)

		return
	}

	replicas := s.replicasOf(v.Name)
	s.startReplicas(v, replicas)
	s.syncModes(e, replicas)
	s.syncRebuilds(v, e, replicas)

	healthy := 0

	for _, r := range replicas {
		switch e.Status.ReplicaModeMap[r.Name] {
		case lh.ModeERR:
			s.failReplica(r)
			delete(e.Status.ReplicaModeMap, r.Name)
		case lh.ModeRW:
			if r.Spec.HealthyAt == "" {
				r.Spec.HealthyAt, r.Spec.RebuildRetryCount = s.stamp(), 0
				delete(s.Reality.backoffs, r.Name)
			}

			if r.Spec.LastHealthyAt == "" || r.Spec.LastHealthyAt < r.Spec.HealthyAt {
				r.Spec.LastHealthyAt = r.Spec.HealthyAt
			}

			healthy++
		case lh.ModeWO:
		}
	}

	s.judge(v, e, healthy)
}

// judge says how a volume is by the number of its complete replicas, and has the missing ones made.
func (s *State) judge(v *lh.Volume, e *lh.Engine, healthy int) {
	busy := migrating(v) || v.Status.RestoreRequired || v.Status.ExpansionRequired || cloning(v)

	switch {
	case healthy == 0:
		// The engine has died with its last replica.
		s.Reality.Kill(e.Name)
		v.Status.Robustness = lh.RobustnessFaulted
	case healthy >= v.Spec.NumberOfReplicas:
		v.Status.Robustness, v.Status.LastDegradedAt = lh.RobustnessHealthy, ""

		if !busy {
			s.evict(v, e, s.replicasOf(v.Name), healthy)
			s.bringHome(v, e)
			s.balance(v, e)
		}
	default:
		if v.Status.Robustness != lh.RobustnessDegraded {
			v.Status.Robustness, v.Status.LastDegradedAt = lh.RobustnessDegraded, s.stamp()
		}

		if !busy {
			s.replenish(v, e, "")
		}
	}
}

// failBeforeRunning marks replicas that fail while the volume is attached, before there is an engine to say so.
func (s *State) failBeforeRunning(v *lh.Volume, e *lh.Engine) {
	e.Status.ReplicaModeMap, e.Status.RebuildStatus, e.Status.CurrentReplicaAddressMap = nil, nil, nil

	for _, r := range s.replicasOf(v.Name) {
		died := r.Status.CurrentState == lh.InstanceRunning && !s.runs(r.Name) && s.alive(r.Spec.NodeID)
		if r.Spec.FailedAt == "" && (died || r.Status.CurrentState == lh.InstanceError) {
			s.failReplica(r)
		}
	}
}

func (s *State) failReplica(r *lh.Replica) {
	if r.Spec.FailedAt == "" {
		r.Spec.FailedAt, r.Spec.LastFailedAt = s.stamp(), s.stamp()
	}

	r.Spec.DesireState = lh.InstanceStopped
	s.Reality.Kill(r.Name)
}

func (s *State) deleteReplica(r *lh.Replica) {
	s.Reality.Kill(r.Name)
	delete(s.Reality.rebuilds, r.Name)
	delete(s.Replicas, r.Name)

	for _, e := range s.Engines {
		delete(e.Status.ReplicaModeMap, r.Name)
	}
}

// syncModes says what the engine sees of its replicas. A connection that is closed fails a replica at once; a machine that
// is gone fails it after engine-replica-timeout.
func (s *State) syncModes(e *lh.Engine, replicas []*lh.Replica) {
	if e.Status.ReplicaModeMap == nil {
		e.Status.ReplicaModeMap = map[string]lh.ReplicaMode{}
	}

	e.Status.CurrentReplicaAddressMap = map[string]string{}
	timeout, _ := time.ParseDuration(s.setting(SettingEngineReplicaTimeout, e.Spec.DataEngine) + "s") // the setting is a number

	for _, r := range replicas {
		if r.Spec.FailedAt == "" && r.Spec.NodeID != "" {
			e.Status.CurrentReplicaAddressMap[r.Name] = address(r)
		}

		mode := e.Status.ReplicaModeMap[r.Name]
		if mode == "" || mode == lh.ModeERR || s.runs(r.Name) {
			continue
		}

		dead := s.Reality.machines[r.Spec.NodeID].dead
		if !dead.IsZero() && s.Now.Sub(dead) < timeout {
			s.wakeAt(dead.Add(timeout))

			continue
		}

		e.Status.ReplicaModeMap[r.Name] = lh.ModeERR
	}

	e.Spec.ReplicaAddressMap = maps.Clone(e.Status.CurrentReplicaAddressMap)
}
