// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"strings"

	"github.com/maesh-dev/ichor/internal/prose"
)

// Place is where something stands in the input.
type Place struct {
	// File as the input calls it. Empty when no single place is meant.
	File string

	// Index of the document in the file, from 0.
	Index int

	// Line in the file, from 1.
	Line int

	// Document is the Talos document, for example "UserVolumeConfig/longhorn"; "Config" is the legacy one. Empty when it is none.
	Document string

	// Pointer is the JSON Pointer of the field within the document, empty when the document as a whole is meant.
	Pointer string
}

// String is "patch.yaml:12".
func (p Place) String() string { return fmt.Sprintf("%s:%d", p.File, p.Line) }

// Fault is something that a patch cannot hold. It carries no value that could be a secret.
type Fault struct {
	Place

	// Message says what is wrong and what to do.
	Message string
}

// String is "patch.yaml:12: document 0: Config: /machine/token: cluster secret; ...".
func (f Fault) String() string {
	var parts []string

	if f.File != "" {
		parts = append(parts, f.Place.String(), fmt.Sprintf("document %d", f.Index))
	}

	for _, part := range []string{prose.InLine(f.Document), prose.InLine(f.Pointer), prose.Printable(f.Message)} {
		if part != "" {
			parts = append(parts, part)
		}
	}

	return strings.Join(parts, ": ")
}

// Error is why documents were not converted: at least one fault, in the order of the input.
type Error struct{ Faults []Fault }

// Error has a line for each fault.
func (e *Error) Error() string {
	lines := make([]string, len(e.Faults))
	for i, fault := range e.Faults {
		lines[i] = fault.String()
	}

	return strings.Join(lines, "\n")
}
