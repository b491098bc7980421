// SPDX-License-Identifier: Apache-2.0

// Package rivals has the test of two managers that work at once, without leader election, while they are killed at random and machines
// come and go.
package rivals
