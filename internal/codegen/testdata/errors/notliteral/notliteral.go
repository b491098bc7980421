// SPDX-License-Identifier: Apache-2.0

// Package notliteral registers a kind with a function that is defined elsewhere.
package notliteral

import "github.com/maesh-dev/ichor/internal/codegen/testdata/registry"

type doc struct{}

func newDoc(string) any { return &doc{} }

func init() { registry.Register("A", newDoc) }
