// SPDX-License-Identifier: Apache-2.0

// Package twice registers a kind twice.
package twice

import "github.com/maesh-dev/ichor/internal/codegen/testdata/registry"

type doc struct{}

func init() {
	registry.Register("A", func(string) any { return &doc{} })
	registry.Register("A", func(string) any { return &doc{} })
}
