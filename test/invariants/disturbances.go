// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"slices"
	"strings"
	"time"

	"github.com/maesh-dev/ichor/test/talossim"
)

// election is how long a node that runs may be unhealthy before it counts as disturbed. Whoever loses the leader of etcd waits for the
// election of another, and so do the API servers of all; Kubernetes leaves a kubelet twice that time to report.
const election = 20 * time.Second

// sampleDisturbances counts the nodes that have been ready and are not. A machine that is destroyed is none any more.
func (w *Watch) sampleDisturbances() {
	nodes := w.options.Nodes()

	w.mu.Lock()
	defer w.mu.Unlock()

	var disturbed []string

	for _, node := range nodes {
		lastReady, wasReady := w.ready[node]

		switch state := node.State(); {
		case state == talossim.NodeReady:
			w.ready[node] = time.Now()
		case !wasReady || state == talossim.NodeDestroyed:
		case state == talossim.NodeUnhealthy && time.Since(lastReady) < election:
		default:
			disturbed = append(disturbed, node.Name()+" ("+string(state)+")")
		}
	}

	for node := range w.ready {
		if !slices.Contains(nodes, node) {
			delete(w.ready, node)
		}
	}

	w.most = max(w.most, len(disturbed))

	if len(disturbed) > w.allowed {
		slices.Sort(disturbed)
		w.fault(Disturbances, "%d nodes at once, where %d may be: %s", len(disturbed), w.allowed, strings.Join(disturbed, ", "))
	}
}

// Most is how many nodes have been disturbed at once so far.
func (w *Watch) Most() int {
	w.mu.Lock()
	defer w.mu.Unlock()

	return w.most
}
