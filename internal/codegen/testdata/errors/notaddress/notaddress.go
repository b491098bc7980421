// SPDX-License-Identifier: Apache-2.0

// Package notaddress registers a kind whose document is made elsewhere.
package notaddress

import "github.com/maesh-dev/ichor/internal/codegen/testdata/registry"

type doc struct{}

func newDoc() any { return &doc{} }

func init() { registry.Register("A", func(string) any { return newDoc() }) }
