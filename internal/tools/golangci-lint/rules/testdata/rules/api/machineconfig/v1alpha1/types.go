// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is exempt from the rules for hand-written kinds: it mirrors another project's documents.
package v1alpha1

import "time"

// Mirror has what a hand-written kind may not have.
type Mirror struct {
	Enabled bool
	Timeout time.Duration `json:"timeout"`
}
