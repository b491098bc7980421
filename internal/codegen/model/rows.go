// SPDX-License-Identifier: Apache-2.0

package model

import (
	"errors"
	"fmt"
	"go/types"
	"regexp"
	"slices"
	"strings"
)

// rowIndex finds rows by machinery's names and remembers which were used.
type rowIndex struct {
	tables Tables
	rows   map[string]any
	used   map[string]bool
}

// The tables, as errors name them.
const (
	inOffered    = "offered kind "
	inDenied     = "denied kind "
	inLater      = "later kind "
	inIdentity   = "identity "
	inScalars    = "substitution of "
	inLists      = "list "
	inMaps       = "map "
	inRefusals   = "refusal of "
	inOverrides  = "override of "
	inNotes      = "note on "
	inLimits     = "limit of "
	inHarmless   = "harmless "
	inSecrets    = "secret "
	inReferences = "reference for "
	inUpstream   = "upstream package "
	inTypeMetas  = "apiVersion and kind of "
	inObjects    = "object "
	inMerged     = "merged "
)

func indexTables(tables Tables) (*rowIndex, error) {
	x := &rowIndex{tables: tables, rows: map[string]any{}, used: map[string]bool{}}

	// Whatever explains a row is its reason: for an offered kind its sentence, for a refusal its message.
	err := errors.Join(
		index(x, inOffered, tables.Offered, func(r OfferedKind) (string, string) { return r.Kind, r.Doc }),
		index(x, inDenied, tables.Denied, func(r DecidedKind) (string, string) { return r.Kind, r.Reason }),
		index(x, inLater, tables.Later, func(r DecidedKind) (string, string) { return r.Kind, r.Reason }),
		index(x, inIdentity, tables.Identity, func(r IdentityRow) (string, string) { return r.Go, r.Reason }),
		index(x, inScalars, tables.Scalars, func(r ScalarRow) (string, string) { return r.Go, r.Reason }),
		index(x, inLists, tables.Lists, func(r ListRow) (string, string) { return r.Go, r.Reason }),
		index(x, inMaps, tables.Maps, func(r MapRow) (string, string) { return r.Go, r.Reason }),
		index(x, inRefusals, tables.Refusals, func(r Refusal) (string, string) { return r.Go, r.Message }),
		index(x, inOverrides, tables.Overrides, func(r Override) (string, string) { return r.Go, r.Reason }),
		index(x, inLimits, tables.Limits, func(r Limit) (string, string) { return r.Go, r.Reason }),
		index(x, inNotes, tables.Notes, func(r Note) (string, string) { return r.Go, r.Text }),
		index(x, inObjects, tables.Objects, func(r ObjectRow) (string, string) { return r.Go, r.Reason }),
		index(x, inHarmless, tables.Harmless, func(r HarmlessRow) (string, string) { return r.Go, r.Reason }),
		index(x, inSecrets, tables.Secrets, func(r SecretRow) (string, string) { return r.Go, r.Reason }),
		index(x, inReferences, tables.References, func(r ReferenceRow) (string, string) { return r.Go, r.Reason }),
		index(x, inUpstream, tables.Upstream, func(r UpstreamPackage) (string, string) { return r.Path, r.As }),
		index(x, inTypeMetas, tables.TypeMetas, func(r TypeMetaRow) (string, string) { return r.Go, r.reason() }),
		index(x, inMerged, tables.Merged, func(r MergedRow) (string, string) { return r.Name, r.Message }),
		notesThatFit(tables),
		decidedTwice(tables),
		ownersKnown(tables),
	)

	return x, err
}

// index adds the rows of a table, each under the name that the function gives along with its reason.
func index[R any](x *rowIndex, table string, rows []R, name func(R) (name, reason string)) error {
	var errs []error

	for _, row := range rows {
		key, reason := name(row)

		if _, dup := x.rows[table+key]; dup {
			errs = append(errs, fmt.Errorf("%s%s: two rows", table, key))
		}

		if reason == "" {
			errs = append(errs, fmt.Errorf("%s%s: the row gives no reason", table, key))
		}

		x.rows[table+key] = row
	}

	return errors.Join(errs...)
}

func notesThatFit(tables Tables) error {
	var errs []error

	for _, r := range tables.Notes {
		if first, newer := tables.Since[r.Go]; newer {
			r.Text += sinceSentence(first)
		}

		if len(r.Text) > tables.Bounds.MaxNote {
			errs = append(errs, fmt.Errorf("%s%s: %d bytes, at most %d fit the schema", inNotes, r.Go, len(r.Text), tables.Bounds.MaxNote))
		}
	}

	return errors.Join(errs...)
}

