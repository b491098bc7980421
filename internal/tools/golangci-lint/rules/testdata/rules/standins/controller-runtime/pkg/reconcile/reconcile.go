// SPDX-License-Identifier: Apache-2.0

// Package reconcile stands in for the real one.
package reconcile

import "time"

// Result stands in for the real one.
type Result struct {
	Requeue      bool
	RequeueAfter time.Duration
}
