// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"errors"
	"fmt"
	"slices"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
	"github.com/maesh-dev/ichor/internal/targeting"
)

// Patch is a TalosConfigPatch made ready to be merged. It is made once for a generation of the object and may then be
// used by many renders at once.
type Patch struct {
	object    *bootstrapv1.TalosConfigPatch
	layer     Layer
	documents []*merge.Patch
	warnings  []string
	err       error
}

// ParsePatch makes a TalosConfigPatch ready to be merged. It always succeeds: a patch that Talos cannot decode, with a secret
// in a field that is none, or with a deletion that can never find anything, fails the render of the machines that it applies to,
// and of no others. See Err.
func ParsePatch(object *bootstrapv1.TalosConfigPatch) *Patch {
	patch := &Patch{object: object, layer: Layer(object.Spec.Layer), documents: make([]*merge.Patch, len(object.Spec.Documents))}

	var faults []error

	for i := range object.Spec.Documents {
		document := &object.Spec.Documents[i]

		data, err := document.TalosJSON(nil)
		if err == nil {
			patch.documents[i], err = merge.Load(data)
		}

		if err != nil {
			fault := stepFault(patch.source(documentPath(i)), err)
			if fault.Document == "" {
				fault.Document = string(document.Kind)
			}

			faults = append(faults, fault)

			continue
		}

		for _, notice := range namedSecrets(patch.documents[i]) {
			patch.warnings = append(patch.warnings, patch.source(documentPath(i)).String()+": "+notice)
		}

		for _, found := range patchFindings(patch.documents[i]) {
			faults = append(faults, &Error{
				Reason: ReasonRenderFailed, Source: patch.source(documentPath(i)),
				Document: found.document.String(), Field: found.field, Err: found.err,
			})
		}
	}

	for i, deletion := range object.Spec.Deletions {
		if err := merge.CheckDeletion(merge.ID{Kind: deletion.Kind, Name: deletion.Name}, deletion.Path); err != nil {
			faults = append(faults, stepFault(patch.source(deletionPath(i)), err))
		}
	}

	patch.err = errors.Join(faults...)

	return patch
}

// patchFindings are what is wrong with a document whatever it is merged with; of a field, only the first.
func patchFindings(document *merge.Patch) []finding {
	findings := append(badNames(document), plainSecrets(document)...)

	for _, found := range badManifests(document) {
		if !slices.ContainsFunc(findings, func(other finding) bool { return other.document == found.document && other.field == found.field }) {
			findings = append(findings, found)
		}
	}

	return findings
}

// Err says why the patch cannot be merged: one Error for each fault. It is nil for a good patch.
func (p *Patch) Err() error { return p.err }

// Object is the TalosConfigPatch. It must not be changed.
func (p *Patch) Object() *bootstrapv1.TalosConfigPatch { return p.object }

func (p *Patch) priority() int32 {
	if p.object.Spec.Priority == nil {
		return 0
	}

	return *p.object.Spec.Priority
}

// inLayer is the same patch in another layer: one that is referred to applies in the Pool layer, whatever its own is.
func (p *Patch) inLayer(layer Layer) *Patch {
	moved := *p
	moved.layer = layer

	return &moved
}

func (p *Patch) source(path string) Source {
	return Source{Layer: p.layer, Kind: KindTalosConfigPatch, Name: p.object.Name, Path: path}
}

func (p *Patch) fault(path string, err error) *Error {
	return &Error{Reason: ReasonRenderFailed, Source: p.source(path), Err: err}
}

// targets says whether the patch selects the machine. A patch without a cluster selects none: it applies by reference.
func (p *Patch) targets(in *Input) (bool, error) {
	spec := &p.object.Spec
	if spec.ClusterName == "" && spec.ClusterSelector == nil {
		return false, nil
	}

	// What cannot concern the machine is not looked into: a selector at fault stops the machines that it may be meant for.
	if spec.Role != "" && spec.Role != in.Machine.Role() {
		return false, nil
	}

	if ok, err := targeting.Cluster(spec.ClusterTargeting, p.object.Namespace, in.Cluster); !ok || err != nil {
		return false, err
	}

	return targeting.Machine(spec.MachineTargeting, in.Machine.Labels)
}

func documentPath(index int) string { return fmt.Sprintf("spec.documents[%d]", index) }

func deletionPath(index int) string { return fmt.Sprintf("spec.deletions[%d]", index) }
