// SPDX-License-Identifier: Apache-2.0

// Package inventory finds, in a set of manifests, the machines that a config is rendered for, and everything that goes into each
// config, as the controllers find it in a management cluster.
//
// The command line imports it; it imports the pure packages. It makes secrets for clusters that come without, and so is not
// pure itself.
package inventory
