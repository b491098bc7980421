// SPDX-License-Identifier: Apache-2.0

package talossim

import "github.com/siderolabs/talos/pkg/machinery/constants"

// ports are those that a machine's address must have free: of the Talos API, and of what runs beside it on a machine of full
// fidelity, as long as its configuration names no other.
func (w *World) ports() []int {
	ports := []int{constants.ApidPort}
	if w.options.Full {
		ports = append(ports, etcdClientPort, etcdPeerPort, apiServerPort, controllerManagerPort)
	}
	return ports
}

// Ports of the components of full fidelity.
const (
	etcdClientPort        = 2379
	etcdPeerPort          = 2380
	apiServerPort         = constants.DefaultControlPlanePort
	controllerManagerPort = 10257
)
