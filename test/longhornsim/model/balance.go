// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"

	lh "github.com/maesh-dev/ichor/test/longhornsim/api/v1beta2"
)

// bringHome makes a replica on the node of the engine, for a volume that wants its data near (best-effort).
func (s *State) bringHome(v *lh.Volume, e *lh.Engine) {
	if v.Status.State != lh.VolumeAttached || !bestEffortLocal(v) || e.Spec.NodeID == "" {
		return
	}

	for _, r := range s.replicasOf(v.Name) {
		if r.Spec.NodeID == e.Spec.NodeID || r.Spec.HardNodeAffinity == e.Spec.NodeID {
			return
		}
	}

	s.replenish(v, e, e.Spec.NodeID)
}

// removeRemote takes one replica away of a volume that has one too many, since it has got one near its engine. Source:
// cleanupDataLocalityReplicas.
func (s *State) removeRemote(v *lh.Volume, e *lh.Engine) bool {
	if !bestEffortLocal(v) {
		return false
	}

	replicas := s.replicasOf(v.Name)
	if !slices.ContainsFunc(replicas, func(r *lh.Replica) bool { return availableHealthy(r) && r.Spec.NodeID == e.Spec.NodeID }) {
		return false
	}

	for _, r := range s.preferredToGo(replicas) {
		if r.Spec.NodeID != e.Spec.NodeID {
			s.deleteReplica(r)

			return true
		}
	}

	return false
}

// autoBalance is how a volume's replicas are spread after the fact. Source: getAutoBalancedReplicasSetting.
func (s *State) autoBalance(v *lh.Volume) string {
	if v.Spec.ReplicaAutoBalance != "" && v.Spec.ReplicaAutoBalance != lh.Ignored {
		return v.Spec.ReplicaAutoBalance
	}

	return s.setting(SettingReplicaAutoBalance, v.Spec.DataEngine)
}

func (s *State) balance(v *lh.Volume, e *lh.Engine) {
	if s.autoBalance(v) != lh.AutoBalanceDisabled {
		s.replenish(v, e, "")
	}
}

// unbalanced is how many replicas shall be made on nodes without one, because others have several. Source:
// getReplicaCountForAutoBalanceNode, and the same for zones.
func (s *State) unbalanced(v *lh.Volume) int {
	if s.autoBalance(v) == lh.AutoBalanceDisabled || v.Status.Robustness != lh.RobustnessHealthy {
		return 0
	}

	nodes, zones := map[string]bool{}, map[string]bool{}
	freeNodes, freeZones := map[string]bool{}, map[string]bool{}

	for _, r := range s.replicasOf(v.Name) {
		if n := s.Nodes[r.Spec.NodeID]; n != nil && s.runs(r.Name) && s.nodeReadyAndSchedulable(n) {
			nodes[n.Name], zones[n.Status.Zone] = true, true
		}
	}

	for _, n := range s.Nodes {
		if !s.nodeSchedulable(n) || !s.imageReady(n.Name, v) {
			continue
		}

		if !nodes[n.Name] {
			freeNodes[n.Name] = true
		}

		if !zones[n.Status.Zone] {
			freeZones[n.Status.Zone] = true
		}
	}

	if wanted := min(v.Spec.NumberOfReplicas-len(zones), len(freeZones)); wanted > 0 {
		return wanted
	}

	return max(0, min(v.Spec.NumberOfReplicas-len(nodes), len(freeNodes)))
}

func (s *State) nodeReadyAndSchedulable(n *lh.Node) bool {
	return isTrue(n.Status.Conditions, lh.ConditionReady) && isTrue(n.Status.Conditions, lh.ConditionSchedulable)
}

// removeCrowded takes one replica away of a volume that has one too many, where most are. Without auto-balance a volume keeps
// what it has. Source: cleanupAutoBalancedReplicas.
func (s *State) removeCrowded(v *lh.Volume) {
	if s.autoBalance(v) == lh.AutoBalanceDisabled {
		return
	}

	if going := s.preferredToGo(s.replicasOf(v.Name)); len(going) > 0 {
		s.deleteReplica(going[0])
	}
}

// preferredToGo returns the healthy replicas of which a volume can spare one: those that share a disk, else those that share a
// node, else those that share a zone, else all. Source: getPreferredReplicaCandidatesForDeletion.
func (s *State) preferredToGo(replicas []*lh.Replica) []*lh.Replica {
	healthy := slices.DeleteFunc(slices.Clone(replicas), func(r *lh.Replica) bool { return !availableHealthy(r) })

	for _, place := range []func(*lh.Replica) string{
		func(r *lh.Replica) string { return r.Spec.DiskID },
		func(r *lh.Replica) string { return r.Spec.NodeID },
		func(r *lh.Replica) string {
			if n := s.Nodes[r.Spec.NodeID]; n != nil {
				return n.Status.Zone
			}

			return ""
		},
	} {
		most := []*lh.Replica{}
		together := map[string][]*lh.Replica{}

		for _, r := range healthy {
			at := place(r)

			together[at] = append(together[at], r)
			if len(together[at]) > len(most) {
				most = together[at]
			}
		}

		if len(most) > 1 {
			return most
		}
	}

	return healthy
}