// decidedTwice finds kinds that stand in more than one table.
func decidedTwice(tables Tables) error {
	var errs []error

	where := map[string]string{}

	decide := func(kind, table string) {
		if first, dup := where[kind]; dup && first != table {
			errs = append(errs, fmt.Errorf("kind %s: both %s and %s", kind, first, table))
		}

		where[kind] = table
	}

	for _, r := range tables.Offered {
		decide(r.Kind, "offered")
	}

	for _, r := range tables.Denied {
		decide(r.Kind, "denied")
	}

	for _, r := range tables.Later {
		decide(r.Kind, "later")
	}

	return errors.Join(errs...)
}

func lookup[R any](x *rowIndex, table, name string) (R, bool) {
	row, ok := x.rows[table+name]
	if !ok {
		var none R

		return none, false
	}

	x.used[table+name] = true

	return row.(R), true //nolint:forcetypeassert // each table holds rows of one type
}

func (x *rowIndex) kind(name string) (offered *OfferedKind, decided bool) {
	if row, ok := lookup[OfferedKind](x, inOffered, name); ok {
		return &row, true
	}

	_, denied := lookup[DecidedKind](x, inDenied, name)
	_, later := lookup[DecidedKind](x, inLater, name)

	return nil, denied || later
}

func (x *rowIndex) identity(t types.Type, field string) bool {
	if _, ok := lookup[IdentityRow](x, inIdentity, field); ok {
		return true
	}

	named, ok := types.Unalias(t).(*types.Named)
	if !ok {
		return false
	}

	_, ok = lookup[IdentityRow](x, inIdentity, x.shortType(named))

	return ok
}

func (x *rowIndex) scalar(t types.Type) *ScalarRow {
	named, ok := types.Unalias(t).(*types.Named)
	if !ok {
		return nil
	}

	row, ok := lookup[ScalarRow](x, inScalars, x.shortType(named))
	if !ok {
		return nil
	}

	return &row
}

func (x *rowIndex) list(named *types.Named) bool {
	_, ok := lookup[ListRow](x, inLists, x.shortType(named))

	return ok
}

func (x *rowIndex) isMap(named *types.Named) bool {
	_, ok := lookup[MapRow](x, inMaps, x.shortType(named))

	return ok
}

func (x *rowIndex) refusal(field string) (string, bool) {
	row, ok := lookup[Refusal](x, inRefusals, field)

	return row.Message, ok
}

func (x *rowIndex) override(field string) (Form, bool) {
	row, ok := lookup[Override](x, inOverrides, field)

	return row.As, ok
}

// note is the text of a field in the schema, along with the first Talos that has it, and what only the reference says.
func (x *rowIndex) note(field string) (text, remark string) {
	row, _ := lookup[Note](x, inNotes, field)
	if row.ReferenceOnly {
		row.Text, remark = "", row.Text
	}

	if minor, newer := x.tables.Since[field]; newer {
		row.Text = strings.TrimSpace(row.Text + sinceSentence(minor))
	}

	return row.Text, remark
}

func sinceSentence(minor int) string { return fmt.Sprintf(" Since Talos 1.%d.", minor) }

func (x *rowIndex) limit(field string) (Limit, bool) { return lookup[Limit](x, inLimits, field) }

// unused lists the rows that matched nothing, sorted.
func (x *rowIndex) unused() []string {
	var out []string

	for key := range x.rows {
		if !x.used[key] {
			out = append(out, key)
		}
	}

	slices.Sort(out)

	return out
}

func (x *rowIndex) shortType(named *types.Named) string {
	if named.Obj().Pkg() == nil {
		return named.Obj().Name()
	}

	return strings.TrimPrefix(named.Obj().Pkg().Path(), x.tables.Prefix) + "." + named.Obj().Name()
}

func (x *rowIndex) shortName(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string { return strings.TrimPrefix(p.Path(), x.tables.Prefix) })
}

// checkScalar proves a substitution's row: its pattern compiles, its examples fit its own rules, and it has at least one.
func checkScalar(s *Scalar, bounds Bounds) error {
	if len(s.Doc) > bounds.MaxNote {
		return fmt.Errorf("%s%s: the text has %d bytes, at most %d fit the schema", inScalars, s.Source, len(s.Doc), bounds.MaxNote)
	}

	if len(s.Enum) > 0 {
		return nil
	}

	if len(s.Examples) == 0 {
		return fmt.Errorf("%s%s: the row has no example", inScalars, s.Source)
	}

	pattern, err := regexp.Compile(s.Pattern)
	if err != nil {
		return fmt.Errorf("%s%s: pattern: %w", inScalars, s.Source, err)
	}

	if (s.Rule == "") != (s.Message == "") {
		return fmt.Errorf("%s%s: a rule needs a message, and a message a rule", inScalars, s.Source)
	}

	for _, example := range s.Examples {
		if !pattern.MatchString(example) {
			return fmt.Errorf("%s%s: the example %q does not match the row's own pattern", inScalars, s.Source, example)
		}
	}

	return nil
}
