// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"fmt"

	"github.com/siderolabs/talos/pkg/machinery/config/types/network"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

var hostnameConfig = merge.ID{Kind: network.HostnameKind}

func isHostname(document merge.PatchDocument) bool { return document.ID == hostnameConfig }

// finish does what follows the patches, so that every way to set a hostname is valid for every contract.
//
// When a patch sets it in the legacy document, the HostnameConfig that was generated goes: Talos refuses both, and what a user
// says wins. A HostnameConfig that a user wrote too stays, for Talos to refuse. When a HostnameConfig stays, the stable hostname
// of contracts 1.2 to 1.11 goes, which Talos refuses beside it.
func (r *render) finish(merged *merge.Config) error {
	machine, _ := legacyOf(merged.Documents())

	if !r.userHostname && machine.MachineNetwork != nil && machine.MachineNetwork.NetworkHostname != "" {
		if source := r.in.TalosConfig.Spec.Hostname.Source; source != "" && source != bootstrapv1.HostnameSourceAutomatic {
			r.warnings = append(r.warnings, fmt.Sprintf("%s layer: TalosConfig %s spec.hostname has no effect: a patch sets machine.network.hostname",
				LayerSystem, r.in.TalosConfig.Name))
		}

		_, err := merged.Delete(hostnameConfig, "", nil)

		return err
	}

	_, modern := documentOf[*network.HostnameConfigV1Alpha1](merged.Documents())
	if !modern || machine.MachineFeatures == nil || machine.MachineFeatures.StableHostname == nil {
		return nil
	}

	_, err := merged.Delete(merge.ID{Kind: merge.LegacyKind}, "/machine/features/stableHostname", nil)

	return err
}
