// SPDX-License-Identifier: Apache-2.0

// Package scenario plays whole clusters, from the objects that a user writes to Nodes that are ready, on the stage of package stage.
// A Suite is the stage that the tests of a package share, a Scenario is one test on it, in a namespace of its own: what it does is
// told in steps, and after each of them the invariants of package invariants are looked at. The tests in this package are about
// Ichor's bootstrap provider and about the simulated infrastructure; those of other packages write their own on it.
//
// It is not pure, and only tests may import it.
package scenario
