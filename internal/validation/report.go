// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/storage"
)

// Report is what was found.
type Report struct {
	// Faults are refused.
	Faults []Fault

	// Warnings are allowed and probably not meant. They carry no secret.
	Warnings []Warning

	// Rendered are warnings that each render with the object gives too.
	Rendered []string
}

// Warning is one thing that is allowed and probably not meant.
type Warning struct {
	// Field of the object.
	Field string

	// Message says why, and what to do.
	Message string
}

// String is "spec.platform: is Cloud, ...".
func (w Warning) String() string { return w.Field + ": " + w.Message }

// Fault is one thing that is wrong. It never has the value of a secret, and quotes other values only where few are allowed.
type Fault struct {
	// Field of the object, for example "spec.documents[0]". A part of a list with keys is named by its key: "spec.registries[ghcr.io]".
	Field string

	// Kind of the Talos document in Field, and Pointer, the RFC 6901 pointer within it. Empty when no document is meant.
	Kind, Pointer string

	// Document is the Talos document by kind and name, for example "UserVolumeConfig/data".
	Document string

	// Message says what is wrong and what is allowed.
	Message string
}

// Path is the field with that of the document: "spec.documents[0].kubeNodeConfig.labels[example.com/rack]".
func (f Fault) Path() string {
	document := machineconfigv1alpha1.DocumentKind(f.Kind).FieldName()
	if f.Pointer == "" || document == "" || !strings.HasPrefix(f.Field, "spec.documents[") {
		return f.Field
	}

	var path strings.Builder

	path.WriteString(f.Field + "." + document)

	for token := range strings.SplitSeq(strings.TrimPrefix(f.Pointer, "/"), "/") {
		token = unescape.Replace(token)
		if isName(token) {
			path.WriteString("." + token)
		} else {
			path.WriteString("[" + token + "]")
		}
	}

	return path.String()
}

// unescape takes back what RFC 6901 puts in the place of two characters.
var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// isName tells what can stand after a dot: the name of a field, or a key that looks like one.
func isName(token string) bool {
	for i, r := range token {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || r == '_'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}

	return token != ""
}

// Error is the fault as the API server shows it. The value is left out: it may be a password in the wrong place.
func (f Fault) Error() *field.Error {
	detail := f.Message
	if f.Pointer != "" && f.Path() == f.Field {
		detail = f.Pointer + ": " + detail
	}

	if f.Document != "" && f.Document != f.Kind {
		detail = f.Document + ": " + detail
	}

	return &field.Error{Type: field.ErrorTypeInvalid, Field: f.Path(), BadValue: field.OmitValueType{}, Detail: detail}
}

// Sentences are all warnings as the API server passes them on.
func (r *Report) Sentences() []string {
	sentences := make([]string, 0, len(r.Warnings)+len(r.Rendered))
	for _, warning := range r.Warnings {
		sentences = append(sentences, warning.String())
	}

	return append(sentences, r.Rendered...)
}

func (r *Report) fail(path *field.Path, message string) {
	r.Faults = append(r.Faults, Fault{Field: path.String(), Message: message})
}

func (r *Report) warn(path *field.Path, message string) {
	r.Warnings = append(r.Warnings, Warning{path.String(), message})
}

// addErrors takes over what Kubernetes' own validation found, without the values.
func (r *Report) addErrors(errs field.ErrorList) {
	for _, err := range errs {
		message := err.Detail
		if message == "" {
			message = strings.ToLower(err.Type.String())
		}

		r.Faults = append(r.Faults, Fault{Field: err.Field, Message: message})
	}
}

// addConfigErrors takes over the faults that the renderer knows of. What is no Error of its is said of the spec.
func (r *Report) addConfigErrors(err error) {
	faults := machineconfig.Errors(err)
	if len(faults) == 0 && err != nil {
		r.Faults = append(r.Faults, Fault{Field: "spec", Message: err.Error()})
	}

	for _, each := range faults {
		fault := Fault{Field: each.Source.Path, Document: each.Document, Message: each.Err.Error()}
		if each.Document == "" {
			fault.Field = strings.Trim(each.Source.Path+"."+each.Field, ".")
		} else {
			fault.Kind, _, _ = strings.Cut(each.Document, "/")
			fault.Pointer = each.Field
		}

		r.Faults = append(r.Faults, fault)
	}
}

func (r *Report) addStorageErrors(err error) {
	for _, each := range storage.Errors(err) {
		r.Faults = append(r.Faults, Fault{Field: cmp.Or(each.Field, "spec"), Message: each.Err.Error()})
	}
}

// done sorts what was found, and drops what was said twice.
func (r *Report) done() Report {
	type placed struct {
		path string
		Fault
	}

	// Each path is made once, and not for each comparison.
	faults := make([]placed, len(r.Faults))
	for i, fault := range r.Faults {
		faults[i] = placed{fault.Path(), fault}
	}

	slices.SortStableFunc(faults, func(a, b placed) int { return strings.Compare(a.path, b.path) })

	for i := range faults {
		r.Faults[i] = faults[i].Fault
	}

	r.Faults = slices.Compact(r.Faults)

	return *r
}
