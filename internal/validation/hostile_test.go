// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"encoding/json"
	"maps"
	"runtime"
	"slices"
	"testing"
	"time"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/test/hostile"
)

// What a look at a hostile patch may allocate, which does not depend on the machine as its time does: some tenths of a second of work.
const (
	maxHostileBytes = allocationFactor * 120 << 20
	maxHostileCount = 1_200_000
)

// TestHostileAllocations bounds what is done for a hostile patch: sizes and counts are looked at first, and enough faults end the search.
func TestHostileAllocations(t *testing.T) {
	specs := hostile.Specs()

	for _, name := range slices.Sorted(maps.Keys(specs)) {
		t.Run(name, func(t *testing.T) {
			patch := &bootstrapv1.TalosConfigPatch{}
			if err := json.Unmarshal([]byte(`{"metadata":{"name":"hostile"},"spec":`+specs[name]+`}`), patch); err != nil {
				t.Fatal(err)
			}

			var before, after runtime.MemStats

			runtime.ReadMemStats(&before)

			start := time.Now()
			report := TalosConfigPatch(patch)
			took := time.Since(start)

			runtime.ReadMemStats(&after)

			count, bytes := after.Mallocs-before.Mallocs, after.TotalAlloc-before.TotalAlloc
			t.Logf("%d faults, %d objects, %d MiB, %v", len(report.Faults), count, bytes>>20, took.Round(time.Millisecond))

			if bytes > maxHostileBytes || count > maxHostileCount {
				t.Errorf("%d objects of %d bytes are allocated for %d faults; the limits are %d and %d",
					count, bytes, len(report.Faults), maxHostileCount, maxHostileBytes)
			}
		})
	}
}

func BenchmarkHostile(b *testing.B) {
	specs := hostile.Specs()

	for _, name := range slices.Sorted(maps.Keys(specs)) {
		b.Run(name, func(b *testing.B) {
			patch := &bootstrapv1.TalosConfigPatch{}
			if err := json.Unmarshal([]byte(`{"metadata":{"name":"hostile"},"spec":`+specs[name]+`}`), patch); err != nil {
				b.Fatal(err)
			}

			b.ReportAllocs()

			for b.Loop() {
				TalosConfigPatch(patch)
			}
		})
	}
}
