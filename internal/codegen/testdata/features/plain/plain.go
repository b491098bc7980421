// SPDX-License-Identifier: Apache-2.0

// Package plain has every plain type, and special ones that rows substitute.
package plain

import (
	"time"

	"github.com/maesh-dev/ichor/internal/codegen/testdata/registry"
)

func init() {
	registry.Register("ScalarConfig", func(string) any { return &ScalarConfig{} })
}

// Ports is a list that merges in its own way.
type Ports []Port

// Port is a number or a range.
type Port struct{ Lo, Hi uint16 }

// UnmarshalYAML reads either.
func (p *Port) UnmarshalYAML(func(any) error) error { return nil }

// Args is a plain map.
type Args map[string]Arg

// Arg is a string or a list.
type Arg struct{ one string }

// UnmarshalYAML reads either.
func (a *Arg) UnmarshalYAML(func(any) error) error { return nil }

// FileMode is a number.
type FileMode uint32

// Base64 is bytes.
type Base64 []byte

// MarshalYAML writes base64.
func (b Base64) MarshalYAML() (any, error) { return nil, nil }

// ScalarConfig is the document.
type ScalarConfig struct {
	Text     string            `yaml:"text"`
	Flag     bool              `yaml:"flag"`
	Pointer  *string           `yaml:"pointer,omitempty"`
	Small    uint8             `yaml:"small"`
	Wide     uint32            `yaml:"wide"`
	Signed   int               `yaml:"signed"`
	Size64   uint64            `yaml:"size64"`
	Texts    []string          `yaml:"texts,omitempty"`
	Numbers  []uint16          `yaml:"numbers,omitempty"`
	Labels   map[string]string `yaml:"labels,omitempty"`
	Interval time.Duration     `yaml:"interval,omitempty"`
	Size     *registry.Size    `yaml:"size,omitempty"`
	Mode     registry.Mode     `yaml:"mode"`
	Ports    Ports             `yaml:"ports,omitempty"`
	Args     Args              `yaml:"extraArgs,omitempty"`
	FileMode FileMode          `yaml:"fileMode"`
	CA       Base64            `yaml:"ca,omitempty"`
	TLSName  string            `yaml:"tlsServerName"`
	NodeIP   string            `yaml:"nodeIP"`
	skipped  string
	Skipped  string `yaml:"-"`
}
