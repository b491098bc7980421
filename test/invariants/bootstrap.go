// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// bootstrapCall is a call in a transcript, with the node.
var bootstrapCall = regexp.MustCompile(`^(\S+): Bootstrap\b.* by \S+: \w+$`)

// checkBootstrap counts what calls have had an effect: one may. A node that goes down forgets what it has answered, and may be called again. All
// calls are of one node: one on another would make a second cluster, whether it got through or not.
func (w *Watch) checkBootstrap() {
	made, called := w.options.Bootstraps(), map[string]bool{}

	for line := range strings.Lines(w.options.Transcript()) {
		if call := bootstrapCall.FindStringSubmatch(strings.TrimSpace(line)); call != nil {
			called[call[1]] = true
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
