// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/maesh-dev/ichor/internal/cli/inventory"
	"github.com/maesh-dev/ichor/internal/cli/manifest"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/prose"
)

// Severity of a finding.
type Severity string

const (
	// SeverityError is what admission or a render refuses.
	SeverityError Severity = "error"

	// SeverityWarning is what is allowed and probably not meant.
	SeverityWarning Severity = "warning"
)

// Finding is one thing that is wrong with the input.
type Finding struct {
	Severity Severity `json:"severity"`

	// Location is where it stands, as nearly as is known. Absent when no single place is at fault.
	Location *manifest.Location `json:"location,omitempty"`

	// Object at fault. Absent when no single object is.
	Object *manifest.Ref `json:"object,omitempty"`

	// Path is the field within the object, for example "spec.documents[0]".
	Path string `json:"path,omitempty"`

	// Layer that the object contributes to, when a render found it.
	Layer machineconfig.Layer `json:"layer,omitempty"`

	// Document is the Talos document in the rendered config, for example "UserVolumeConfig/longhorn".
	Document string `json:"document,omitempty"`

	// Field is a JSON Pointer within Document.
	Field string `json:"field,omitempty"`

	// Reason is that of the TalosConfig's ConfigRendered condition, when a render found it.
	Reason machineconfig.Reason `json:"reason,omitempty"`

	// Message says what is wrong and what to do.
	Message string `json:"message"`

	// Machines on which a render found it, sorted. Absent when it does not depend on a machine.
	Machines []string `json:"machines,omitempty"`
}

// String is the finding as the text format has it after the severity: one line, unless the message has more.
func (f *Finding) String() string {
	var parts []string

	if f.Location != nil {
		parts = append(parts, f.Location.String())
	}

	if f.Object != nil {
		parts = append(parts, f.Object.String())
	}

	for _, part := range []string{prose.InLine(f.Path), prose.InLine(f.Document), prose.InLine(f.Field), prose.Printable(f.Message)} {
		if part != "" {
			parts = append(parts, part)
		}
	}

	text := strings.ReplaceAll(strings.Join(parts, ": "), "\n", "\n    ")

	if len(f.Machines) > 0 {
		separator := " "
		if strings.Contains(text, "\n") {
			separator = "\n    "
		}

		text += separator + "(on " + strings.Join(f.Machines, ", ") + ")"
	}

	return text
}

// findings collects; what was found on several machines is one finding.
type findings struct {
	set *manifest.Set
	all []*Finding
}

func (fs *findings) add(finding Finding, machine string) {
	if finding.Object != nil && finding.Location == nil {
		if object := fs.set.Object(*finding.Object); object != nil {
			location := object.At(finding.Path)
			finding.Location = &location
		}
	}

	known := finding.String()

	for _, each := range fs.all {
		bare := *each
		bare.Machines = nil

		if each.Severity == finding.Severity && bare.String() == known {
			if machine != "" && len(each.Machines) > 0 && !slices.Contains(each.Machines, machine) {
				each.Machines = append(each.Machines, machine)
				slices.Sort(each.Machines)
			}

			return
		}
	}

	if machine != "" {
		finding.Machines = []string{machine}
	}

	fs.all = append(fs.all, &finding)
}

// addProblems takes over what is wrong with single objects.
func (fs *findings) addProblems() {
	for i := range fs.set.Problems {
		problem := &fs.set.Problems[i]

		finding := Finding{Severity: SeverityError, Object: &problem.Object.Ref, Path: problem.Field, Message: problem.Message}
		if problem.Warning {
			finding.Severity = SeverityWarning
		}

		location := problem.Object.At(problem.Field)
		finding.Location = &location

		fs.add(finding, "")
	}
}

// addMissing takes over the joined MissingErrors of an inventory.
func (fs *findings) addMissing(err error) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return
	}

	for _, each := range joined.Unwrap() {
		if missing, ok := errors.AsType[*inventory.MissingError](each); ok {
			fs.add(Finding{Severity: SeverityError, Object: &missing.From, Path: missing.Field, Message: missing.Error()}, "")
		}
	}
}

// addRender takes over the error of a render of the subject.
func (fs *findings) addRender(subject *inventory.Subject, err error) {
	faults := machineconfig.Errors(err)
	if len(faults) == 0 && err != nil {
		fs.add(Finding{Severity: SeverityError, Object: &subject.Ref, Message: err.Error()}, subject.Machine.Name)
	}

	for _, fault := range faults {
		if finding := fromFault(subject, fault); !fs.toldAlready(&finding) {
			fs.add(finding, subject.Machine.Name)
		}
	}
}

// toldAlready tells whether the object alone has shown what a render found at the same place. It may have said it in other words.
func (fs *findings) toldAlready(finding *Finding) bool {
	return finding.Field != "" && slices.ContainsFunc(fs.all, func(each *Finding) bool {
		return each.Severity == SeverityError && len(each.Machines) == 0 &&
			each.Object != nil && finding.Object != nil && *each.Object == *finding.Object &&
			each.Path == finding.Path && each.Document == finding.Document && each.Field == finding.Field
	})
}

func fromFault(subject *inventory.Subject, fault *machineconfig.Error) Finding {
	finding := Finding{
		Severity: SeverityError, Layer: fault.Source.Layer, Document: fault.Document, Field: fault.Field,
		Reason: fault.Reason, Message: fault.Err.Error(),
	}

	// The namespace is what the files have.
	if absent, ok := errors.AsType[*machineconfig.AbsentError](fault.Err); ok {
		finding.Message += fmt.Sprintf(", or add the file of the %s with -f", absent.Kind)
	}

	if fault.Source == (machineconfig.Source{}) {
		finding.Object = &subject.Ref

		return finding
	}

	ref, path := subject.Object(fault.Source)
	finding.Object, finding.Path = &ref, path

	// Without a document, the field is one of the object.
	if fault.Document == "" && fault.Field != "" {
		finding.Path, finding.Field = strings.TrimPrefix(path+"."+fault.Field, "."), ""
	}

	return finding
}

// addPatches takes over what is wrong with each patch by itself, whether or not it selects a machine here.
func (fs *findings) addPatches(namespace string, patches []*machineconfig.Patch) {
	for _, patch := range patches {
		for _, fault := range machineconfig.Errors(patch.Check()) {
			fs.add(Finding{
				Severity: SeverityError, Layer: fault.Source.Layer, Reason: fault.Reason,
				Object: &manifest.Ref{Kind: fault.Source.Kind, Namespace: namespace, Name: fault.Source.Name},
				Path:   fault.Source.Path, Document: fault.Document, Field: fault.Field, Message: fault.Err.Error(),
			}, "")
		}
	}
}

// count tells how many findings of the severity there are.
func (fs *findings) count(severity Severity) int {
	n := 0

	for _, each := range fs.all {
		if each.Severity == severity {
			n++
		}
	}

	return n
}

// tellAll writes the findings to the error stream, errors last, and returns errFindings when there are errors.
func (fs *findings) tellAll(o *inputOptions) error {
	for _, severity := range []Severity{SeverityWarning, SeverityError} {
		for _, each := range fs.all {
			if each.Severity == severity {
				o.tell(string(severity), each.String())
			}
		}
	}

	if fs.count(SeverityError) > 0 {
		return errFindings
	}

	return nil
}

// warn adds a warning about an object.
func (fs *findings) warn(ref manifest.Ref, path, machine, format string, args ...any) {
	fs.add(Finding{Severity: SeverityWarning, Object: &ref, Path: path, Message: fmt.Sprintf(format, args...)}, machine)
}
