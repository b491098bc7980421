// SPDX-License-Identifier: Apache-2.0

// Package rights compares what the roles of an installation allow a manager with what the API server was asked by it: a right that is
// missing, and one that has no use.
//
// It is not pure, and only packages under test/ may import it.
package rights
