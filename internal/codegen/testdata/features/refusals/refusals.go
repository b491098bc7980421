// SPDX-License-Identifier: Apache-2.0

// Package refusals has refused fields of every shape, next to fields that are not refused.
package refusals

import "github.com/maesh-dev/ichor/internal/codegen/testdata/registry"

func init() {
	registry.Register("SecretConfig", func(string) any { return &SecretConfig{} })
}

// SecretConfig is the document.
type SecretConfig struct {
	Token    string            `yaml:"token"`
	Key      []byte            `yaml:"key"`
	CA       *Pair             `yaml:"ca,omitempty"`
	Accepted []*Pair           `yaml:"accepted,omitempty"`
	Tokens   []string          `yaml:"tokens,omitempty"`
	ByHost   map[string]string `yaml:"byHost,omitempty"`
	Free     registry.Free     `yaml:"free,omitempty"`
	Harmless string            `yaml:"harmless"`
}

// Pair is not mirrored: nothing else uses it.
type Pair struct{ Crt, Key []byte }
