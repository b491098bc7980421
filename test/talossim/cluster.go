// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"context"
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/client"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configpatcher"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/maesh-dev/ichor/internal/version"
)

// Cluster makes configurations and clients as talosctl would, for tests that are not about what makes them. A test of
// the product takes the product's.
type Cluster struct {
	name       string
	endpoint   string
	kubernetes string
	contract   version.Contract
	bundle     *secrets.Bundle
}

// NewCluster makes a cluster's secrets. endpoint is the URL of its API server, contract the format of its configurations
// such as v1.14, kubernetes a version such as v1.36.1.
func NewCluster(name, endpoint, contract, kubernetes string) (*Cluster, error) {
	parsed, err := version.ParseContract(contract)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", name, err)
	}
	bundle, err := secrets.NewBundle(secrets.NewClock(), parsed.Machinery())
	if err != nil {
		return nil, fmt.Errorf("cluster %s: secrets: %w", name, err)
	}
	return &Cluster{name: name, endpoint: endpoint, kubernetes: kubernetes, contract: parsed, bundle: bundle}, nil
}

// At returns the cluster, with the same secrets, at another endpoint.
func (c *Cluster) At(endpoint string) *Cluster {
	moved := *c
	moved.endpoint = endpoint
	return &moved
}

// Config generates a machine's configuration. Patches are strategic merge patches in YAML.
func (c *Cluster) Config(machineType machine.Type, patches ...string) ([]byte, error) {
	input, err := generate.NewInput(c.name, c.endpoint, strings.TrimPrefix(c.kubernetes, "v"),
		generate.WithVersionContract(c.contract.Machinery()), generate.WithSecretsBundle(c.bundle))
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", c.name, err)
	}
	provider, err := input.Config(machineType)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", c.name, err)
	}
	if provider, err = patch(provider, patches); err != nil {
		return nil, fmt.Errorf("cluster %s: %w", c.name, err)
	}
	return provider.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
}

func patch(provider config.Provider, patches []string) (config.Provider, error) {
	if len(patches) == 0 {
		return provider, nil
	}
	loaded, err := configpatcher.LoadPatches(patches)
	if err != nil {
		return nil, err
	}
	output, err := configpatcher.Apply(configpatcher.WithConfig(provider), loaded)
	if err != nil {
		return nil, err
	}
	return output.Config()
}

// Bundle are the cluster's secrets.
func (c *Cluster) Bundle() *secrets.Bundle { return c.bundle }

// Talosconfig is the access of a caller with these roles to a node.
func (c *Cluster) Talosconfig(address string, roles ...role.Role) (*clientconfig.Config, error) {
	certificate, err := c.bundle.GenerateTalosAPIClientCertificateWithTTL(role.MakeSet(roles...), time.Hour)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: client certificate: %w", c.name, err)
	}
	return clientconfig.NewConfig(c.name, []string{address}, c.bundle.Certs.OS.Crt, certificate), nil
}

// Client is Talos' own client for a node, with these roles.
func (c *Cluster) Client(ctx context.Context, n *Node, roles ...role.Role) (*client.Client, error) {
	talosconfig, err := c.Talosconfig(n.Address(), roles...)
	if err != nil {
		return nil, err
	}
	return client.New(ctx, client.WithConfig(talosconfig), client.WithGRPCDialOptions(QuickReconnect()))
}

// MaintenanceClient is Talos' own client for a node that has no configuration yet.
func MaintenanceClient(ctx context.Context, n *Node) (*client.Client, error) {
	return client.New(ctx,
		client.WithEndpoints(n.Address()),
		client.WithTLSConfig(&tls.Config{InsecureSkipVerify: true}), //nolint:gosec // a node in maintenance mode has no certificate to verify
		client.WithGRPCDialOptions(QuickReconnect()))
}

// QuickReconnect makes a client notice sooner that a node is back: by default it waits a second or more between two
// attempts, which is most of a simulated reboot.
func QuickReconnect() grpc.DialOption {
	return grpc.WithConnectParams(grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.2, MaxDelay: 200 * time.Millisecond},
		MinConnectTimeout: 5 * time.Second,
	})
}

// ControlPlanes are the addresses of the nodes that run with a control-plane configuration.
func (w *World) ControlPlanes() []string {
	var addresses []string
	for _, n := range w.Nodes() {
		if b := n.current(); b != nil && b.config() != nil && b.config().controlPlane() {
			addresses = append(addresses, n.Address())
		}
	}
	return slices.Clip(addresses)
}
