// SPDX-License-Identifier: Apache-2.0

// Package release makes the files of a release, and repositories for clusterctl with them, from the kustomizations of a checkout.
// internal/tools/release is its command. Tests install what it makes. It is not pure.
package release
