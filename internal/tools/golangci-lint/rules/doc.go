// SPDX-License-Identifier: Apache-2.0

// Package rules proves the lint rules of this repository on fixtures. It holds a test only, beside the linter but not in
// its package, whose hundreds of dependencies would otherwise be compiled once more for the test. Nothing imports it.
package rules
