// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"io/fs"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

const (
	// interval is how often the keeper looks, and at every looksPerReturn-th look it may give back: what a burst has needed is given back after
	// one to two of these.
	interval       = 2 * time.Second
	looksPerReturn = 5

	// The room that the heap gets to grow by between two collections: a part of what lives, and at least so many bytes, so that a small heap is
	// not collected all the time. With twice that a burst leaves behind pages in each of which little lives, which no collection mends.
	roomShare = 2
	minRoom   = 24 << 20

	// maxPercent is what minRoom may come to for a heap that is nearly empty.
	maxPercent = 400

	// initialPercent is for the start, and percentStep is the least change.
	initialPercent = 100
	percentStep    = 10

	// minBurst is how many bytes must have been allocated for it to be worth a collection of the whole heap, and burstShare the part of
	// what lives that they must make up.
	minBurst   = 12 << 20
	burstShare = 4

	// The share of the container's limit that the collector heeds. The rest is for what it does not know: the program's own pages, and what
	// comes between two looks.
	limitNumerator, limitDenominator = 4, 5

	// What the collector gets in any case, as a multiple of what lives: a limit must not have it collect without end.
	leastNumerator, leastDenominator = 4, 3

	// limitStep is the least change of the limit, so that it does not change with every look.
	limitStep = 4 << 20
)

// Keeper keeps the memory of the process small while it runs in a manager: it bounds the garbage that lies around, gives back what a burst of
// work has left behind, and has the collector heed the container's limit, so that a burst is collected more often and not killed. What users
// set with GOGC and GOMEMLIMIT stays.
type Keeper struct {
	// root of the file system, for tests.
	root fs.FS

	// percent is what the collector was told last. Zero: users have told it.
	percent int

	// limit is what the collector is to heed. Zero: there is none.
	limit int64

	// looked and gaveBack are how many bytes had ever been allocated when the keeper last looked, and when it last gave back.
	looked, gaveBack uint64
}

// NewKeeper returns a Keeper, to be added to a manager.
func NewKeeper() *Keeper { return &Keeper{root: root()} }

// NeedLeaderElection is false: a manager that waits to lead has full caches, too.
func (*Keeper) NeedLeaderElection() bool { return false }

// Start looks until ctx is done.
func (k *Keeper) Start(ctx context.Context) error {
	log := ctrl.LoggerFrom(ctx).WithName("memory")

	if _, ok := os.LookupEnv("GOGC"); !ok {
		debug.SetGCPercent(initialPercent)

		k.percent = initialPercent
	}

	k.heed(log)

	ticker := time.NewTicker(interval)
	defer ticker.Stop()

	for looks := 1; ; looks++ {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			k.adapt(log)

			if looks%looksPerReturn == 0 {
				k.giveBack(log)
			}
		}
	}
}

// heed sets the collector's limit to a share of the container's.
func (k *Keeper) heed(log logr.Logger) {
	if _, ok := os.LookupEnv("GOMEMLIMIT"); ok {
		return
	}

	container, limited, err := ContainerLimit(k.root)

	switch {
	case err != nil:
		// Without the limit everything works as it does outside a container.
		log.Error(err, "The collector does not heed the container's limit")
	case limited:
		k.limit = container / limitDenominator * limitNumerator
		debug.SetMemoryLimit(k.limit)
		log.Info("The collector heeds the container's limit", "container", container, "limit", k.limit)
	}
}

// adapt has the collector leave as much room as what lives now needs.
func (k *Keeper) adapt(log logr.Logger) {
	now := read()

	if wanted := now.wantedPercent(); k.percent > 0 && wanted != k.percent {
		debug.SetGCPercent(wanted)

		k.percent = wanted
	}

	if k.limit == 0 {
		return
	}

	if wanted := now.wantedLimit(k.limit); wanted != debug.SetMemoryLimit(-1) {
		debug.SetMemoryLimit(wanted)
		log.V(4).Info("The collector's limit follows what lives", "limit", wanted)
	}
}

// giveBack gives back what a burst has needed, once it is over.
func (k *Keeper) giveBack(log logr.Logger) {
	now := read()

	if now.isAfterBurst(k.looked, k.gaveBack) {
		debug.FreeOSMemory()

		if err := releaseProgram(); err != nil {
			log.V(4).Info("The kernel keeps the pages of the program", "reason", err.Error())
		}

		k.gaveBack = now.allocated
	}

	k.looked = now.allocated
}

// state is what the runtime tells of memory, in bytes.
type state struct {
	// live is what the last collection has found in use.
	live uint64

	// other is what the runtime has besides the heap: stacks, its own tables, parts of pages that no object fills.
	other uint64

	// allocated is all that was ever allocated.
	allocated uint64
}

// isAfterBurst says whether much was allocated since the keeper gave back, and little since it last looked: most of what the burst has used
// is garbage now, and is not needed again at once. Whether the last collection has seen it so does not matter.
func (s state) isAfterBurst(looked, gaveBack uint64) bool {
	much := max(minBurst, s.live/burstShare)

	return s.allocated-gaveBack > much && s.allocated-looked < much
}

// wantedPercent is the growth between two collections, as GOGC has it.
func (s state) wantedPercent() int {
	if s.live == 0 {
		return initialPercent
	}

	room := max(minRoom, s.live/roomShare)

	// In steps, so that it does not change with every look.
	return int(min(maxPercent, room*100/s.live/percentStep*percentStep))
}

// wantedLimit is the limit, or more, in steps, if what lives needs more room than that.
func (s state) wantedLimit(limit int64) int64 {
	least := s.live/leastDenominator*leastNumerator + s.other
	if least > math.MaxInt64-limitStep {
		return math.MaxInt64
	}

	if int64(least) <= limit {
		return limit
	}

	return int64((least + limitStep - 1) / limitStep * limitStep)
}

func read() state {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"},
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
	}
	metrics.Read(samples)

	value := func(i int) uint64 { return samples[i].Value.Uint64() }

	return state{live: value(0), allocated: value(1), other: value(2) - value(3) - value(4) - value(5)}
}
