// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	machineryconfig "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/config"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
	"github.com/maesh-dev/ichor/internal/version"
)

// Config is a rendered machine config, proved to be one that Talos accepts and can run.
type Config struct {
	// Bytes are the config as a node gets it: YAML documents without comments. They carry the cluster's secrets.
	Bytes []byte

	// Hash is the SHA-256 of Bytes, in hex.
	Hash string

	// Contract is the config format.
	Contract version.Contract

	// Inputs are the objects that contributed, in the order in which they did.
	Inputs []Source

	// Warnings are what is allowed and probably not meant. They name object and field, and carry no secret.
	Warnings []string

	// Provenance says what set each value. It is nil unless it was asked for.
	Provenance *Provenance

	merged *merge.Config
}

// step is one thing that one object does to the config.
type step struct {
	source  Source
	touches []merge.ID
	apply   func(*merge.Config, merge.Observer) error
}

// Render makes the machine config of one machine. It is a pure function: the same Input gives the same bytes. An error is,
// or wraps, one or more Errors, unless the caller left out what it must resolve; then there is no config.
func Render(in Input) (Config, error) {
	config, err := renderConfig(&in)

	return config, in.References.hide(err, in.Patches)
}

func renderConfig(in *Input) (Config, error) {
	r, err := prepare(in)
	if err != nil {
		return Config{}, err
	}

	merged, provenance, err := r.merge()
	if err != nil {
		return Config{}, err
	}

	warnings, err := r.check(merged)
	if err != nil {
		return Config{}, err
	}

	encoded, err := merged.Encode()
	if err != nil {
		return Config{}, fmt.Errorf("encode the config: %w", err)
	}

	if err = r.checkSize(encoded); err != nil {
		return Config{}, err
	}

	hash := sha256.Sum256(encoded)

	return Config{
		Bytes:      encoded,
		Hash:       hex.EncodeToString(hash[:]),
		Contract:   in.Contract,
		Inputs:     r.inputs(),
		Warnings:   append(r.warnings, warnings...),
		Provenance: provenance,
		merged:     merged,
	}, nil
}

// Masked is the config with every secret replaced, to be shown.
func (c Config) Masked() ([]byte, error) { return c.merged.EncodeMasked() }

// render is one run of Render.
type render struct {
	in       *Input
	settings talosSettings
	provider machineryconfig.Provider
	steps    []step
	patches  []*Patch
	warnings []string

	// talosWarnings are what Talos' own validation warns of.
	talosWarnings []string

	// referenced are the Secrets and ConfigMaps that patches refer to.
	referenced []Source

	// userHostname says that a patch brings a HostnameConfig.
	userHostname bool
}

// prepare makes the base config and the list of steps that turn it into the machine's.
func prepare(in *Input) (*render, error) {
	if in.Bundle == nil {
		return nil, errors.New("the secrets bundle is missing")
	}

	if len(SecretNames(in.ClusterConfig)) > 0 && !in.Credentials.resolved {
		return nil, errors.New("the Secrets that the TalosClusterConfig refers to have not been resolved")
	}

	settings, err := settingsFor(in.ClusterConfig, in.Machine.Labels)
	if err != nil {
		return nil, err
	}

	r := &render{in: in, settings: settings}

	if err = r.checkVersions(); err != nil {
		return nil, err
	}

	if r.provider, err = base(in); err != nil {
		return nil, err
	}

	layer := &system{in: in}
	if err = layer.collect(settings); err != nil {
		return nil, err
	}

	r.warnings = layer.warnings

	for _, each := range layer.contributions {
		s, err := each.step()
		if err != nil {
			return nil, err
		}

		r.steps = append(r.steps, s)
	}

	if r.patches, err = selectPatches(in); err != nil {
		return nil, err
	}

	r.warnings = append(r.warnings, strayReferences(in)...)

	return r, r.addPatches(r.patches)
}

func (c contribution) step() (step, error) {
	if c.remove != nil {
		return step{c.source, []merge.ID{c.remove.id}, func(merged *merge.Config, observer merge.Observer) error {
			_, err := merged.Delete(c.remove.id, c.remove.pointer, observer)

			return err
		}}, nil
	}

	built, err := merge.Build(c.document)
	if err != nil {
		return step{}, &Error{Reason: ReasonRenderFailed, Source: c.source, Err: err}
	}

	return step{c.source, []merge.ID{merge.IDOf(c.document)}, func(merged *merge.Config, observer merge.Observer) error {
		return merged.Apply(built, observer)
	}}, nil
}

