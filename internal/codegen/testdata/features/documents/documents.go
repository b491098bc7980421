// SPDX-License-Identifier: Apache-2.0

// Package documents has a named kind, a single one, one under another discriminator, and one that is not offered.
package documents

import "github.com/maesh-dev/ichor/internal/codegen/testdata/registry"

const volumeKind = "VolumeConfig"

func init() {
	registry.Register(volumeKind, func(version string) any {
		switch version {
		case "v1alpha1":
			return &VolumeV1Alpha1{}
		default:
			return nil
		}
	})
	registry.Register("OOMConfig", func(string) any { return &OOM{} })
	registry.Register("old", func(string) any { return &Config{} })
	registry.Register("IdentityConfig", func(string) any { return &Identity{} })
}

// VolumeV1Alpha1 is keyed by name.
type VolumeV1Alpha1 struct {
	registry.Meta `yaml:",inline"`

	MetaName string `yaml:"name"`
	Secure   *bool  `yaml:"secure,omitempty"`
}

// Name makes it so.
func (v *VolumeV1Alpha1) Name() string { return v.MetaName }

// OOM has no name.
type OOM struct {
	registry.Meta `yaml:",inline"`

	Level int `yaml:"level"`
}

// Config is the old document.
type Config struct {
	Version string `yaml:"version"`
	Debug   *bool  `yaml:"debug,omitempty"`
}

// Identity is denied, so nothing of it is looked at.
type Identity struct {
	Secret any
}
