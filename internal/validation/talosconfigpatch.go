// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strconv"
	"strings"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
)

// TalosConfigPatch looks at a TalosConfigPatch: whom it targets, then document by document and deletion by deletion.
func TalosConfigPatch(object *bootstrapv1.TalosConfigPatch) Report {
	report := TalosConfigPatchTargets(object)
	patch := machineconfig.ParsePatch(object)

	report.addConfigErrors(patch.Check())
	report.Rendered = patch.Warnings()

	// Ichor has names of its own for some kinds.
	for i := range report.Faults {
		fault := &report.Faults[i]
		if index, ok := documentIndex(fault.Field); ok && index < len(object.Spec.Documents) {
			fault.Kind = string(object.Spec.Documents[index].Kind)
		}
	}

	return report.done()
}

// TalosConfigPatchTargets looks only at whom a TalosConfigPatch targets.
func TalosConfigPatchTargets(object *bootstrapv1.TalosConfigPatch) Report {
	report := &Report{}
	report.clusterTargets(object.Spec.ClusterTargeting)
	report.machineTargets(object.Spec.MachineTargeting)

	return report.done()
}

func documentIndex(path string) (int, bool) {
	text, ok := strings.CutPrefix(path, "spec.documents[")
	if !ok {
		return 0, false
	}

	index, err := strconv.Atoi(strings.TrimSuffix(text, "]"))

	return index, err == nil
}
