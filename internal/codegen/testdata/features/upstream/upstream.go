// SPDX-License-Identifier: Apache-2.0

// Package upstream has a free-form field that a type of another project reads.
package upstream

import "github.com/maesh-dev/ichor/internal/codegen/testdata/registry"

func init() {
	registry.Register("ServiceConfig", func(string) any { return &ServiceConfig{} })
}

// ServiceConfig is the document.
type ServiceConfig struct {
	Config registry.Free `yaml:"config"`
}
