// SPDX-License-Identifier: Apache-2.0

// Package load belongs to the generator.
package load

// Load loads.
func Load(bool) {}
