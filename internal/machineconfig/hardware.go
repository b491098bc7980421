// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"fmt"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/nethelpers"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

// hardwareAddressLength is that of Ethernet, which is what the links are that Talos makes.
const hardwareAddressLength = 6

// badHardwareAddresses finds addresses for links that Talos makes which the kernel does not take: Talos takes any number of bytes.
func badHardwareAddresses(documents []config.Document) []finding {
	var findings []finding

	for _, document := range documents {
		var address nethelpers.HardwareAddr

		switch typed := document.(type) {
		case *network.BondConfigV1Alpha1:
			address = typed.HardwareAddressConfig
		case *network.BridgeConfigV1Alpha1:
			address = typed.HardwareAddressConfig
		case *network.DummyLinkConfigV1Alpha1:
			address = typed.HardwareAddressConfig
		case *network.VRFConfigV1Alpha1:
			address = typed.HardwareAddressConfig
		}

		if len(address) != 0 && len(address) != hardwareAddressLength {
			findings = append(findings, finding{
				document: merge.IDOf(document), field: "/hardwareAddr",
				err: fmt.Errorf("has %d bytes, and the link needs %d, such as 02:00:5e:10:00:01", len(address), hardwareAddressLength),
			})
		}
	}

	return findings
}
