// SPDX-License-Identifier: Apache-2.0

// Package storage knows what a TalosStorage means: which one governs a machine, and what its preset prepares on a node.
//
// Longhorn applies the Node's disk annotation once, and ignores it as a whole, with no more than a log line, when anything in it is not
// as it wants. So what it would ignore is refused here, before a node gets it.
//
// The package is pure. Rendering and every controller that acts on storage may import it; it imports Talos' config types, of which the
// preparation is made, and internal/targeting and internal/version.
package storage
