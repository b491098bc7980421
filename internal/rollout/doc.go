// SPDX-License-Identifier: Apache-2.0

// Package rollout decides what happens next to a control plane: Plan takes a Snapshot, everything that was read of a Cluster at one
// time, and gives a Decision: at most one action, a reason for programs, a sentence for people, and when to look again. It is PURE.
// Who carries decisions out, observes again and asks again; there is no other memory than the records in the Snapshot, so that a
// controller may be killed between any two steps.
//
// The order in steps (plan.go) says what comes first. The gates of creation, deletion and remediation (gate.go) say what must hold,
// with a line of reason each; testdata/gates.golden has them for reading. Together they are the safety specification.
//
// The control plane's reconciler and the command line import it.
package rollout
