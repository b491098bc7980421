// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/cel/celenv"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/container"
	"github.com/siderolabs/talos/pkg/machinery/labels"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/expression"
	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
	"github.com/maesh-dev/ichor/internal/storage"
	"github.com/maesh-dev/ichor/internal/version"
)

// firstUnattended is the minor of the first config contract that has the install settings in a document of their own: disks by
// expression, and no kernel arguments.
const firstUnattended = 14

// Check says what is wrong with the patch whatever machine it is for: what Err says, and what no merge can mend. It is for admission
// and for a look at the patch alone; a render finds the same in the merged config. There is one Error for each fault. Talos' own
// validation is not asked: it refuses sparse documents that are whole once they are merged. What the patch refers to need not exist.
func (p *Patch) Check() error {
	read, filled := p.withStandIns()
	letters := maxExpressions

	var faults []error

	for _, fault := range Errors(read.err) {
		if !filled.has(fault) {
			faults = append(faults, fault)
		}
	}

	for i := range read.documents {
		for _, found := range read.look(i, func(document config.Document) []finding { return read.wrong(document, &letters) }) {
			fault := &Error{
				Reason: ReasonRenderFailed, Source: read.source(documentPath(i)),
				Document: found.document.String(), Field: found.field, Err: found.err,
			}
			if !filled.has(fault) {
				faults = append(faults, fault)
			}
		}
	}

	return errors.Join(faults...)
}

// Warnings are what is allowed in the patch and probably not meant. They name object, document and field, and carry no secret.
func (p *Patch) Warnings() []string {
	read, _ := p.withStandIns()
	warnings := append(slices.Clone(read.warnings), read.goneFlags()...)

	if !read.selectsEveryRole() {
		return warnings
	}

	for i := range read.documents {
		for _, found := range read.look(i, notForWorkers) {
			at := found.document.String()
			if found.field != "" {
				at += ": " + found.field
			}

			warnings = append(warnings, fmt.Sprintf("%s: %s: the patch selects workers too, which then get no config: %s",
				read.source(documentPath(i)), at, found.err))
		}
	}

	return warnings
}

// selectsEveryRole tells a patch that no role and no selector keeps from workers.
func (p *Patch) selectsEveryRole() bool {
	spec := &p.object.Spec
	everyMachine := spec.MachineSelector == nil || len(spec.MachineSelector.MatchLabels)+len(spec.MachineSelector.MatchExpressions) == 0

	return spec.Role == "" && everyMachine && (spec.ClusterName != "" || spec.ClusterSelector != nil)
}

// look asks about each part of one document of the patch. One that could not be read is a fault already.
func (p *Patch) look(index int, ask func(config.Document) []finding) []finding {
	if p.documents[index] == nil {
		return nil
	}

	var findings []finding

	for _, part := range p.documents[index].Documents() {
		if part.Document != nil {
			findings = append(findings, ask(part.Document)...)
		}
	}

	sortFindings(findings)

	return findings
}

// wrong finds everything that is wrong with a document of the patch.
func (p *Patch) wrong(document config.Document, letters *int) []finding {
	findings := append(wrongAlone(document), badExpressions(document, letters)...)

	if p.object.Spec.Role == bootstrapv1.MachineRoleWorker {
		findings = append(findings, notForWorkers(document)...)
	}

	return findings
}

// notForWorkers finds what a worker's kubelet may not do, and documents that workers may not have.
func notForWorkers(document config.Document) []finding {
	merged, err := onlyWith(document)
	if err != nil {
		return nil
	}

	findings := controlPlaneOnly(false, merged)

	for _, settings := range nodeSettingsOf(merged) {
		for _, key := range slices.Sorted(maps.Keys(settings.labels)) {
			if forbiddenToKubelet(key) {
				findings = append(findings, finding{document: settings.id, field: settings.pointer("labels", key), err: errForbiddenLabel})
			}
		}
	}

	return findings
}

