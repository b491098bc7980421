// SPDX-License-Identifier: Apache-2.0

// Package prose is how messages of several things are put: each once, sorted where the order says nothing, cut, capped and printable, so that they fit
// into a condition and stay the same as long as the facts are. It is PURE. Reconcilers and pure packages import it.
package prose
