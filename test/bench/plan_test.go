// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

// TestPlan goes through the part at a small size. Times are for make bench alone.
func TestPlan(t *testing.T) {
	t.Parallel()

	results, err := measurePlan(t.Context(), small)
	if err != nil || len(results) != 2 || results[0].measured <= 0 {
		t.Errorf("got %+v, %v", results, err)
	}
}
