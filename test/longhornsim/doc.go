// SPDX-License-Identifier: Apache-2.0

// Package longhornsim plays Longhorn on a real API server: it installs Longhorn's CRDs and its webhook, and does what
// longhorn-manager does with the objects. Volumes attach to nodes, replicas lie on disks, fail, are rebuilt and evicted, and
// instance managers have pods and disruption budgets. No data is stored: machines, disks and processes are a model.
//
// A Sim looks at the cluster as one controller, and what it does is decided in the pure package model. Its clock is handed in:
// with a fake one, time passes when a test says so (Advance), and the same test does the same again.
//
// What Longhorn does is stated rule by rule, with the source of each, in the conformance table of this package's tests.
// README.md says how to use it, and what is different from Longhorn.
//
// It is not pure, and only packages under test/ and programs that start the test world may import it.
package longhornsim
