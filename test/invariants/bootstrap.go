// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// bootstrapCall is a call in a transcript: the node, and how it ended.
var bootstrapCall = regexp.MustCompile(`^(\S+): Bootstrap\b.* by \S+: (\w+)$`)

// checkBootstrap reads the transcript: of all calls one may have had an effect, and all are of one node. A second call on another
// node would make a second cluster, whether it got through or not.
func (w *Watch) checkBootstrap() {
	made, called := 0, map[string]bool{}

	for line := range strings.Lines(w.options.Transcript()) {
		call := bootstrapCall.FindStringSubmatch(strings.TrimSpace(line))
		if call == nil {
			continue
		}

		called[call[1]] = true

		if call[2] == "OK" {
			made++
		}
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	if made > 1 {
		w.fault(Bootstrap, "etcd was bootstrapped %d times", made)
	}

	if len(called) > 1 {
		w.fault(Bootstrap, "several nodes were told to bootstrap etcd: %s", strings.Join(slices.Sorted(maps.Keys(called)), ", "))
	}
}
