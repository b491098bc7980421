// SPDX-License-Identifier: Apache-2.0

package model

import (
	"time"

	lh "github.com/maesh-dev/ichor/test/longhornsim/api/v1beta2"
)

// progressSteps is in how many steps the progress of a copy is shown.
const progressSteps = 4

// rate is how many bytes of a volume's new copy are made in a second; none if it stalls.
func (s *State) rate(volume string) int64 {
	f := s.Reality.Faults
	if f.RebuildStalls[volume] || f.RebuildStalls["*"] {
		return 0
	}

	return max(1, s.Reality.Pace.RebuildBytes/max(1, f.RebuildSlow[volume]))
}

// grow lets a copy grow by what the time since the last step allows, and notes when to look again.
func (s *State) grow(copying rebuild) rebuild {
	rate := s.rate(copying.volume)
	elapsed := s.Now.Sub(copying.at)
	copying.at = s.Now
	copying.done = min(copying.total, copying.done+int64(elapsed.Seconds()*float64(rate)))

	if rate > 0 && copying.done < copying.total {
		step := max(1, copying.total/progressSteps)
		next := min(copying.total, (copying.done/step+1)*step)
		s.wakeAt(s.Now.Add(time.Duration(float64(next-copying.done)/float64(rate)*float64(time.Second)).Truncate(time.Millisecond) + time.Millisecond))
	}

	return copying
}

// failsHalfWay is whether the fault RebuildFails has its moment.
func (s *State) failsHalfWay(copying rebuild) bool {
	return s.Reality.Faults.RebuildFails[copying.volume] && copying.done*2 >= copying.total
}

// slotFree is whether a node may begin to make one more copy (setting concurrent-replica-rebuild-per-node-limit).
func (s *State) slotFree(node string) bool {
	taken := s.Reality.Faults.RebuildSlotsTaken[node]

	for name := range s.Reality.rebuilds {
		if r := s.Replicas[name]; r != nil && r.Spec.NodeID == node {
			taken++
		}
	}

	return taken < s.number(SettingConcurrentRebuildPerNode)
}

// beginRebuild starts to make a copy from another one. A replica that had failed keeps most of its data.
func (s *State) beginRebuild(v *lh.Volume, r, from *lh.Replica) {
	total := v.Status.ActualSize
	if r.Spec.LastHealthyAt != "" {
		total = total * s.Reality.Pace.DeltaPercent / 100
	}

	s.Reality.rebuilds[r.Name] = rebuild{volume: v.Name, from: from.Name, total: max(1, total), at: s.Now}
	s.Reality.rebuilds[r.Name] = s.grow(s.Reality.rebuilds[r.Name])
}

// syncRebuilds moves the copies that are made: they begin when their node has a place for them, and become RW when they are
// complete.
func (s *State) syncRebuilds(v *lh.Volume, e *lh.Engine, replicas []*lh.Replica) {
	source := s.source(e, replicas)
	e.Status.RebuildStatus = map[string]lh.RebuildStatus{}

	for _, r := range replicas {
		mode := e.Status.ReplicaModeMap[r.Name]
		if mode == lh.ModeRW || mode == lh.ModeERR || r.Spec.FailedAt != "" || !s.runs(r.Name) || source == nil {
			continue
		}

		if mode == "" {
			if s.isRebuilding(v.Name) || !s.slotFree(r.Spec.NodeID) {
				continue
			}

			s.beginRebuild(v, r, source)
			e.Status.ReplicaModeMap[r.Name] = lh.ModeWO
		}

		copying := s.Reality.rebuilds[r.Name]
		status := lh.RebuildStatus{
			IsRebuilding: true, State: "in_progress", FromReplicaAddress: address(source),
			Progress: int(copying.done * 100 / max(1, copying.total)),
		}

		switch {
		case s.failsHalfWay(copying):
			status = lh.RebuildStatus{State: "error", Error: "the copy failed", Progress: status.Progress, FromReplicaAddress: address(source)}
			e.Status.ReplicaModeMap[r.Name] = lh.ModeERR
			delete(s.Reality.rebuilds, r.Name)
		case copying.done >= copying.total:
			status = lh.RebuildStatus{State: "complete", Progress: 100, FromReplicaAddress: address(source)}
			e.Status.ReplicaModeMap[r.Name] = lh.ModeRW
			delete(s.Reality.rebuilds, r.Name)
		}

		e.Status.RebuildStatus[address(r)] = status
	}

	if len(e.Status.RebuildStatus) == 0 {
		e.Status.RebuildStatus = nil
	}
}

func (s *State) isRebuilding(volume string) bool {
	for _, copying := range s.Reality.rebuilds {
		if copying.volume == volume {
			return true
		}
	}

	return false
}

// source is a complete copy, which a new one is made from.
func (s *State) source(e *lh.Engine, replicas []*lh.Replica) *lh.Replica {
	for _, r := range replicas {
		if e.Status.ReplicaModeMap[r.Name] == lh.ModeRW && s.runs(r.Name) {
			return r
		}
	}

	return nil
}

func (s *State) runs(name string) bool {
	_, runs := s.Reality.processes[name]

	return runs
}
