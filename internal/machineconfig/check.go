// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/go-multierror"
	machineryconfig "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/container"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/config/validation"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
	"github.com/maesh-dev/ichor/internal/version"
)

// finding is one thing that is wrong with a merged config.
type finding struct {
	document merge.ID
	field    string
	err      error

	// advice is told after the error. It may change with other fields of the document, and does not tell findings apart.
	advice string

	// source is what to blame where it is not the step that brought the fault.
	source Source

	// twin is the other place that says the same in another form. Then what set the field is to blame, and what set the twin is named.
	twin address
}

func (f finding) same(other finding) bool {
	return f.document == other.document && f.field == other.field && f.err.Error() == other.err.Error()
}

// mode is how Talos validates a config: what it demands where the machine runs.
type mode bootstrapv1.Platform

func (m mode) String() string        { return string(m) }
func (m mode) RequiresInstall() bool { return m == mode(bootstrapv1.PlatformMetal) }
func (m mode) InContainer() bool     { return m == mode(bootstrapv1.PlatformContainer) }

func (r *render) mode() mode {
	spec := r.in.TalosConfig.Spec

	switch {
	case spec.Platform != "":
		return mode(spec.Platform)
	case spec.Install.Disk != "" || spec.Install.DiskSelector != "":
		return mode(bootstrapv1.PlatformMetal)
	default:
		return mode(bootstrapv1.PlatformCloud)
	}
}

// checkVersions checks what can be known before anything is rendered: that versions go together.
func (r *render) checkVersions() error {
	talos, err := r.talos()
	if err != nil {
		return err
	}

	kubernetes, err := version.ParseKubernetes(r.in.Machine.KubernetesVersion)
	if err != nil {
		return machineFault(r.in, "spec.version", err)
	}

	if err = version.CheckKubernetes(talos, kubernetes); err != nil {
		return machineFault(r.in, "spec.version", err)
	}

	if r.settings.version == "" {
		return nil
	}

	if err = version.CheckContract(r.in.Contract, talos); err != nil {
		return &Error{Reason: ReasonRenderFailed, Source: r.settings.source, Field: "version", Err: err}
	}

	return nil
}

// talos is the version that the machine runs as far as it is known: what the cluster or pool says, else the first of the
// contract's minor.
func (r *render) talos() (version.Talos, error) {
	if r.settings.version == "" {
		return r.in.Contract.Talos(), nil
	}

	talos, err := version.ParseTalos(r.settings.version)
	if err != nil {
		return version.Talos{}, &Error{Reason: ReasonRenderFailed, Source: r.settings.source, Field: "version", Err: err}
	}

	return talos, nil
}

// check proves the merged config. Everything that is wrong is reported at once, each fault with the object that brought it.
func (r *render) check(merged *merge.Config) ([]string, error) {
	findings := r.findings(merged)
	if len(findings) == 0 {
		return r.notices(merged), nil
	}

	return nil, errors.Join(r.blame(findings)...)
}

// findings are what is wrong with the config, from what no patch may do to what Talos refuses and what a node cannot run.
func (r *render) findings(merged *merge.Config) []finding {
	findings := r.protected(merged)
	findings = append(findings, r.undecodable(merged)...)
	findings = append(findings, r.unknownToTalos(merged)...)

	doubles := doubleNames(merged.Documents())
	findings = append(findings, doubles...)

	provider, err := merged.Provider()
	switch {
	case err != nil && len(doubles) > 0:
		return findings
	case err != nil:
		return append(findings, finding{err: err})
	}

	findings = append(findings, r.nowhereToInstall(merged)...)
	findings = append(findings, controlPlaneOnly(r.in.Machine.ControlPlane, merged)...)
	if len(findings) == 0 {
		findings = append(findings, misplaced(r.in.Contract, provider.Documents())...)
	}

	if len(findings) == 0 {
		findings, r.talosWarnings = refusedByTalos(provider, r.mode())
	}

	return append(findings, r.cannotRun(merged)...)
}

// undecodable decodes strictly, as a node would do first, what is not machinery's own output.
func (r *render) undecodable(merged *merge.Config) []finding {
	var findings []finding

	for _, id := range merged.Reached() {
		data, err := merged.EncodeReached(id)
		if err == nil {
			_, err = configloader.NewFromBytes(data)
		}

		if err == nil {
			continue
		}

		found := finding{document: id, err: err}

		// The merge's own loader finds the same faults and knows the field.
		_, err = merge.Load(data)
		if detail, ok := errors.AsType[*merge.Error](err); ok {
			found.field, found.err = detail.Pointer, fmt.Errorf("not set, or %w", detail.Err)
		}

		findings = append(findings, found)
	}

	return findings
}

// unknownToTalos finds documents, fields and values that the machine's Talos does not know: it would refuse the whole config. Machinery
// is newer and does not notice. What machinery generated for the contract is known to it.
func (r *render) unknownToTalos(merged *merge.Config) []finding {
	talos, err := r.talos()
	if err != nil {
		return []finding{{err: err}}
	}

	if !talos.Contract().Less(version.Newest()) {
		return nil
	}

	var findings []finding

	for _, id := range merged.Reached() {
		kind := id.Kind
		if kind == merge.LegacyKind {
			kind = v1alpha1.Version
		}

		values := func(pointer string) (string, bool) {
			value, set := merged.Value(id, pointer)

			return value.Reveal(), set
		}

		err := errors.Join(version.CheckDocument(talos, kind, merged.ReachedPointers(id)...), version.CheckValues(talos, kind, values))

		for _, err := range flatten(err) {
			found := finding{document: id, err: err}

			if tooNew, ok := errors.AsType[*version.TooNewError](err); ok {
				found.field = tooNew.Field

				if places := legacyPlaces(id.Kind, topFields(merged, id)); tooNew.Field == "" && len(places) > 0 {
					found.advice = "until then it is written in the legacy document, as " + strings.Join(places, ", ")
				}
			}

			findings = append(findings, found)
		}
	}

	return findings
}

