// SPDX-License-Identifier: Apache-2.0

package harness

import "testing"

// ForTest starts a management cluster that ends with the test. A test that failed shows the end of each component's log.
// A component that ended by itself fails the test.
func ForTest(t testing.TB, options Options) *ManagementCluster {
	t.Helper()
	mc, err := StartManagementCluster(t.Context(), options)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		tails := map[string]string{}
		if t.Failed() {
			tails = mc.logTails(50)
		}
		if err := mc.Stop(); err != nil {
			t.Errorf("stop management cluster: %v", err)
		}
		for name, tail := range tails {
			t.Logf("log of %s:\n%s", name, tail)
		}
	})
	return mc
}
