// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/maesh-dev/ichor/test/scale"
)

// small sizes prove that each part works, and what does not depend on the machine.
var small = sizes{
	machines: 10, machineRounds: 1, steadyPeriod: time.Second, configs: 5, planMachines: 50, planRounds: 3, clusters: 2,
	// One that is accepted, one that the schema refuses, and one that the manager does.
	hostileTries: 1, hostile: regexp.MustCompile(`^(128 large documents|10,000 keys|comprehensions)$`),
}

// TestBootstrapManager goes through the parts that measure the bootstrap manager, one after the other in one management cluster. The last
// leaves webhooks that nobody answers.
func TestBootstrapManager(t *testing.T) {
	t.Parallel()

	world, err := scale.Start(t.Context(), scale.Options{Audit: true})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	defer func() { NewWithT(t).Expect(world.Stop()).To(Succeed()) }()

	for _, part := range []struct {
		name    string
		measure func(*testing.T, *scale.World)
	}{{"machines", checkMachines}, {"memory", checkMemory}, {"hostile", checkHostile}} {
		if !t.Run(part.name, func(t *testing.T) { part.measure(t, world) }) {
			return
		}
	}
}

// checkMachines counts the writes and the live reads of a fleet at the API server. How long it takes is for the benchmark to judge.
func checkMachines(t *testing.T, world *scale.World) {
	t.Helper()

	g := NewWithT(t)

	results, err := measureMachines(t.Context(), world, small)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(named(results, "10 Machines: writes for a Machine, the most").measured).To(Equal(3.0))
	g.Expect(named(results, "10 Machines: time").measured).To(BeNumerically(">", 0))

	for _, each := range results {
		t.Logf("%s: %s (%s)", each.name, amount(each.measured, each.unit), each.note)

		if !strings.HasSuffix(each.name, ": time") {
			g.Expect(each.ok()).To(BeTrue(), "%s: %s (%s)", each.name, amount(each.measured, each.unit), each.note)
		}
	}
}

// checkMemory keeps the measurement alive. A few TalosConfigs say nothing about many.
func checkMemory(t *testing.T, world *scale.World) {
	t.Helper()

	g := NewWithT(t)

	results, err := measureMemory(t.Context(), world, small)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(results).To(HaveLen(5))

	for _, each := range results {
		g.Expect(each.ok()).To(BeTrue(), "%s: %s", each.name, amount(each.measured, each.unit))
		g.Expect(each.measured).To(BeNumerically(">", 1))
	}
}

// checkHostile has hostile patches answered in each way; test/admission has every one answered. How fast is for the benchmark to judge.
func checkHostile(t *testing.T, world *scale.World) {
	t.Helper()

	g := NewWithT(t)

	results, err := measureHostile(t.Context(), world, small)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(named(results, "hostile patches: slowest answer").measured).To(BeNumerically(">", 0))
	g.Expect(named(results, "hostile patches: manager's memory").note).To(ContainSubstring("answered with"))
}

// TestClusters has a few clusters come up, with as few goroutines for each as is promised. How long that takes, and what is written when they
// are at rest, depends on when a busy machine comes to rest: that is for the benchmark to judge.
func TestClusters(t *testing.T) {
	t.Parallel()

	g := NewWithT(t)

	few := small
	few.settling = time.Second

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
