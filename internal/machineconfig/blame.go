// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

// maxNarrowing bounds the search for the field at fault: a step that sets more values than this is named as a whole.
const maxNarrowing = 64

// maxBlamed is how many faults are traced to their source; nobody mends more at once.
const maxBlamed = 16

// What may be to blame besides a step.
const (
	theBase = -1
	absent  = -2
)

// blame makes Errors of findings: each names the object that brought it. The steps are done once more, one by one; the step
// after which a finding is there to stay is the one to blame. What the base itself brings has no step, and is the Cluster's.
// This runs only when a render fails.
func (r *render) blame(findings []finding) []error {
	rest := len(findings) - maxBlamed
	if rest > 0 {
		findings = findings[:maxBlamed]
	}

	culprits := make([]int, len(findings))
	for i := range culprits {
		culprits[i] = absent
	}

	replay := merge.New(r.provider)

	for i := theBase; i < len(r.steps); i++ {
		if i != theBase {
			if err := r.steps[i].apply(replay, nil); err != nil {
				break
			}
		}

		if i != theBase && !slices.ContainsFunc(findings, r.steps[i].mayBring) {
			continue
		}

		present := r.findings(replay)
		for j, f := range findings {
			switch found := slices.ContainsFunc(present, f.same); {
			case found && culprits[j] == absent:
				culprits[j] = i
			case !found:
				culprits[j] = absent
			}
		}
	}

	faults := make([]error, 0, len(findings)+1)
	for j, f := range findings {
		faults = append(faults, r.fault(f, culprits[j]))
	}

	if rest > 0 {
		faults = append(faults, &Error{Reason: ReasonValidationFailed, Err: fmt.Errorf("and %d more faults: mend these first", rest)})
	}

	return faults
}

// mayBring says whether the step can bring, or take away, a finding: it touches the finding's document, or the legacy one, which
// other documents are checked against. What is said of no document may come from any.
func (s step) mayBring(f finding) bool {
	return f.document == (merge.ID{}) || slices.ContainsFunc(s.touches, func(id merge.ID) bool {
		return id == f.document || id.Kind == merge.LegacyKind || f.document.Kind == merge.LegacyKind
	})
}

func (r *render) fault(f finding, culprit int) *Error {
	if f.twin != (address{}) {
		return r.besideFault(f)
	}

	fault := &Error{
		Reason: ReasonValidationFailed,
		Source: Source{Layer: LayerBase, Kind: KindCluster, Name: r.in.Cluster.Name},
		Field:  f.field,
		Err:    f.err,
	}

	if f.advice != "" {
		fault.Err = fmt.Errorf("%w; %s", f.err, f.advice)
	}

	if f.document != (merge.ID{}) {
		fault.Document = f.document.String()
	}

	if f.source != (Source{}) {
		fault.Source = f.source

		return fault
	}

	if culprit == theBase || culprit == absent {
		return fault
	}

	fault.Source = r.steps[culprit].source
	if fault.Field == "" {
		fault.Document, fault.Field = r.narrow(culprit, f, fault.Document)
	}

	return fault
}

// narrow finds the field: of the values that the step set, the one without which the finding is not there, else, in a document
// that was there before, what they have in common.
func (r *render) narrow(culprit int, f finding, document string) (string, string) {
	merged := merge.New(r.provider)

	var set []address

	created := map[merge.ID]bool{}

	for i, each := range r.steps[:culprit+1] {
		var observe merge.Observer
		if i == culprit {
			observe = func(change merge.Change) {
				switch {
				case identifies(change.Pointer):
					created[change.ID] = created[change.ID] || change.Old == nil
				case change.Op == merge.OpSet:
					set = append(set, address{change.ID, change.Pointer})
				}
			}
		}

		if err := each.apply(merged, observe); err != nil {
			return document, ""
		}
	}

	// A rule of one document may be broken by another: then what the step wrote there is at fault.
	if within := ofDocument(set, f.document); len(within) > 0 {
		set = within
	}

	if len(set) == 0 || len(set) > maxNarrowing {
		return document, ""
	}

	if culprit, ok := r.withoutWhich(merged, set, f); ok {
		return culprit.id.String(), culprit.pointer
	}

	// In a document that the step brought, anything may be at fault, what it lacks too.
	id := set[0].id
	if created[id] {
		return id.String(), ""
	}

	if slices.ContainsFunc(set, func(each address) bool { return each.id != id }) {
		return document, ""
	}

	return id.String(), commonPointer(set)
}

func ofDocument(set []address, id merge.ID) []address {
	var within []address

	for _, each := range set {
		if each.id == id {
			within = append(within, each)
		}
	}

	return within
}

// withoutWhich finds the value without which the finding is not there: the first whose removal brings no other finding, else the first.
// A name that Talos' words quote, or a field that must be set, takes the finding along too, and is not at fault.
func (r *render) withoutWhich(merged *merge.Config, set []address, f finding) (address, bool) {
	var first *address

	before := r.findings(merged)

	for i := range set {
		left, ok := r.without(merged, set[i])
		if !ok || slices.ContainsFunc(left, f.same) {
			continue
		}

		if !slices.ContainsFunc(left, func(each finding) bool { return !slices.ContainsFunc(before, each.same) }) {
			return set[i], true
		}

		if first == nil {
			first = &set[i]
		}
	}

	if first == nil {
		return address{}, false
	}

	return *first, true
}

// without are the findings when one value is taken out. It is false when it cannot be.
func (r *render) without(merged *merge.Config, value address) ([]finding, bool) {
	without, err := merged.Clone()
	if err != nil {
		return nil, false
	}

	if removed, err := without.Delete(value.id, value.pointer, nil); err != nil || !removed {
		return nil, false
	}

	return r.findings(without), true
}

// commonPointer is the deepest pointer that is above all the others, or one that is given alone.
func commonPointer(set []address) string {
	common := strings.Split(set[0].pointer, "/")

	for _, each := range set[1:] {
		tokens := strings.Split(each.pointer, "/")
		n := 0

		for n < min(len(common), len(tokens)) && common[n] == tokens[n] {
			n++
		}

		common = common[:n]
	}

	return strings.Join(common, "/")
}

func sortFindings(findings []finding) {
	slices.SortFunc(findings, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.document.Kind, b.document.Kind), cmp.Compare(a.document.Name, b.document.Name), cmp.Compare(a.field, b.field))
	})
}
