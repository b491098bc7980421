// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

var hostnameConfig = merge.ID{Kind: network.HostnameKind}

func isHostname(document merge.PatchDocument) bool { return document.ID == hostnameConfig }

// finish does what follows the patches: when one of them sets the hostname in the legacy document, it takes out the
// HostnameConfig that was generated. Talos refuses both, and what a user says wins. A HostnameConfig that a user wrote too
// stays, for Talos to refuse.
func (r *render) finish(merged *merge.Config) error {
	machine, _ := legacyOf(merged.Documents())
	if r.userHostname || machine.MachineNetwork == nil || machine.MachineNetwork.NetworkHostname == "" {
		return nil
	}

	_, err := merged.Delete(hostnameConfig, "", nil)

	return err
}
