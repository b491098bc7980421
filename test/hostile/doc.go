// SPDX-License-Identifier: Apache-2.0

// Package hostile makes TalosConfigPatches as somebody would who wants to keep the manager or the API server busy. The tests of admission
// and the benchmarks share them. It is pure, and only packages under test/ may import it.
package hostile
