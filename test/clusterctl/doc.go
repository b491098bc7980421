// SPDX-License-Identifier: Apache-2.0

// Package clusterctl runs Cluster API's real clusterctl on a management cluster of the test world, with a repository that has the
// providers of this checkout, as a release would have them, and those of Cluster API's own release: its core provider and CAPD.
// The harness runs what clusterctl installs.
//
// It is not pure, and only packages under test/ may import it.
package clusterctl
