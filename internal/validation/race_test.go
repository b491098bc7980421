// SPDX-License-Identifier: Apache-2.0

//go:build race

package validation

// allocationFactor is how much more the race detector has allocated: pools forget much of what they are given, by chance.
const allocationFactor = 6
