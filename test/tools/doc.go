// SPDX-License-Identifier: Apache-2.0

// Package tools builds the programs that the tests and the demo run besides Ichor itself: the Kubernetes API server,
// its controller manager, kubectl, etcd, the Cluster API core manager and clusterctl, and a validator for each older minor
// of Talos whose configuration Ichor writes. All come from Go modules whose versions and checksums are pinned in nested modules
// below this directory, so a machine with a Go toolchain and a module proxy needs nothing else.
//
// Built files are kept in a cache, in a directory named by everything that decides their content. A file that is there
// is therefore the right one, and asking for it again costs a few file reads.
//
// The package uses the standard library alone. It is for packages under test/ and for the program in build/.
package tools
