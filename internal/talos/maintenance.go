// SPDX-License-Identifier: Apache-2.0

package talos

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	runtimeres "github.com/siderolabs/talos/pkg/machinery/resources/runtime"
)

// inMaintenance tells whether what answers at an address is a Talos node without a configuration. It says so to anyone, with a certificate of
// its own making; nothing is sent to it, no certificate of ours either, and nothing else that it says is believed.
func (c *Cluster) inMaintenance(ctx context.Context, way candidate) bool {
	conn, err := dial(way.dial, &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, //nolint:gosec // A node in maintenance mode has no certificate that could be verified.
	}, time.Time{}, c.timeout)
	if err != nil {
		return false
	}

	defer conn.drop()

	ctx, cancel := context.WithTimeout(ctx, c.timeout/2)
	defer cancel()

	found, err := safe.StateGetByID[*runtimeres.MachineStatus](ctx, conn.state, runtimeres.MachineStatusID)

	return err == nil && found.TypedSpec().Stage == runtimeres.MachineStageMaintenance
}
