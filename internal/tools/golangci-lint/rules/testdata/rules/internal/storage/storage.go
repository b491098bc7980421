// SPDX-License-Identifier: Apache-2.0

// Package storage is pure and clean.
package storage

// Volume is a volume.
type Volume struct{ Name string }
