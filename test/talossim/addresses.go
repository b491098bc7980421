// SPDX-License-Identifier: Apache-2.0

package talossim

import "github.com/siderolabs/talos/pkg/machinery/constants"

// ports are those that a machine's address must have free: of the Talos API, and of what runs beside it where there is Kubernetes, as
// long as its configuration names no other.
func (w *World) ports() []int {
	ports := []int{constants.ApidPort}
	if w.options.Full {
		ports = append(ports, etcdClientPort, etcdPeerPort, controllerManagerPort)
	}
	if w.kubernetes() {
		ports = append(ports, apiServerPort)
	}
	return ports
}

// Ports of the components of a node with Kubernetes.
const (
	etcdClientPort        = 2379
	etcdPeerPort          = 2380
	apiServerPort         = constants.DefaultControlPlanePort
	controllerManagerPort = 10257
)
