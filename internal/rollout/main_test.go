// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain has the collector run less often: interleavings make much that is soon forgotten, and hold next to nothing.
func TestMain(m *testing.M) {
	debug.SetGCPercent(1_000)
	os.Exit(m.Run())
}
