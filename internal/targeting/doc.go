// SPDX-License-Identifier: Apache-2.0

// Package targeting is the one rule for which Clusters and Machines an object of ours applies to. TalosClusterConfig, TalosConfigPatch
// and TalosStorage target in the same way, and rendering, status and node operations must agree about it.
//
// The package is pure. Every package of the module may import it, except api/.
package targeting
