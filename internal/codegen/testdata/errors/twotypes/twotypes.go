// SPDX-License-Identifier: Apache-2.0

// Package twotypes registers a kind with a type for each version.
package twotypes

import "github.com/maesh-dev/ichor/internal/codegen/testdata/registry"

type (
	v1 struct{}
	v2 struct{}
)

func init() {
	registry.Register("A", func(version string) any {
		if version == "v2" {
			return &v2{}
		}

		return &v1{}
	})
}
