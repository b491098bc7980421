// SPDX-License-Identifier: Apache-2.0

// Package suggest finds the name that somebody probably meant.
//
// The package is PURE and imports nothing of ours. Everything may import it.
package suggest
