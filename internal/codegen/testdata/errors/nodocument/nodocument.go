// SPDX-License-Identifier: Apache-2.0

// Package nodocument registers a kind that has no document.
package nodocument

import "github.com/maesh-dev/ichor/internal/codegen/testdata/registry"

func init() { registry.Register("A", func(string) any { return nil }) }
