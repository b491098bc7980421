// SPDX-License-Identifier: Apache-2.0

// Package merge is a subpackage of a pure package and as pure.
package merge

import "context" // want "depguard: .*context.*a pure package waits for nothing"

// Merge waits.
func Merge(ctx context.Context) { <-ctx.Done() }
