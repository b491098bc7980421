// SPDX-License-Identifier: Apache-2.0

// Package broken does not compile.
package broken

import "github.com/maesh-dev/ichor/internal/codegen/testdata/registry"

func init() { registry.Register("A", undefined) }
