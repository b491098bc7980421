// SPDX-License-Identifier: Apache-2.0

// Package overrides has free-form fields with forms of their own, a note and limits.
package overrides

import "github.com/maesh-dev/ichor/internal/codegen/testdata/registry"

func init() {
	registry.Register("ResourcesConfig", func(string) any { return &ResourcesConfig{} })
}

// ResourcesConfig is the document.
type ResourcesConfig struct {
	Requests registry.Free `yaml:"requests,omitempty"`
	Expires  registry.Free `yaml:"expires,omitempty"`
	Content  string        `yaml:"content"`
	Hosts    []string      `yaml:"hosts,omitempty"`
}
