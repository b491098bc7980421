// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"slices"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

// Provenance says, for each value of a config, which object set it and what it covered.
type Provenance struct {
	// Leaves are the values of the config, in the order of its documents.
	Leaves []Leaf `json:"leaves"`

	// Ineffective are the sources that changed nothing: what they say was there already, or what they remove was not.
	Ineffective []Source `json:"ineffective,omitempty"`

	in        *Input
	history   map[address][]Setting
	effective map[Source]bool
	order     []Source
}

// Leaf is one value of a config.
type Leaf struct {
	// Document is the Talos document, for example "UserVolumeConfig/longhorn".
	Document string `json:"document"`

	// Path is the value's JSON Pointer within the document.
	Path string `json:"path"`

	// Value in text form; a secret one shows as a mask in every format.
	Value merge.Value `json:"value"`

	// Secret marks a value that is masked.
	Secret bool `json:"secret,omitempty"`

	// SetBy is what set the value last.
	SetBy Source `json:"setBy"`

	// Covered are the earlier settings of the value, the latest first.
	Covered []Setting `json:"covered,omitempty"`
}

// Setting is one object's setting of a value.
type Setting struct {
	Source Source      `json:"source"`
	Value  merge.Value `json:"value"`
}

type address struct {
	id      merge.ID
	pointer string
}

func newProvenance(in *Input) *Provenance {
	return &Provenance{
		in:        in,
		history:   map[address][]Setting{},
		effective: map[Source]bool{},
	}
}

// observer records what a source sets. It is nil, and costs nothing, on a nil Provenance.
func (p *Provenance) observer(source Source) merge.Observer {
	if p == nil {
		return nil
	}

	p.order = append(p.order, source)

	return func(change merge.Change) {
		at := address{change.ID, change.Pointer}

		switch change.Op {
		case merge.OpMove:
			from := address{change.ID, change.From}
			p.history[at] = p.history[from]
			delete(p.history, from)
		case merge.OpDelete:
			p.effective[source] = true
			delete(p.history, at)
		case merge.OpSet:
			if !change.Same() {
				p.effective[source] = true
			}

			// What the base set is recorded by no step, so it is taken from the first change that covers it.
			if len(p.history[at]) == 0 && change.Old != nil {
				p.history[at] = append(p.history[at], Setting{originOf(p.in, change.ID, change.Pointer), *change.Old})
			}

			p.history[at] = append(p.history[at], Setting{source, *change.New})
		}
	}
}

// finish joins the record with the values of the final config.
func (p *Provenance) finish(merged *merge.Config) {
	for _, leaf := range merged.Leaves() {
		history := p.history[address{leaf.ID, leaf.Pointer}]
		entry := Leaf{Document: leaf.ID.String(), Path: leaf.Pointer, Value: leaf.Value, Secret: leaf.Value.Secret()}

		if len(history) == 0 {
			entry.SetBy = originOf(p.in, leaf.ID, leaf.Pointer)
		} else {
			entry.SetBy = history[len(history)-1].Source
			entry.Covered = slices.Clone(history[:len(history)-1])
			slices.Reverse(entry.Covered)
		}

		p.Leaves = append(p.Leaves, entry)
	}

	for _, source := range p.order {
		if !p.effective[source] {
			p.Ineffective = append(p.Ineffective, source)
		}
	}

	// What follows from it is told; it would show secrets to a format verb, which calls no method of what is not exported.
	p.history, p.effective = nil, nil
}
