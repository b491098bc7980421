// SPDX-License-Identifier: Apache-2.0

package model

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	lh "github.com/maesh-dev/ichor/test/longhornsim/api/v1beta2"
)

var onlySeed = flag.Uint64("seed", 0, "try this seed alone")

const (
	seeds = 50
	steps = 30
)

// world is a model without an API server.
type world struct {
	*State

	t       *testing.T
	random  *rand.Rand
	history []string
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()

	reality := NewReality(Pace{RebuildBytes: 100 << 20, DeltaPercent: 10}, func(string, string) (int64, bool) { return 100 << 30, true })
	w := &world{
		State: NewState("longhorn-system", reality, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), t: t,
		random: rand.New(rand.NewPCG(seed, 0)),
	}

	for i := range 3 + w.random.IntN(3) {
		name := string(rune('a' + i))
		w.KubeNodes[name] = &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: "z" + string(rune('1'+i%2))}},
			Status: corev1.NodeStatus{
				NodeInfo:   corev1.NodeSystemInfo{BootID: "1"},
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			},
		}
	}

	w.settle()

	for i := range 1 + w.random.IntN(4) {
		w.addVolume(fmt.Sprintf("v%d", i))
	}

	w.settle()

	return w
}

func (w *world) addVolume(name string) {
	nodes := sortedKeys(w.Nodes)
	w.random.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })

	spec := VolumeSpec{Name: name, Used: 1 << 30, On: nodes[:1+w.random.IntN(3)], Spec: lh.VolumeSpec{
		Size: 10 << 30, Frontend: "blockdev", DataEngine: lh.DataEngineV1, AccessMode: lh.AccessReadWriteOnce, Image: DefaultImage,
		DataLocality: lh.DataLocalityDisabled, StaleReplicaTimeout: 2880,
	}}
	spec.Spec.NumberOfReplicas = len(spec.On)

	switch w.random.IntN(5) {
	case 0:
		spec.Spec.DataLocality = lh.DataLocalityBestEffort
	case 1:
		spec.Spec.AccessMode = lh.AccessReadWriteMany
	}

	if w.random.IntN(2) == 0 {
		spec.Tickets = []lh.AttachmentTicket{{ID: "t", Type: lh.AttacherCSI, NodeID: w.anyNode()}}
	}

	if err := w.AddVolume(spec); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) anyNode() string {
	nodes := sortedKeys(w.KubeNodes)

	return nodes[w.random.IntN(len(nodes))]
}

func (w *world) anyVolume() string {
	volumes := sortedKeys(w.Volumes)

	return volumes[w.random.IntN(len(volumes))]
}

func (w *world) settle() {
	w.t.Helper()

	if !w.Settle() {
		w.t.Fatalf("the model comes to no end after %v", w.history)
	}
}

// pass lets time pass, with what happens on the way.
func (w *world) pass(d time.Duration, check func()) {
	for until := w.Now.Add(d); w.Now.Before(until); {
		next := until
		if !w.Wake.IsZero() && w.Wake.Before(until) {
			next = w.Wake
		}

		w.Now = next
		w.settle()
		check()
	}
}

// gentle is what operators do, and what must never cost a copy.
func (w *world) gentle() (string, func()) {
	node, volume := w.anyNode(), w.anyVolume()

	switch w.random.IntN(7) {
	case 0:
		return "evict " + node, func() { w.Nodes[node].Spec.AllowScheduling, w.Nodes[node].Spec.EvictionRequested = false, true }
	case 1:
		return "cancel " + node, func() { w.Nodes[node].Spec.AllowScheduling, w.Nodes[node].Spec.EvictionRequested = true, false }
	case 2:
		return "cordon " + node, func() { w.KubeNodes[node].Spec.Unschedulable = true }
	case 3:
		return "uncordon " + node, func() { w.KubeNodes[node].Spec.Unschedulable = false }
	case 4:
		return "attach " + volume + " to " + node, func() {
			w.VolumeAttachments[volume].Spec.AttachmentTickets = map[string]lh.AttachmentTicket{
				"t": {ID: "t", Type: lh.AttacherCSI, NodeID: node},
			}
		}
	case 5:
		return "detach " + volume, func() { w.VolumeAttachments[volume].Spec.AttachmentTickets = nil }
	}

	policies := definitions[SettingNodeDrainPolicy].choices
	policy := policies[w.random.IntN(len(policies))]

	return "policy " + policy, func() { w.Settings[SettingNodeDrainPolicy] = policy }
}

