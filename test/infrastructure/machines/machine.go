// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/maesh-dev/ichor/test/talossim"
)

// ErrRefused is what Provision returns for a config that the node does not take. What the node says may quote the config, so it
// is left out; Node.Maintenance has it if the config was user data.
var ErrRefused = errors.New("the node refuses the machine config")

// Machine is a machine of a farm.
type Machine struct {
	// Node is the simulated node. A test may do with it what it likes; the provider changes its faults only when the faults of
	// the SimMachine change.
	Node *talossim.Node

	cluster *cluster

	mu          sync.Mutex
	faults      talossim.Faults
	provisioned bool
}

// Provisioned tells whether the machine has been handed its config.
func (m *Machine) Provisioned() bool {
	m.mu.Lock()
	defer m.mu.Unlock()

	return m.provisioned
}

// SetFaults sets the node's faults if they are others than those that were set so before.
func (m *Machine) SetFaults(faults talossim.Faults) {
	m.mu.Lock()
	defer m.mu.Unlock()

	if m.faults != faults {
		m.faults = faults
		m.Node.SetFaults(faults)
	}
}

// Provision hands the machine its config, once: as user data, before it boots, or, with maintenance, through the Talos API after
// it has booted without one. It returns when the machine has booted, as talossim's PowerOn.
func (m *Machine) Provision(ctx context.Context, config []byte, maintenance bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()

	if m.provisioned {
		return nil
	}

	if !maintenance {
		m.provisioned = true
		m.Node.SetUserData(config)

		return m.Node.PowerOn(ctx)
	}

	if err := m.Node.PowerOn(ctx); err != nil {
		return err
	}

	if err := m.apply(ctx, config); err != nil {
		return err
	}

	m.provisioned = true

	return nil
}

// applyTimeout bounds the call of a node in maintenance mode.
const applyTimeout = 30 * time.Second

func (m *Machine) apply(ctx context.Context, config []byte) error {
	ctx, cancel := context.WithTimeout(ctx, applyTimeout)
	defer cancel()

	c, err := talossim.MaintenanceClient(ctx, m.Node)
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // The call has been answered.

	_, err = c.ApplyConfiguration(ctx, &machine.ApplyConfigurationRequest{Data: config, Mode: machine.ApplyConfigurationRequest_AUTO})

	switch code := status.Code(err); code {
	case codes.OK:
		return nil
	case codes.InvalidArgument:
		return ErrRefused
	default:
		return fmt.Errorf("apply the machine config in maintenance mode: the node at %s answers %s", m.Node.Address(), code)
	}
}
