// SPDX-License-Identifier: Apache-2.0

// Package machineconfig is pure and may use Talos' config types, but not its client.
package machineconfig

import (
	"net"

	"github.com/siderolabs/talos/pkg/machinery/client" // want "depguard: .*machinery/client.*only internal/talos speaks to a node"
	"github.com/siderolabs/talos/pkg/machinery/config"
)

// Render uses what it may and what it may not.
func Render(config.Provider, *client.Client) string {
	_, _ = net.LookupHost("node") // want "forbidigo: .*net.LookupHost.*pure: no input or output"
	return net.JoinHostPort("node", "50000")
}
