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

			ours := testing.AllocsPerRun(5, func() { mustCall(t, render) })
			bare := testing.AllocsPerRun(5, func() { mustCall(t, each.bare) })

			if ratio := ours / bare; ratio > maxRenderAllocs {
				t.Errorf("a render makes %.0f allocations, %.2f times the %.0f of bare machinery; the limit is %.2f", ours, ratio, bare, maxRenderAllocs)
			}
		})
	}
}

func mustCall(t *testing.T, call func() error) {
	t.Helper()

	if err := call(); err != nil {
		t.Fatal(err)
	}
}
