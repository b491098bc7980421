// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/nethelpers"
)

// normalise settles, after a merge, fields of which Talos allows one only. The
// generated config has `auto: stable`, so that a patch that just says
// `hostname: w1` would otherwise give a config that Talos refuses.
func normalise(doc config.Document, pd *patchDocument) {
	merged, ok := doc.(*network.HostnameConfigV1Alpha1)
	if !ok {
		return
	}

	patch, ok := pd.doc.(*network.HostnameConfigV1Alpha1)
	if !ok {
		return
	}

	saysHostname := pd.said.fieldSaid(pd.plan, "hostname") && patch.ConfigHostname != ""
	saysAuto := pd.said.fieldSaid(pd.plan, "auto") && patch.ConfigAuto != nil && *patch.ConfigAuto != nethelpers.AutoHostnameKindOff

	switch {
	case saysHostname && !pd.said.fieldSaid(pd.plan, "auto"):
		merged.ConfigAuto = nil
	case saysAuto && !pd.said.fieldSaid(pd.plan, "hostname"):
		merged.ConfigHostname = ""
	}
}
