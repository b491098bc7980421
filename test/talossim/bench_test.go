// SPDX-License-Identifier: Apache-2.0

package talossim_test

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/role"

	"github.com/maesh-dev/ichor/test/talossim"
)

// BenchmarkStart200 boots one control-plane node and 199 workers, with real certificates and listeners.
func BenchmarkStart200(b *testing.B) {
	g := NewWithT(b)
	cluster, err := talossim.NewCluster("bench", "https://127.0.0.1:6443", "v1.14", "v1.36.0")
	g.Expect(err).NotTo(HaveOccurred())
	controlPlane, err := cluster.Config(machinetype.TypeControlPlane)
	g.Expect(err).NotTo(HaveOccurred())
	worker, err := cluster.Config(machinetype.TypeWorker)
	g.Expect(err).NotTo(HaveOccurred())
	before := footprint()
	var used time.Duration
	for b.Loop() {
		begun := processorTime()
		world, err := talossim.New(talossim.Options{})
		g.Expect(err).NotTo(HaveOccurred())
		for i := range 200 {
			config := worker
			if i == 0 {
				config = controlPlane
			}
			_, err := world.Start(b.Context(), talossim.NodeOptions{Name: fmt.Sprintf("node-%d", i)}, config)
			g.Expect(err).NotTo(HaveOccurred())
		}
		b.StopTimer()
		used += processorTime() - begun
		after := footprint()
		b.ReportMetric(float64(after.bytes-before.bytes)/200/1024, "KiB/node")
		b.ReportMetric(float64(after.goroutines-before.goroutines)/200, "goroutines/node")
		last := world.Nodes()[199]
		c, err := cluster.Client(b.Context(), last, role.Reader)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = c.Version(b.Context())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(c.Close()).To(Succeed())
		g.Expect(world.Close()).To(Succeed())
		b.StartTimer()
	}
	// What it costs a machine that others load too.
	b.ReportMetric(float64(used.Milliseconds())/float64(b.N), "cpu-ms/op")
}

func processorTime() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// cost is what the process uses.
type cost struct {
	bytes      int64
	goroutines int
}

func footprint() cost {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return cost{bytes: int64(stats.HeapAlloc + stats.StackInuse), goroutines: runtime.NumGoroutine()}
}
