// SPDX-License-Identifier: Apache-2.0

// Package references has fields whose values come from Secrets and ConfigMaps.
package references

import "github.com/maesh-dev/ichor/internal/codegen/testdata/registry"

func init() {
	registry.Register("LoginConfig", func(string) any { return &LoginConfig{} })
}

// LoginConfig has a field of each form.
type LoginConfig struct {
	APIToken string            `yaml:"apiToken"`
	Identity *Identity         `yaml:"identity"`
	Content  string            `yaml:"content" merge:"replace"`
	Headers  map[string]string `yaml:"headers"`
	Env      []string          `yaml:"env"`
	Pod      registry.Free     `yaml:"pod"`
	Pods     []registry.Free   `yaml:"pods"`
}

// Identity encodes itself.
type Identity struct {
	Crt []byte
	Key []byte
}

// MarshalYAML writes base64.
func (Identity) MarshalYAML() (any, error) { return nil, nil }
