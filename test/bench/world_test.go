// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// small sizes prove that each part works, and what does not depend on the machine.
var small = sizes{machines: 30, machineRounds: 1, configs: 20, hostileTries: 1, planMachines: 50, planRounds: 3, clusters: 2}

// TestMachines counts the writes and the live reads of a fleet at the API server. How long it takes is for the benchmark to judge.
func TestMachines(t *testing.T) {
	g := NewWithT(t)

	results, err := measureMachines(t.Context(), small)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(named(results, "30 Machines: writes for a Machine, the most").measured).To(Equal(3.0))
	g.Expect(named(results, "30 Machines: time").measured).To(BeNumerically(">", 0))

	for _, each := range results {
		t.Logf("%s: %s (%s)", each.name, amount(each.measured, each.unit), each.note)

		if !strings.HasSuffix(each.name, ": time") {
			g.Expect(each.ok()).To(BeTrue(), "%s: %s (%s)", each.name, amount(each.measured, each.unit), each.note)
		}
	}
}

// TestMemory keeps the measurement alive. A few TalosConfigs say nothing about many.
func TestMemory(t *testing.T) {
	g := NewWithT(t)

	results, err := measureMemory(t.Context(), small)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(results).To(HaveLen(5))

	for _, each := range results {
		g.Expect(each.ok()).To(BeTrue(), "%s: %s", each.name, amount(each.measured, each.unit))
		g.Expect(each.measured).To(BeNumerically(">", 1))
	}
}

// TestHostile has every hostile patch answered. How fast is for the benchmark to judge.
func TestHostile(t *testing.T) {
	g := NewWithT(t)

	results, err := measureHostile(t.Context(), small)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(named(results, "hostile patches: slowest answer").measured).To(BeNumerically(">", 0))
	g.Expect(named(results, "hostile patches: manager's memory").note).To(ContainSubstring("answered with"))
}

// TestClusters has a few clusters come up, with as few goroutines for each as is promised. How long that takes, and what is written when they
// are at rest, depends on when a busy machine comes to rest: that is for the benchmark to judge.
func TestClusters(t *testing.T) {
	g := NewWithT(t)

	few := small
	few.settling = 2 * time.Second

	results, err := measureClusters(t.Context(), few)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(results).To(HaveLen(5))

	for _, each := range results {
		t.Logf("%s: %s (%s)", each.name, amount(each.measured, each.unit), each.note)
	}

	resident := named(results, "2 clusters of 3 nodes: resident")
	g.Expect(resident.measured).To(BeNumerically(">", 1))

	goroutines := named(results, "2 clusters of 3 nodes: goroutines for each more")
	g.Expect(goroutines.limited).To(BeTrue())
	g.Expect(goroutines.ok()).To(BeTrue(), "%s: %s (%s)", goroutines.name, amount(goroutines.measured, goroutines.unit), goroutines.note)
	g.Expect(named(results, "a new cluster: Available after its first Node").measured).To(BeNumerically(">", 0))
}

func named(results []result, name string) result {
	for _, each := range results {
		if each.name == name {
			return each
		}
	}

	return result{}
}

// A figure above its limit is one that fails.
func TestPrintResults(t *testing.T) {
	g := NewWithT(t)

	var out strings.Builder

	failed, err := printResults(&out, []result{
		limited("writes", 4, units, 3, "a note"),
		limited("time", 1.5, times, 1.5, ""),
		limited("reads", 0, units, 0, ""),
		told("memory", 12.345, mega, ""),
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(failed).To(Equal(1))
	g.Expect(strings.Fields(strings.Split(out.String(), "\n")[1])).To(Equal(strings.Fields("writes 4 3 NO a note")))
	g.Expect(out.String()).To(And(ContainSubstring("1.50x"), ContainSubstring("12.35MB")))
}
