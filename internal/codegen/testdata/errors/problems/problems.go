// SPDX-License-Identifier: Apache-2.0

// Package problems registers kinds each of which the generator must refuse, and one that it takes.
package problems

import (
	other "github.com/maesh-dev/ichor/internal/codegen/testdata/errors/problems/registry"
	"github.com/maesh-dev/ichor/internal/codegen/testdata/registry"
)

func init() {
	registry.Register("Good", func(string) any { return &Good{} })
	registry.Register("SpecialStruct", func(string) any { return &SpecialStruct{} })
	registry.Register("SpecialEnum", func(string) any { return &SpecialEnum{} })
	registry.Register("ShortEnum", func(string) any { return &ShortEnum{} })
	registry.Register("OtherMerge", func(string) any { return &OtherMerge{} })
	registry.Register("FreeForm", func(string) any { return &FreeForm{} })
	registry.Register("AnyField", func(string) any { return &AnyField{} })
	registry.Register("FloatField", func(string) any { return &FloatField{} })
	registry.Register("IntKeys", func(string) any { return &IntKeys{} })
	registry.Register("Untagged", func(string) any { return &Untagged{} })
	registry.Register("Recursive", func(string) any { return &Recursive{} })
	registry.Register("Nameless", func(string) any { return &Nameless{} })
	registry.Register("SoundsSecret", func(string) any { return &SoundsSecret{} })
	registry.Register("SameGoName", func(string) any { return &SameGoName{} })
	registry.Register("SameWireName", func(string) any { return &SameWireName{} })
	registry.Register("InlineMap", func(string) any { return &InlineMap{} })
	registry.Register("NoStruct", func(string) any { return &NoStruct{} })
	registry.Register("SameTypeName", func(string) any { return &SameTypeName{} })
}

// Good has nothing wrong.
type Good struct {
	Text string `yaml:"text"`
	Flag bool   `yaml:"flag"`
}

// SpecialStruct has a field with a wire form of its own, within a list within a struct.
type SpecialStruct struct {
	Inner struct2 `yaml:"inner"`
}

type struct2 struct {
	Sizes []registry.Size `yaml:"sizes"`
}

// SpecialEnum has a named type that is no struct.
type SpecialEnum struct {
	Level level `yaml:"level"`
}

type level int

// ShortEnum has an enum with values that a row may have missed.
type ShortEnum struct {
	Phase Phase `yaml:"phase"`
}

// Phase is an enum.
type Phase int

// The phases.
const (
	PhaseWaiting Phase = iota
	PhaseReady
	PhaseDefault = PhaseWaiting
)

// OtherMerge has a field that merges in a way that no one knows.
type OtherMerge struct {
	Text []string `yaml:"text" merge:"shuffle"`
}

// FreeForm has a named map.
type FreeForm struct {
	Free registry.Free `yaml:"free"`
}

// AnyField has content without a type.
type AnyField struct {
	Content any `yaml:"content"`
}

// FloatField has a number that JSON and Talos could write differently.
type FloatField struct {
	Ratio float32 `yaml:"ratio"`
}

// IntKeys has a map that is no JSON object.
type IntKeys struct {
	Ports map[int]string `yaml:"ports"`
}

// Untagged leaves a field's wire name open.
type Untagged struct {
	Text string
}

// Recursive contains itself.
type Recursive struct {
	Children []Node `yaml:"children"`
}

// Node has nodes.
type Node struct {
	Children []Node `yaml:"children"`
}

// Nameless is keyed by a name that it has not.
type Nameless struct {
	Text string `yaml:"text"`
}

// Name is the key.
func (*Nameless) Name() string { return "" }

// SoundsSecret has a field that is called like a secret, within a list of structs.
type SoundsSecret struct {
	Inner []sounding `yaml:"inner"`
}

type sounding struct {
	Text string `yaml:"apiToken"`
}

// SameGoName has two fields that become one Go name.
type SameGoName struct {
	A string `yaml:"tlsName"`
	B string `yaml:"TLSName"`
}

// SameWireName has two fields of one wire name, one of them inlined.
type SameWireName struct {
	inlined `yaml:",inline"`

	Text string `yaml:"text"`
}

type inlined struct {
	Text string `yaml:"text"`
}

// InlineMap inlines what is no struct.
type InlineMap struct {
	Rest map[string]string `yaml:",inline"`
}

// NoStruct is no struct.
type NoStruct map[string]string

// SameTypeName uses two types that become one Go name.
type SameTypeName struct {
	A registry.Meta `yaml:"a"`
	B other.Meta    `yaml:"b"`
}