func (r *render) addPatches(patches []*Patch) error {
	var faults []error

	references := r.in.References
	references.reserved = reservedNames(r.in.Cluster.Name, r.in.ClusterConfig)

	for _, patch := range patches {
		if len(patch.waiting) > 0 && !r.in.References.resolved {
			return fmt.Errorf("the Secrets and ConfigMaps that TalosConfigPatch %s refers to have not been resolved", patch.object.Name)
		}

		patch = patch.resolve(references)

		if patch.err != nil {
			faults = append(faults, patch.err)

			continue
		}

		r.warnings = append(r.warnings, patch.warnings...)

		for _, object := range patch.objects {
			r.referenced = append(r.referenced, Source{Layer: patch.layer, Kind: object.Kind, Name: object.Name})
		}

		for i, document := range patch.documents {
			if document == nil {
				continue
			}

			r.userHostname = r.userHostname || slices.ContainsFunc(document.Documents(), isHostname)
			r.steps = append(r.steps, step{patch.source(documentPath(i)), touchedBy(document), func(merged *merge.Config, observer merge.Observer) error {
				return merged.Apply(document, observer)
			}})
		}

		for i, deletion := range patch.object.Spec.Deletions {
			id := merge.ID{Kind: deletion.Kind, Name: deletion.Name}
			r.steps = append(r.steps, step{patch.source(deletionPath(i)), []merge.ID{id}, func(merged *merge.Config, observer merge.Observer) error {
				_, err := merged.Delete(id, deletion.Path, observer)

				return err
			}})
		}
	}

	return errors.Join(faults...)
}

func touchedBy(patch *merge.Patch) []merge.ID {
	documents := patch.Documents()
	ids := make([]merge.ID, len(documents))

	for i, document := range documents {
		ids[i] = document.ID
	}

	return ids
}

// merge applies the steps to the base.
func (r *render) merge() (*merge.Config, *Provenance, error) {
	merged := merge.New(r.provider)

	var provenance *Provenance
	if r.in.Provenance {
		provenance = newProvenance(r.in)
	}

	for _, each := range r.steps {
		if err := each.apply(merged, provenance.observer(each.source)); err != nil {
			return nil, nil, stepFault(each.source, err)
		}
	}

	if err := r.finish(merged); err != nil {
		return nil, nil, err
	}

	if provenance != nil {
		provenance.finish(merged)
	}

	return merged, provenance, nil
}

// stepFault names the step; the error of the merge names document and field.
func stepFault(source Source, err error) *Error {
	fault := &Error{Reason: ReasonRenderFailed, Source: source, Err: err}

	if detail, ok := errors.AsType[*merge.Error](err); ok {
		fault.Document, fault.Field, fault.Err = detail.ID.String(), detail.Pointer, detail.Err
	}

	return fault
}

// inputs are the objects behind the steps, each once.
func (r *render) inputs() []Source {
	kind := r.in.Machine.Kind
	inputs := []Source{
		{Layer: LayerBase, Kind: KindCluster, Name: r.in.Cluster.Name},
		{Layer: LayerBase, Kind: kind, Name: r.in.Machine.Name},
		{Layer: LayerSystem, Kind: KindTalosConfig, Name: r.in.TalosConfig.Name},
	}

	if config := r.in.ClusterConfig; config != nil {
		inputs = append(inputs, Source{Layer: LayerSystem, Kind: KindTalosClusterConfig, Name: config.Name})

		for _, name := range SecretNames(config) {
			inputs = append(inputs, Source{Layer: LayerSystem, Kind: KindSecret, Name: name})
		}
	}

	seen := map[Source]bool{}
	for _, input := range inputs {
		seen[input] = true
	}

	add := func(object Source) {
		if !seen[object] && object.Kind != kind {
			seen[object] = true
			inputs = append(inputs, object)
		}
	}

	for _, each := range r.steps {
		add(each.source.Object())
	}

	for _, each := range r.referenced {
		add(each)
	}

	return inputs
}

// documentOf finds the document of a type.
func documentOf[T config.Document](documents []config.Document) (T, bool) {
	for _, document := range documents {
		if typed, ok := document.(T); ok {
			return typed, true
		}
	}

	var none T

	return none, false
}
