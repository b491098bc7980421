// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/fstest"

	"github.com/go-logr/logr"
)

const mega = 1 << 20

func TestIsAfterBurst(t *testing.T) {
	tests := map[string]struct {
		live, sinceGaveBack, sinceLooked uint64
		want                             bool
	}{
		"nothing happens":          {live: 50 * mega},
		"a little":                 {live: 50 * mega, sinceGaveBack: 10 * mega, sinceLooked: mega},
		"a burst":                  {live: 50 * mega, sinceGaveBack: 200 * mega, sinceLooked: 100 * mega},
		"after a burst":            {live: 50 * mega, sinceGaveBack: 200 * mega, sinceLooked: mega, want: true},
		"after many little things": {live: 50 * mega, sinceGaveBack: 20 * mega, sinceLooked: mega, want: true},
		"little for a large heap":  {live: 500 * mega, sinceGaveBack: 100 * mega, sinceLooked: mega},
		"much for a large heap":    {live: 500 * mega, sinceGaveBack: 200 * mega, sinceLooked: 30 * mega, want: true},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			now := state{live: test.live, allocated: 1000 * mega}
			if got := now.isAfterBurst(now.allocated-test.sinceLooked, now.allocated-test.sinceGaveBack); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestWantedPercent(t *testing.T) {
	for live, want := range map[uint64]int{
		0: initialPercent, 1: maxPercent, 10 * mega: 240, 24 * mega: 100, 40 * mega: 60, 48 * mega: 50, 100 * mega: 50, 1000 * mega: 50,
	} {
		if got := (state{live: live}).wantedPercent(); got != want {
			t.Errorf("%d bytes live: got %d, want %d", live, got, want)
		}
	}
}

// What users have told the collector stays.
func TestKeeperAdapts(t *testing.T) {
	before := debug.SetGCPercent(70)
	defer debug.SetGCPercent(before)

	keeper := &Keeper{}
	keeper.adapt(logr.Discard())

	if got := debug.SetGCPercent(70); got != 70 {
		t.Errorf("what the user has set became %d", got)
	}

	living := make([]byte, 200*mega)

	runtime.GC()

	keeper.percent = 70
	keeper.adapt(logr.Discard())

	if got := debug.SetGCPercent(70); got != 50 {
		t.Errorf("the heap may grow by %d percent", got)
	}

	runtime.KeepAlive(living)
}

// The limit is a wish: what lives always has a third more to grow by before the next collection.
func TestWantedLimit(t *testing.T) {
	tests := map[string]struct {
		state state
		limit int64
		want  int64
	}{
		"far below":               {state{live: 100 * mega, other: 20 * mega}, 400 * mega, 400 * mega},
		"near":                    {state{live: 300 * mega, other: 20 * mega}, 400 * mega, 420 * mega},
		"above":                   {state{live: 600 * mega, other: 20 * mega}, 400 * mega, 820 * mega},
		"a little above":          {state{live: 300 * mega, other: 20*mega + 1}, 400 * mega, 424 * mega},
		"a little more above":     {state{live: 300 * mega, other: 22 * mega}, 400 * mega, 424 * mega},
		"a limit that is no step": {state{live: 300 * mega, other: mega}, 401*mega + 7, 401*mega + 7},
		"just beyond all":         {state{other: 1<<63 - 2}, 400 * mega, 1<<63 - 1},
		"beyond all":              {state{live: 1 << 63, other: 20 * mega}, 400 * mega, 1<<63 - 1},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.state.wantedLimit(test.limit); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

var kept [][]byte

// What a burst has left behind goes back to the kernel once the process is at rest, and not while it works.
func TestKeeperGivesBack(t *testing.T) {
	keeper := NewKeeper()
	keeper.giveBack(logr.Discard())

	for range 256 {
		kept = append(kept, make([]byte, mega))
	}

	burst := resident()
	kept = nil

	keeper.giveBack(logr.Discard())

	if during := resident(); during < burst-64*mega {
		t.Errorf("it gave back while the process worked: %d bytes of %d are left", during, burst)
	}

	keeper.giveBack(logr.Discard())

	if after := resident(); after > burst-192*mega {
		t.Errorf("%d bytes of %d are left", after, burst)
	}

	collections := runs()
	keeper.giveBack(logr.Discard())

	if runs() != collections {
		t.Error("it collects while nothing happens")
	}
}

// resident is what the heap has of the kernel.
func resident() uint64 {
	var stats runtime.MemStats

	runtime.ReadMemStats(&stats)

	return stats.HeapSys - stats.HeapReleased
}

// runs is how often garbage was collected.
func runs() uint32 {
	var stats runtime.MemStats

	runtime.ReadMemStats(&stats)

	return stats.NumGC
}

func TestKeeperHeeds(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)

	t.Setenv("GOMEMLIMIT", "")

	keeper := &Keeper{root: fstest.MapFS{"sys/fs/cgroup/memory.max": {Data: []byte("1000000000\n")}}}
	keeper.heed(logr.Discard())

	if got := debug.SetMemoryLimit(-1); got != before {
		t.Errorf("what the user has set became %d", got)
	}

	if err := os.Unsetenv("GOMEMLIMIT"); err != nil { // Setenv above restores it
		t.Fatal(err)
	}

	keeper.heed(logr.Discard())

	if got := debug.SetMemoryLimit(-1); got != 800000000 {
		t.Errorf("the limit is %d", got)
	}

	// Less than what lives: the limit gives way.
	keeper.limit = mega
	living := make([]byte, 64*mega)

	runtime.GC()
	keeper.adapt(logr.Discard())

	if got := debug.SetMemoryLimit(-1); got < 80*mega {
		t.Errorf("the limit is %d with %d bytes that live", got, len(living))
	}

	runtime.KeepAlive(living)
}
