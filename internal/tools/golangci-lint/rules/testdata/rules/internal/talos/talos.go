// SPDX-License-Identifier: Apache-2.0

// Package talos is an adapter: it may do what a pure package may not, but does not know its callers.
package talos

import (
	"context"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/client"

	"github.com/maesh-dev/ichor/bootstrap" // want "depguard: .*ichor/bootstrap.*an adapter does not know its callers"
	"github.com/maesh-dev/ichor/internal/storage"
)

// Node is a node.
type Node struct {
	Seen   time.Time
	Volume storage.Volume
	client *client.Client
}

// Touch notes the time.
func (n *Node) Touch(ctx context.Context) (*client.Client, error) {
	n.Seen = time.Now()
	_ = bootstrap.Name
	return n.client, ctx.Err()
}