// rough is what breaks.
func (w *world) rough() (string, func()) {
	node := w.anyNode()
	at := "/var/lib/longhorn/"

	switch w.random.IntN(8) {
	case 0:
		return "power off " + node, func() { w.Reality.Power(node, false) }
	case 1:
		return "power on " + node, func() { w.Reality.Power(node, true) }
	case 2:
		return "crash " + node, func() {
			w.Reality.Crash(node, lh.DataEngineV1)
			delete(w.Pods, InstanceManagerName(node, lh.DataEngineV1))
		}
	case 3:
		return "pull disk of " + node, func() { w.Reality.Pull(node, at, true) }
	case 4:
		return "put disk of " + node, func() { w.Reality.Pull(node, at, false) }
	case 5:
		return "fill disk of " + node, func() { w.Reality.Fill(node, at, int64(w.random.IntN(100))<<30) }
	case 6:
		return "silence " + node, func() { w.KubeNodes[node].Status.Conditions[0].Status = corev1.ConditionUnknown }
	}

	return "reboot " + node, func() {
		w.KubeNodes[node].Status.Conditions[0].Status = corev1.ConditionTrue
		w.KubeNodes[node].Status.NodeInfo.BootID += "1"
	}
}

// eachSeed tries many worlds. A failure names its seed: go test ./test/longhornsim/model -seed N does the same again.
func eachSeed(t *testing.T, try func(t *testing.T, seed uint64)) {
	t.Helper()

	if *onlySeed != 0 {
		try(t, *onlySeed)

		return
	}

	for seed := range uint64(seeds) {
		try(t, seed+1)
	}
}

// TestGentle does what operators do, in any order: as long as nothing breaks, no volume ever has fewer copies than it wants.
func TestGentle(t *testing.T) {
	t.Parallel()

	moved := 0

	eachSeed(t, func(t *testing.T, seed uint64) {
		w := newWorld(t, seed)
		names := keys(w.Replicas)
		check := func() {
			for name, v := range w.Volumes {
				if copies := w.UsableCopies(name); len(copies) < v.Spec.NumberOfReplicas {
					t.Fatalf("seed %d: volume %s has copies on %v and wants %d, after %v", seed, name, copies, v.Spec.NumberOfReplicas, w.history)
				}
			}

			if faults := w.Inconsistent(); len(faults) > 0 {
				t.Fatalf("seed %d: %v, after %v", seed, faults, w.history)
			}
		}

		for range steps {
			what, do := w.gentle()
			w.history = append(w.history, what)
			do()
			w.settle()
			check()
			w.pass(time.Duration(w.random.IntN(30))*time.Second, check)
		}

		for name := range w.Replicas {
			if !names[name] {
				moved++
			}
		}
	})

	if *onlySeed == 0 && moved < seeds {
		t.Errorf("only %d replicas have moved: these worlds prove little", moved)
	}
}

// TestRough breaks machines and disks too: the model comes to an end each time, and never contradicts itself; when all is mended,
// every volume that has a copy left is well.
func TestRough(t *testing.T) {
	t.Parallel()

	faulted := 0

	eachSeed(t, func(t *testing.T, seed uint64) {
		w := newWorld(t, seed)
		check := func() {
			if faults := w.Inconsistent(); len(faults) > 0 {
				t.Fatalf("seed %d: %v, after %v", seed, faults, w.history)
			}

			for _, v := range w.Volumes {
				if v.Status.Robustness == lh.RobustnessFaulted {
					faulted++
				}
			}
		}

		for range steps {
			what, do := w.gentle()
			if w.random.IntN(2) == 0 {
				what, do = w.rough()
			}

			w.history = append(w.history, what)
			do()
			w.settle()
			check()
			w.pass(time.Duration(w.random.IntN(60))*time.Second, check)
		}

		w.mend()
		w.pass(time.Hour, check)

		for _, v := range sorted(w.Volumes) {
			if robustness := v.Status.Robustness; v.Status.State == lh.VolumeAttached && robustness != lh.RobustnessHealthy {
				t.Errorf("seed %d: volume %s is %s when all is mended, after %v", seed, v.Name, robustness, w.history)
			}
		}
	})

	if *onlySeed == 0 && faulted == 0 {
		t.Error("no volume was ever faulted: these worlds prove little")
	}
}

// mend makes everything work again.
func (w *world) mend() {
	for name, kube := range w.KubeNodes {
		w.Reality.Power(name, true)
		w.Reality.Pull(name, "/var/lib/longhorn/", false)
		w.Reality.Fill(name, "/var/lib/longhorn/", 0)

		kube.Spec.Unschedulable, kube.Status.Conditions[0].Status = false, corev1.ConditionTrue
		w.Nodes[name].Spec.AllowScheduling, w.Nodes[name].Spec.EvictionRequested = true, false
	}

	w.settle()
}
