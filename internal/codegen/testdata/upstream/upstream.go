// SPDX-License-Identifier: Apache-2.0

// Package upstream is another project's: its fields have json tags, and it has what JSON knows and machinery's types do not.
package upstream

import "os"

// TypeMeta is embedded by whatever has an apiVersion and a kind.
type TypeMeta struct {
	Kind       string `json:"kind,omitempty"`
	APIVersion string `json:"apiVersion,omitempty"`
}

// Configuration has every form.
type Configuration struct {
	TypeMeta `json:",inline"`

	Ratio    float64             `json:"ratio"`
	Limit    *uint64             `json:"limit,omitempty"`
	Data     []byte              `json:"data,omitempty"`
	Level    Level               `json:"level"`
	Policy   Policy              `json:"policy,omitempty"`
	ByName   map[Policy]Policy   `json:"byName,omitempty"`
	Headers  map[string][]string `json:"headers,omitempty"`
	Port     int32               `json:"port"`
	Enabled  *bool               `json:"enabled"`
	Mode     *os.FileMode        `json:"mode,omitempty"`
	Plugins  []Plugin            `json:"plugins"`
	Internal string              `json:"-"`
	hidden   string

	Inlined
}

// Level is one of its constants.
type Level string

// The levels.
const (
	Low  Level = "low"
	High Level = "high"
)

// Policy is any text.
type Policy string

// Inlined has no tag and is part of what embeds it.
type Inlined struct {
	Text string `json:"text,omitempty"`
}

// Plugin has args that follow from its name.
type Plugin struct {
	Name string         `json:"name"`
	Args map[string]any `json:"args,omitempty"`
}

// FitArgs are those of one plugin.
type FitArgs struct {
	TypeMeta `json:",inline"`

	Weight int32 `json:"weight"`
}

// SpreadArgs are those of another one.
type SpreadArgs struct {
	TypeMeta `json:",inline"`

	Zones []string `json:"zones"`
}

// Wrong has what cannot be mirrored.
type Wrong struct {
	Untagged string
}

// Bare has a type that says neither its apiVersion nor its values.
type Bare struct {
	TypeMeta `json:",inline"`

	Level Level `json:"level"`
}

func (c Configuration) internal() string { return c.hidden }

var _ = Configuration.internal
