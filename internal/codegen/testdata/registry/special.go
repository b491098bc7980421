// SPDX-License-Identifier: Apache-2.0

package registry

// Meta is what every document begins with.
type Meta struct {
	MetaAPIVersion string `yaml:"apiVersion,omitempty"`
	MetaKind       string `yaml:"kind"`
}

// Size has a wire form of its own.
type Size struct{ bytes uint64 }

// MarshalText writes the size.
func (s Size) MarshalText() ([]byte, error) { return nil, nil }

// Mode is an enum.
type Mode int

// UnmarshalText reads the mode.
func (m *Mode) UnmarshalText([]byte) error { return nil }

// Free is content without a schema.
type Free map[string]any
