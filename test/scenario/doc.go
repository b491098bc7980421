// SPDX-License-Identifier: Apache-2.0

// Package scenario tests Ichor as its users have it: whole clusters, from the objects that a user writes to Nodes that are ready,
// on the stage of package stage. It has tests only.
package scenario
