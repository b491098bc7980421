// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
)

// TestRenderAllocations asserts of the speed of a render what does not depend on the machine.
func TestRenderAllocations(t *testing.T) {
	machines, err := renderMachines()
	if err != nil {
		t.Fatal(err)
	}

	for _, each := range machines {
		t.Run(each.name, func(t *testing.T) {
			render := renderCall(each.input)

			for name, call := range map[string]func() error{"render": render, "bare machinery": each.bare} {
				if err := call(); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}

			ours := testing.AllocsPerRun(5, func() { _ = render() })   //nolint:errcheck // checked above
			bare := testing.AllocsPerRun(5, func() { _ = each.bare() }) //nolint:errcheck // checked above

			if ratio := ours / bare; ratio > maxRenderAllocs {
				t.Errorf("a render makes %.0f allocations, %.2f times the %.0f of bare machinery; the limit is %.2f", ours, ratio, bare, maxRenderAllocs)
			}
		})
	}
}
