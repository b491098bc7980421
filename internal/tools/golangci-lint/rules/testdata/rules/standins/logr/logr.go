// SPDX-License-Identifier: Apache-2.0

// Package logr stands in for the real one.
package logr

// Logger stands in for the real one.
type Logger struct{}
