// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// FormChange decides what it means that a field is read in another form than in the minor before. From and To are forms as Field
// has them. Every change needs a row, and every row must match one.
type FormChange struct {
	From, To string
	// Items is the first minor whose nodes take what only the new form has below the field, as items of a list. Zero if the change
	// needs no row in the table of fields.
	Items int
	// Reason says what follows from the change.
	Reason string
}

// Table says since when documents, fields and values are known: the minor of the first Talos. Fields are JSON Pointers in which
// "*" stands for any list index or map key.
type Table struct {
	// Releases are those that were compared, oldest first.
	Releases []*Release
	// FirstKinds has every kind of the newest release. What is older than the oldest release counts as that one's.
	FirstKinds map[string]int
	// FirstFields has what is newer than the kind and than the field that it is in.
	FirstFields map[string]map[string]int
	// FirstValues has what is newer than its field.
	FirstValues map[string]map[string]map[string]int
}

// Compare makes the table of releases that are in order, oldest first, without a gap between minors.
//
// It is an error if a release lost a kind or field that the one before had, if a field changed its form without a row that says
// what follows, and if a row matches nothing.
func Compare(releases []*Release, changes []FormChange) (*Table, error) {
	if len(releases) == 0 {
		return nil, errors.New("no release to compare")
	}

	c := comparison{
		table: &Table{
			Releases: releases, FirstKinds: map[string]int{}, FirstFields: map[string]map[string]int{},
			FirstValues: map[string]map[string]map[string]int{},
		},
		changes: changes,
		used:    make([]bool, len(changes)),
	}

	for kind := range releases[0].Documents {
		c.table.FirstKinds[kind] = releases[0].Minor
	}

	for i, next := range releases[1:] {
		before := releases[i]
		if next.Minor != before.Minor+1 {
			return nil, fmt.Errorf("release %s does not follow on %s: a minor between them is missing", next.Version, before.Version)
		}

		c.step(before, next)
	}

	for i, row := range changes {
		if !c.used[i] {
			c.fail("change from %s to %s: the row matches nothing; remove it or correct it", row.From, row.To)
		}
	}

	return c.table, errors.Join(c.errs...)
}

// Make reads the releases from their sources and compares them.
func Make(ctx context.Context, sources []Source, changes []FormChange) (*Table, error) {
	releases := make([]*Release, 0, len(sources))

	for _, from := range sources {
		release, err := Read(ctx, from)
		if err != nil {
			return nil, err
		}

		releases = append(releases, release)
	}

	return Compare(releases, changes)
}

type comparison struct {
	table   *Table
	changes []FormChange
	used    []bool
	errs    []error
}

func (c *comparison) fail(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf(format, args...))
}

// step takes one release after the one before.
func (c *comparison) step(before, next *Release) {
	for _, kind := range slices.Sorted(maps.Keys(before.Documents)) {
		if next.Documents[kind] == nil {
			c.fail("kind %s: %s has it and %s has not; say what nodes of the newer minor get instead", kind, before.Version, next.Version)
		}
	}

	for _, kind := range slices.Sorted(maps.Keys(next.Documents)) {
		old, known := before.Documents[kind]
		if !known {
			c.table.FirstKinds[kind] = next.Minor

			continue
		}

		c.document(kind, old, next.Documents[kind], before, next)
	}
}

func (c *comparison) document(kind string, old, now Document, before, next *Release) {
	for _, pointer := range slices.Sorted(maps.Keys(old)) {
		if _, kept := now[pointer]; !kept {
			c.fail("%s, field %s: %s has it and %s has not; say what nodes of the newer minor get instead", kind, pointer, before.Version, next.Version)
		}
	}

	// Sorted, so that what a field is in comes before it.
	for _, pointer := range slices.Sorted(maps.Keys(now)) {
		field := now[pointer]

		was, known := old[pointer]

		switch {
		case !known:
			// What came along with the field that it is in is as old as that one.
			if _, along := old[path.Dir(pointer)]; along || path.Dir(pointer) == "/" {
				set(c.table.FirstFields, kind, pointer, next.Minor)
			}
		case was.Form != field.Form:
			c.changed(kind, pointer, was.Form, field.Form, next)
		default:
			c.values(kind, pointer, was.Values, field.Values, next.Minor)
		}
	}
}

func (c *comparison) changed(kind, pointer, from, to string, next *Release) {
	for i, row := range c.changes {
		if row.From != from || row.To != to {
			continue
		}

		c.used[i] = true

		if row.Items != 0 {
			set(c.table.FirstFields, kind, pointer+"/*", row.Items)
		}

		return
	}

	c.fail("%s, field %s: %s reads %s, where the minor before read %s; say what follows in a row", kind, pointer, next.Version, to, from)
}

func (c *comparison) values(kind, pointer string, old, now []string, minor int) {
	if len(old) == 0 {
		return
	}

	for _, value := range now {
		if slices.Contains(old, value) {
			continue
		}

		if strings.Contains(pointer, "*") {
			c.fail("%s, field %s: the value %s is new; values in lists and maps are not looked at yet, see package version", kind, pointer, value)
		}

		if c.table.FirstValues[kind] == nil {
			c.table.FirstValues[kind] = map[string]map[string]int{}
		}

		set(c.table.FirstValues[kind], pointer, value, minor)
	}
}

func set(table map[string]map[string]int, outer, inner string, minor int) {
	if table[outer] == nil {
		table[outer] = map[string]int{}
	}

	table[outer][inner] = minor
}

// Newest is the newest release.
func (t *Table) Newest() *Release { return t.Releases[len(t.Releases)-1] }

// First is the minor of the first Talos that knows a field; the empty pointer asks for the kind.
func (t *Table) First(kind, pointer string) int {
	first := t.FirstKinds[kind]

	for at := pointer; strings.HasPrefix(at, "/") && at != "/"; at = path.Dir(at) {
		first = max(first, t.FirstFields[kind][at])
	}

	return first
}

// Fields tells for each field by machinery's names ("path.Type.Field") the minor that it came with, if it is newer than what it is in.
// Where a type is used in several places and the field came to them at different times, it is the latest.
func (t *Table) Fields() map[string]int {
	since := map[string]int{}

	for kind, rows := range t.FirstFields {
		for pointer, minor := range rows {
			if field := t.Newest().Documents[kind][pointer].Go; field != "" {
				since[field] = max(since[field], minor)
			}
		}
	}

	return since
}
