// SPDX-License-Identifier: Apache-2.0

// Package secrets names a source of randomness to hand in, and takes the clock as an input.
package secrets

import (
	"crypto/rand"
	"time"
)

// Source is what production code hands in.
var Source = rand.Reader

// Expires may not ask for the time itself.
func Expires() time.Time {
	return time.Now() // want "forbidigo: .*time.Now.*pure: time is an input"
}
