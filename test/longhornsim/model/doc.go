// SPDX-License-Identifier: Apache-2.0

// Package model is what Longhorn does, as a function of the objects and the time: a State goes in with the machines behind it,
// and Settle changes it until nothing is left to do before time passes. The rules of admission are here too.
//
// Each rule names the place in Longhorn that it follows (longhorn-manager 1.12, unless it says otherwise). The table of claims
// in package longhornsim's tests holds the rules to what is known of Longhorn.
//
// The package is pure: it reads no clock, and no randomness. Only package longhornsim imports it.
package model
