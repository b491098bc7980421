// SPDX-License-Identifier: Apache-2.0

// Package registry has the name of another package and a type of the same name.
package registry

// Meta collides.
type Meta struct {
	Text string `yaml:"text"`
}
