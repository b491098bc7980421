// SPDX-License-Identifier: Apache-2.0

//go:build race

package taloscontrolplane

// The race detector makes a life several times as long.
func init() { defaultLives, defaultStride = 15, 8 }
