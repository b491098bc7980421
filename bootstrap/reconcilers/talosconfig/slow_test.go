// SPDX-License-Identifier: Apache-2.0

package talosconfig_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// patchLag is by how much the manager hears later of changes of TalosConfigPatches, in nanoseconds.
var patchLag atomic.Int64

// lagging slows what a watch of TalosConfigPatches says.
func lagging(request *http.Request, response *http.Response) {
	if request.URL.Query().Get("watch") == "true" && strings.HasSuffix(request.URL.Path, "/talosconfigpatches") {
		response.Body = lagged{response.Body, request.Context().Done()}
	}
}

type lagged struct {
	io.ReadCloser

	ended <-chan struct{}
}

func (l lagged) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)

	select {
	case <-time.After(time.Duration(patchLag.Load())):
	case <-l.ended:
	}

	return n, err
}

// A cache that hears late of what a report has written hides no change: the report after it would find its status of before, and that it has
// nothing to write.
func TestPatchReportOfASlowCache(t *testing.T) {
	w := newWorldAlone(t)
	w.bundle()
	w.cluster()
	w.create(clusterConfigYAML)
	w.create(patchYAML)
	w.machine("w-1", worker, "")
	w.ready("w-1")
	w.counts("sysctls", 1, 0)

	patchLag.Store(int64(3 * settle))
	t.Cleanup(func() { patchLag.Store(0) })

	joined := &clusterv1.Machine{}
	w.changeStatus(joined, "w-1", func() { joined.Status.NodeRef.Name = "w-1" })
	w.counts("sysctls", 1, 1)

	for i := range 2 {
		w.runs("w-1", 2-i)
		w.counts("sysctls", 1, int32(i))
	}
}
