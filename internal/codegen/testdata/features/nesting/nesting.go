// SPDX-License-Identifier: Apache-2.0

// Package nesting has structs in fields, lists and maps, inlined and shared ones.
package nesting

import "github.com/maesh-dev/ichor/internal/codegen/testdata/registry"

func init() {
	registry.Register("BondConfig", func(string) any { return &Bond{} })
	registry.Register("LinkConfig", func(string) any { return &Link{} })
}

// Bond is the first document.
type Bond struct {
	registry.Meta `yaml:",inline"`
	Common        `yaml:",inline"`

	Mode string `yaml:"mode"`
}

// Link is the second.
type Link struct {
	registry.Meta `yaml:",inline"`
	Common        `yaml:",inline"`
}

// Common is inlined into both.
type Common struct {
	Addresses []Address         `yaml:"addresses,omitempty"`
	Routes    []*Route          `yaml:"routes,omitempty" merge:"replace"`
	Extra     map[string]*Route `yaml:"extra,omitempty"`
	Empty     *Empty            `yaml:"empty,omitempty"`
}

// Address is used once.
type Address struct {
	Address string `yaml:"address"`
}

// Route is shared.
type Route struct {
	Gateway Address `yaml:"gateway"`
}

// Empty says something by being there.
type Empty struct{}
