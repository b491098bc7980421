// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"errors"
	"fmt"
	"slices"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
	"github.com/maesh-dev/ichor/internal/targeting"
)

// Patch is a TalosConfigPatch made ready to be merged. It is made once for a generation of the object and may then be
// used by many renders at once. Documents with references are made ready by each render: their values are kept nowhere.
type Patch struct {
	object    *bootstrapv1.TalosConfigPatch
	layer     Layer
	documents []*merge.Patch // nil for one that waits for the values of its references, or is left out
	waiting   []int          // the documents with references
	objects   []ObjectKey    // what they refer to
	secrets   []machineconfigv1alpha1.Source
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
		if objects := objectsOf(&object.Spec.Documents[i]); len(objects) > 0 {
			patch.waiting, patch.objects = append(patch.waiting, i), append(patch.objects, objects...)
			patch.secrets = append(patch.secrets, secretsOf(&object.Spec.Documents[i])...)

			continue
		}

		faults = append(faults, patch.read(i, References{})...)
	}

	patch.objects = sortedObjects(patch.objects)

	for i, deletion := range object.Spec.Deletions {
		id, source := merge.ID{Kind: deletion.Kind, Name: deletion.Name}, patch.source(deletionPath(i))

		if err := merge.CheckDeletion(id, deletion.Path); err != nil {
			faults = append(faults, stepFault(source, err))
		} else if err = forbiddenDeletion(id, deletion.Path); err != nil {
			faults = append(faults, &Error{Reason: ReasonRenderFailed, Source: source, Document: id.String(), Field: deletion.Path, Err: err})
		}
	}

	patch.err = errors.Join(faults...)

	return patch
}

// resolve makes the documents with references ready, in a copy.
func (p *Patch) resolve(references References) *Patch {
	if len(p.waiting) == 0 {
		return p
	}

	resolved := *p
	resolved.documents, resolved.warnings, resolved.waiting = slices.Clone(p.documents), slices.Clone(p.warnings), nil

	faults := []error{p.err}
	for _, i := range p.waiting {
		faults = append(faults, resolved.read(i, references)...)
	}

	resolved.err = errors.Join(faults...)

	return &resolved
}

// read makes one document ready.
func (p *Patch) read(i int, references References) []error {
	document, source := &p.object.Spec.Documents[i], p.source(documentPath(i))

	data, err := document.TalosJSON(references.value)
	if unusable, ok := errors.AsType[*machineconfigv1alpha1.ReferenceError](err); ok {
		return referenceFaults(source, unusable, references)
	}

	secrets := document.ResolvedSecrets()
	if err == nil {
		p.documents[i], err = merge.LoadSecret(append([]byte(documentStart), data...), secrets)
	}

	if err != nil {
		fault := stepFault(source, err)
		if fault.Document == "" {
			fault.Document = string(document.Kind)
		}

		return []error{fault}
	}

	notices := slices.Concat(namedSecrets(p.documents[i], secrets), anonymousRequests(p.documents[i]), doubledKeys(p.documents[i]))
	for _, notice := range notices {
		p.warnings = append(p.warnings, source.String()+": "+notice)
	}

	var faults []error

	for _, found := range patchFindings(p.documents[i], secrets) {
		faults = append(faults, &Error{
			Reason: ReasonRenderFailed, Source: source,
			Document: found.document.String(), Field: found.field, Err: found.err,
		})
	}

	return faults
}

// documentStart in front of a JSON text tells the YAML parser that its first brace begins no key. Otherwise the parser looks at the whole
// text before it is sure of that, and its time grows with the square of the number of values.
const documentStart = "--- "

// Objects are the Secrets and ConfigMaps that the patch refers to, sorted by kind and name.
func (p *Patch) Objects() []ObjectKey { return p.objects }

// Without is the patch without the documents that refer to any of the objects, and where in the patch these are. It is for checks
// without the objects: what is rendered with it is no machine's config.
func (p *Patch) Without(objects ...ObjectKey) (*Patch, []string) {
	var (
		left  = *p
		paths []string
	)

	left.waiting = nil

	for _, i := range p.waiting {
		if slices.ContainsFunc(objectsOf(&p.object.Spec.Documents[i]), func(key ObjectKey) bool { return slices.Contains(objects, key) }) {
			paths = append(paths, documentPath(i))
		} else {
			left.waiting = append(left.waiting, i)
		}
	}

	left.objects = slices.DeleteFunc(slices.Clone(p.objects), func(key ObjectKey) bool { return slices.Contains(objects, key) })

	return &left, paths
}

// patchFindings are what is wrong with a document whatever it is merged with; of a field, only the first. Secrets are where it has values
// that came out of Secrets.
func patchFindings(document *merge.Patch, secrets []string) []finding {
	findings := append(badNames(document), plainSecrets(document, secrets)...)

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