// wrongAlone finds what no other patch can make right: settings that Talos or a node refuses as they stand, entry by entry.
func wrongAlone(document config.Document) []finding {
	merged, err := onlyWith(document)
	if err != nil {
		return nil
	}

	var findings []finding

	for _, settings := range nodeSettingsOf(merged) {
		findings = append(findings, badEntries(settings, "labels", settings.labels, labels.Validate)...)
		findings = append(findings, badEntries(settings, "annotations", settings.annotations, labels.ValidateAnnotations)...)
		findings = append(findings, badEntries(settings, "taints", settings.taints, labels.ValidateTaints)...)
		findings = append(findings, longhornFindings(settings)...)
	}

	findings = append(findings, badHostname(merged)...)
	findings = append(findings, badFiles(merged)...)
	findings = append(findings, ownArgs(merged, false)...)

	documents := merged.Documents()
	findings = append(findings, labelFlags(documents)...)
	findings = append(findings, ownMounts(documents)...)

	// Where the machine runs is not known here: a container may have any file of its host.
	return append(findings, illFormed(documents, false)...)
}

// maxEntries is how many entries at fault are found in one map. Nobody mends more than that before trying again.
const maxEntries = 100

// badEntries asks machinery about each entry by itself, so that the one at fault is known.
func badEntries(settings nodeSettings, sort string, entries map[string]string, check func(map[string]string) error) []finding {
	if check(entries) == nil {
		return nil
	}

	var findings []finding

	for _, key := range slices.Sorted(maps.Keys(entries)) {
		if len(findings) >= maxEntries {
			break
		}

		for _, err := range flatten(check(map[string]string{key: entries[key]})) {
			findings = append(findings, finding{document: settings.id, field: settings.pointer(sort, key), err: err})
		}
	}

	return findings
}

// longhornFindings finds labels and annotations that Longhorn ignores as a whole.
func longhornFindings(settings nodeSettings) []finding {
	var findings []finding

	if value, ok := settings.labels[storage.LonghornCreateDiskLabel]; ok && value != "true" && value != "config" {
		findings = append(findings, finding{
			document: settings.id, field: settings.pointer("labels", storage.LonghornCreateDiskLabel),
			err: fmt.Errorf("is %q, which Longhorn ignores: set true or config, or remove the label", value),
		})
	}

	for _, key := range slices.Sorted(maps.Keys(longhornAnnotations)) {
		if value, ok := settings.annotations[key]; ok {
			if err := longhornAnnotations[key](value); err != nil {
				findings = append(findings, finding{document: settings.id, field: settings.pointer("annotations", key), err: err})
			}
		}
	}

	return findings
}

// onlyWith is a config of one document.
func onlyWith(document config.Document) (*merge.Config, error) {
	provider, err := container.New(document)
	if err != nil {
		return nil, err
	}

	return merge.New(provider), nil
}

// CheckClusterConfig says what is wrong with a TalosClusterConfig whatever machine it is for, one Error for each fault, and what is
// probably not meant. Of the Secrets that it refers to only the names are looked at. No error has a value of a URL.
func CheckClusterConfig(object *bootstrapv1.TalosClusterConfig) (warnings []string, err error) {
	layer := &system{in: &Input{Contract: version.Newest(), Machine: Machine{ControlPlane: true}}}
	err = errors.Join(layer.registries(object), layer.cni(object), reservedUses(object))

	return layer.warnings, err
}

// CheckInstall says what is wrong with a TalosConfig's install settings: an expression that is none, and what the config contract has
// no place for. The contract may be unset, if it is not known; source is the object and path of the settings.
func CheckInstall(source Source, install bootstrapv1.InstallSpec, contract version.Contract) error {
	fault := func(field string, err error) error {
		return &Error{Reason: ReasonRenderFailed, Source: source, Field: field, Err: err}
	}

	var faults []error

	if install.DiskSelector != "" {
		if _, err := expression.ParseSelector(install.DiskSelector, celenv.DiskLocator()); err != nil {
			faults = append(faults, fault("diskSelector", notExpression(err)))
		}
	}

	if !contract.IsZero() {
		if install.DiskSelector != "" && !contract.AtLeast(firstUnattended) {
			faults = append(faults, fault("diskSelector", noExpressions(contract)))
		}

		if len(install.ExtraKernelArgs) > 0 && contract.AtLeast(firstUnattended) {
			faults = append(faults, fault("extraKernelArgs", noKernelArgs(contract)))
		}
	}

	return errors.Join(faults...)
}
