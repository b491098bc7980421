// SPDX-License-Identifier: Apache-2.0

package invariants_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/maesh-dev/ichor/test/invariants"
	"github.com/maesh-dev/ichor/test/talossim"
)

// Bootstrap has an effect once; a call that is repeated on the same node may be none more.
func TestBootstrapCalls(t *testing.T) {
	tests := map[string]struct {
		transcript string
		made       int
		faults     int
	}{
		"none":                      {"cp1: boots v1.14.1\n", 0, 0},
		"one":                       {"cp1: Bootstrap by os:admin: OK\n", 1, 0},
		"one whose answer was lost": {"cp1: Bootstrap and loses power by os:admin: OK\ncp1: Bootstrap by os:admin: AlreadyExists\n", 1, 0},
		"one that came too early":   {"cp1: Bootstrap by os:admin: FailedPrecondition\ncp1: Bootstrap by os:admin: OK\n", 1, 0},
		"one that was forgotten":    {"cp1: Bootstrap and loses power by os:admin: OK\ncp1: Bootstrap by os:admin: OK\n", 1, 0},
		"two on one node":           {"cp1: Bootstrap by os:admin: OK\ncp1: Bootstrap by os:admin: OK\n", 2, 1},
		"two on two nodes":          {"cp1: Bootstrap by os:admin: OK\ncp2: Bootstrap by os:admin: OK\n", 2, 2},
		"a vain one on another":     {"cp1: Bootstrap by os:admin: OK\ncp2: Bootstrap by os:admin: Unavailable\n", 1, 1},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			watch := invariants.Start(t.Context(), invariants.Options{
				Nodes: func() []*talossim.Node { return nil }, Transcript: func() string { return test.transcript },
				Bootstraps: func() int { return test.made },
			})
			defer watch.Stop()

			g := NewWithT(t)
			err := watch.Check(t.Context())

			if test.faults == 0 {
				g.Expect(err).NotTo(HaveOccurred())

				return
			}

			joined, ok := err.(interface{ Unwrap() []error })
			g.Expect(ok).To(BeTrue())
			g.Expect(joined.Unwrap()).To(HaveLen(test.faults))
			g.Expect(brokenOf(t, err)).To(HaveKey(invariants.Bootstrap))
		})
	}
}
