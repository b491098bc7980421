// SPDX-License-Identifier: Apache-2.0

// Package version holds what Ichor knows about versions: the config formats (contracts) that Talos' machinery can produce, the
// Talos releases that nodes may run, which Kubernetes goes with which Talos, and since when Talos knows a document kind, a field or a
// value.
//
// Two things are kept apart here because mixing them breaks clusters. A Contract is a format: "v1.13" is how a machine config is
// written, and an old format stays valid on a newer Talos. A Talos is what a node runs: "v1.14.1".
//
// The package is pure: tables and functions over them. Every package of the module may import it; it imports Talos' machinery
// (config, compatibility, version, gendata) and nothing of Ichor.
package version