// topFields are the fields at the top of a document in which anything is set. What the encoder writes of what nobody set is empty.
func topFields(merged *merge.Config, id merge.ID) []string {
	var fields []string

	for _, pointer := range merged.ReachedPointers(id) {
		if value, _ := merged.Value(id, pointer); slices.Contains([]string{"", "[]", "{}"}, value.Reveal()) {
			continue
		}

		field, _, _ := strings.Cut(strings.TrimPrefix(pointer, "/"), "/")
		fields = append(fields, field)
	}

	return fields
}

// nowhereToInstall finds a machine that Talos must be installed on, in a format that has the disk in the legacy document.
func (r *render) nowhereToInstall(merged *merge.Config) []finding {
	if !r.mode().RequiresInstall() || r.in.Contract.Machinery().UnattendedInstallConfig() {
		return nil
	}

	machine, _ := legacyOf(merged.Documents())
	if install := machine.MachineInstall; install != nil && (install.InstallDisk != "" || install.InstallDiskSelector != nil) {
		return nil
	}

	return []finding{{
		document: merge.ID{Kind: merge.LegacyKind},
		field:    "/machine/install/disk",
		err:      errors.New("platform Metal needs a disk to install to: set spec.install.disk, or the platform that the machine's image is made for"),
		source:   Source{Layer: LayerSystem, Kind: KindTalosConfig, Name: r.in.TalosConfig.Name, Path: "spec.install"},
	}}
}

func controlPlaneOnly(controlPlane bool, merged *merge.Config) []finding {
	if controlPlane {
		return nil
	}

	var findings []finding

	for _, document := range merged.Documents() {
		switch document.(type) {
		case *network.Layer2VIPConfigV1Alpha1, *network.HCloudVIPConfigV1Alpha1:
			findings = append(findings, finding{
				document: merge.IDOf(document),
				err: errors.New("control-plane machines agree by etcd on who has the address, and this is a worker, which would never have it: " +
					"limit the patch with layer Role and role ControlPlane"),
			})
		case container.ControlplaneOnlyConfig:
			findings = append(findings, finding{
				document: merge.IDOf(document),
				err:      errors.New("allowed on control-plane machines only, and this is a worker: limit the patch with layer Role and role ControlPlane"),
			})
		}
	}

	return findings
}

// refusedByTalos runs Talos' own validation. The rules of single documents are run once more to learn which document breaks
// them; WithLocal because machinery would otherwise check the kubelet against its own range of Kubernetes versions.
func refusedByTalos(provider machineryconfig.Provider, mode validation.RuntimeMode) (refused []finding, warnings []string) {
	warnings, err := provider.ValidateAsClient(mode, validation.WithLocal())
	if err == nil {
		return nil, warnings
	}

	var findings []finding

	known := map[string]bool{}
	add := func(document config.Document, errs []error) {
		for _, each := range errs {
			findings = append(findings, explained(document, each))
			known[each.Error()] = true
		}
	}

	legacyDocument := provider.RawV1Alpha1()

	for _, document := range provider.Documents() {
		if validator, ok := document.(config.Validator); ok {
			_, err := validator.Validate(mode, validation.WithLocal())
			add(document, flatten(err))
		}

		if validator, ok := document.(container.V1Alpha1ConflictValidator); ok && legacyDocument != nil {
			add(document, flatten(validator.V1Alpha1ConflictValidate(legacyDocument)))
		}
	}

	// What is left is said of the config as a whole. A rule of a document appears here too, with the document's name before it.
	for _, each := range flatten(err) {
		if !known[each.Error()] && !wraps(each, known) {
			findings = append(findings, finding{err: each})
		}
	}

	return findings, nil
}

// wraps says whether one of the errors inside err is known already.
func wraps(err error, known map[string]bool) bool {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
		if known[inner.Error()] {
			return true
		}
	}

	return false
}

// flatten takes lists of errors apart, also those inside another error, whose words then stand before each.
func flatten(err error) []error {
	if err == nil {
		return nil
	}

	if list := listOf(err); list != nil {
		var flat []error
		for _, each := range list {
			flat = append(flat, flatten(each)...)
		}

		return flat
	}

	inner := errors.Unwrap(err)
	if listOf(inner) == nil {
		return []error{err}
	}

	prefix := strings.TrimSuffix(err.Error(), inner.Error())

	var flat []error
	for _, each := range flatten(inner) {
		flat = append(flat, fmt.Errorf("%s%w", prefix, each))
	}

	return flat
}

// listOf returns the errors of a list of errors, and nil for anything else.
func listOf(err error) []error {
	switch list := err.(type) { //nolint:errorlint // the two kinds of lists are taken apart, not searched
	case *multierror.Error:
		return list.WrappedErrors()
	case interface{ Unwrap() []error }:
		return list.Unwrap()
	default:
		return nil
	}
}

// legacyOf returns the legacy document's parts, never nil.
func legacyOf(documents []config.Document) (*v1alpha1.MachineConfig, *v1alpha1.ClusterConfig) {
	machine, cluster := &v1alpha1.MachineConfig{}, &v1alpha1.ClusterConfig{}

	if document, ok := documentOf[*v1alpha1.Config](documents); ok {
		if document.MachineConfig != nil {
			machine = document.MachineConfig
		}

		if document.ClusterConfig != nil {
			cluster = document.ClusterConfig
		}
	}

	return machine, cluster
}
