// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

// ObjectKey names a Secret or ConfigMap that documents of patches refer to, in the namespace of the patches.
type ObjectKey struct{ Kind, Name string }

// References are the values of the Secrets and ConfigMaps that the patches of a machine refer to. They exist in memory only, and their
// text form shows none of them.
type References struct {
	objects  map[ObjectKey]Object
	resolved bool

	// reserved are the names of Secrets that are not for patches, whatever is in them.
	reserved []string
}

// NewReferences takes the objects that ReferencedObjects names. One that does not exist is left out of the map: the patches
// that refer to it cannot be used.
func NewReferences(objects map[ObjectKey]Object) References {
	return References{objects: objects, resolved: true}
}

// String hides the values from every format verb.
func (References) String() string { return "references(hidden)" }

// GoString hides the values from %#v.
func (References) GoString() string { return "references(hidden)" }

// ReferencedObjects are the Secrets and ConfigMaps that the patches of a machine refer to, sorted by kind and name. Input needs no
// References for it. A selection that fails is Render's to report.
func ReferencedObjects(in Input) []ObjectKey {
	if !slices.ContainsFunc(in.Patches, func(patch *Patch) bool { return len(patch.objects) > 0 }) {
		return nil
	}

	patches, err := selectPatches(&in)
	if err != nil {
		return nil
	}

	var objects []ObjectKey
	for _, patch := range patches {
		objects = append(objects, patch.objects...)
	}

	return sortedObjects(objects)
}

func sortedObjects(objects []ObjectKey) []ObjectKey {
	slices.SortFunc(objects, func(a, b ObjectKey) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })

	return slices.Compact(objects)
}

// objectsOf are the objects that a document refers to.
func objectsOf(document *machineconfigv1alpha1.Document) []ObjectKey {
	var objects []ObjectKey
	for _, reference := range document.References() {
		objects = append(objects, ObjectKey{reference.Source.Kind, reference.Source.Name})
	}

	return sortedObjects(objects)
}

// secretsOf are the keys of Secrets that a document refers to.
func secretsOf(document *machineconfigv1alpha1.Document) []machineconfigv1alpha1.Source {
	var secrets []machineconfigv1alpha1.Source

	for _, reference := range document.References() {
		if reference.Source.Kind == machineconfigv1alpha1.SourceSecret {
			secrets = append(secrets, reference.Source)
		}
	}

	return secrets
}

// value looks a source up.
func (r References) value(source machineconfigv1alpha1.Source) (string, bool) {
	object := r.objects[ObjectKey{source.Kind, source.Name}]
	if object.refused || r.isReserved(source) {
		return "", false
	}

	value, ok := object.data[source.Key]

	return string(value), ok
}

func (r References) isReserved(source machineconfigv1alpha1.Source) bool {
	return source.Kind == machineconfigv1alpha1.SourceSecret && slices.Contains(r.reserved, source.Name)
}

// missing says what does not exist, or may not be referred to.
func (r References) missing(source machineconfigv1alpha1.Source) error {
	object, ok := r.objects[ObjectKey{source.Kind, source.Name}]
	if object.refused || r.isReserved(source) {
		return refusedSecret(source.Name)
	}

	if !ok {
		return &AbsentError{source.Kind, source.Name}
	}

	return fmt.Errorf("%s %q has no key %q: add it", kindWord(source.Kind), source.Name, source.Key)
}

// AbsentError says that a Secret or ConfigMap that is referred to does not exist.
type AbsentError struct {
	// Kind and Name of the object, in the namespace of what refers to it.
	Kind, Name string
}

// Error says what to do.
func (e *AbsentError) Error() string {
	return fmt.Sprintf("%s %q does not exist in the namespace: create it", kindWord(e.Kind), e.Name)
}

// kindWord is a kind at the beginning of an error: what looks like a word is in lower case there.
func kindWord(kind string) string {
	if kind == KindSecret {
		return "secret"
	}

	return kind
}

// referenceFaults makes an Error of each reference of a document that cannot be used.
func referenceFaults(source Source, refused *machineconfigv1alpha1.ReferenceError, references References) []error {
	faults := make([]error, 0, len(refused.Faults))

	for _, each := range refused.Faults {
		fault := &Error{
			Reason: ReasonInvalidReference, Source: source, Document: string(refused.Kind),
			Field: fieldPointer(each.Reference.Path), Err: errors.New(each.Message),
		}

		if each.Missing {
			fault.Err = references.missing(each.Reference.Source)
		}

		faults = append(faults, fault)
	}

	return faults
}

const (
	// shortestHidden is the length from which on a value, and shortestLine that from which on one line of it, is taken out of texts. What
	// is shorter is no secret, and in any text by chance.
	shortestHidden = 4
	shortestLine   = 12
)

// hide takes the values of Secrets that patches refer to out of the errors of a render. No check of Ichor's own quotes one, but Talos' and
// Kubernetes' may.
func (r References) hide(err error, patches []*Patch) error {
	if err == nil || len(r.objects) == 0 {
		return err
	}

	return masked(err, r.replacer(patches))
}

// masked is the error with its texts masked, and with the Errors that are in it.
func masked(err error, hidden *strings.Replacer) error {
	text := err.Error()
	if hidden.Replace(text) == text {
		return err
	}

	switch each := err.(type) { //nolint:errorlint // a walk over the tree looks at each node itself
	case *Error:
		fault := *each
		fault.Err = errors.New(hidden.Replace(each.Err.Error()))

		return &fault
	case interface{ Unwrap() []error }:
		var parts []error
		for _, part := range each.Unwrap() {
			parts = append(parts, masked(part, hidden))
		}

		return errors.Join(parts...)
	}

	if inner := errors.Unwrap(err); inner != nil {
		if before, found := strings.CutSuffix(text, inner.Error()); found {
			return fmt.Errorf("%s%w", hidden.Replace(before), masked(inner, hidden))
		}
	}

	return errors.New(hidden.Replace(text))
}

// replacer masks the values of Secrets that patches refer to in each form in which a text may have them.
func (r References) replacer(patches []*Patch) *strings.Replacer {
	var texts []string

	add := func(text string, least int) {
		if len(text) < least {
			return
		}

		quoted := strconv.Quote(text)
		texts = append(texts, text, quoted[1:len(quoted)-1], base64.StdEncoding.EncodeToString([]byte(text)))
	}

	for _, patch := range patches {
		for _, source := range patch.secrets {
			value, _ := r.value(source)
			add(value, shortestHidden)
			add(strings.TrimSpace(value), shortestHidden)

			for line := range strings.Lines(value) {
				add(strings.TrimSpace(line), shortestLine)
			}
		}
	}

	// The longest first: of two values that begin at the same place, the first of the list is taken.
	slices.SortFunc(texts, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })

	pairs := make([]string, 0, 2*len(texts))
	for _, text := range slices.Compact(texts) {
		pairs = append(pairs, text, merge.Mask)
	}

	return strings.NewReplacer(pairs...)
}
