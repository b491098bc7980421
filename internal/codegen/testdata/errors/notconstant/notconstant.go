// SPDX-License-Identifier: Apache-2.0

// Package notconstant registers a kind whose name is computed.
package notconstant

import "github.com/maesh-dev/ichor/internal/codegen/testdata/registry"

var kind = "A"

type doc struct{}

func init() { registry.Register(kind, func(string) any { return &doc{} }) }
