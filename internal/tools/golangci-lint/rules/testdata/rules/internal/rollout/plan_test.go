// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"os"
	"testing"
	"time"
)

// Tests of a pure package may look at files and clocks, but do not sleep.
func TestAge(t *testing.T) {
	want := time.Now()
	if _, err := os.Stat("testdata"); err == nil {
		t.Fatal(want)
	}
	time.Sleep(time.Second) // want "forbidigo: .*time.Sleep.*wait with a bound"
	Age(want)
}
