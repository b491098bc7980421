// SPDX-License-Identifier: Apache-2.0

// Package docs tests that the documentation has what the code has: reasons of conditions, events, metrics; and that the snippets of the test
// world's pages compile. It has tests only.
package docs
