// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/storage"
	"github.com/maesh-dev/ichor/internal/version"
)

// TalosStorage looks at a TalosStorage. What one config contract has no place for is refused only if no supported contract has: the
// machines that it governs may have another.
func TalosStorage(object *bootstrapv1.TalosStorage) Report {
	report := &Report{}
	report.clusterTargets(object.Spec.ClusterTargeting)
	report.machineTargets(object.Spec.MachineTargeting)

	var common []*storage.Error

	for i, contract := range version.Supported() {
		preparation, err := storage.Prepare(object, contract)
		faults := storage.Errors(err)

		if i == 0 {
			common = faults
			report.Rendered = prefixed(object, preparation.Warnings)
		}

		common = slices.DeleteFunc(common, func(known *storage.Error) bool {
			return !slices.ContainsFunc(faults, func(fault *storage.Error) bool { return fault.Error() == known.Error() })
		})
	}

	for _, fault := range common {
		report.addStorageErrors(fault)
	}

	return report.done()
}

func prefixed(object *bootstrapv1.TalosStorage, warnings []string) []string {
	all := make([]string, len(warnings))
	for i, warning := range warnings {
		all[i] = fmt.Sprintf("TalosStorage %s: %s", object.Name, warning)
	}

	return all
}
