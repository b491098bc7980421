// SPDX-License-Identifier: Apache-2.0

// Package inprocess installs the infrastructure provider sim into a management cluster of the test world, and runs its manager in
// this process, with the rights of the installation and no more. It is not pure, and only packages under test/ may import it.
package inprocess

import (
	"context"
	"errors"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/maesh-dev/ichor/test/harness"
	"github.com/maesh-dev/ichor/test/infrastructure/machines"
	"github.com/maesh-dev/ichor/test/infrastructure/setup"
	"github.com/maesh-dev/ichor/test/installation"
)

// The manager's ServiceAccount, as config/ binds it.
const (
	managerNamespace = "ichor-infrastructure-sim-system"
	managerUser      = "system:serviceaccount:" + managerNamespace + ":ichor-infrastructure-sim-manager"
)

// syncTimeout bounds the wait for the manager's cache.
const syncTimeout = time.Minute

// Read builds the provider's installation from the repository whose root is given. Its CRDs and its aggregated role are for
// harness.Options.
func Read(ctx context.Context, root string) (installation.Components, error) {
	return installation.Read(ctx, root, "test/infrastructure/config")
}

// Provider is a provider that runs.
type Provider struct {
	// Machines are the simulated machines.
	Machines *machines.Farm

	own    bool
	cancel context.CancelFunc
	ended  chan error
}

// Start installs the components into the management cluster, starts a manager in this process, and waits until it works. Its
// machines end with it.
func Start(ctx context.Context, components installation.Components, cluster *harness.ManagementCluster, options machines.Options) (*Provider, error) {
	farm := machines.New(options)

	p, err := StartWith(ctx, components, cluster, farm)
	if err != nil {
		return nil, errors.Join(err, farm.Close())
	}

	p.own = true

	return p, nil
}

// StartWith is Start with machines that there are already, and that outlive the provider: whoever has made them closes them.
func StartWith(ctx context.Context, components installation.Components, cluster *harness.ManagementCluster, farm *machines.Farm) (*Provider, error) {
	for _, object := range components.Others {
		// Applying fills in what the API server adds.
		if err := cluster.Apply(ctx, object.DeepCopy()); err != nil {
			return nil, err
		}
	}

	config, err := cluster.UserConfig(managerUser, "system:serviceaccounts", "system:serviceaccounts:"+managerNamespace)
	if err != nil {
		return nil, err
	}

	settings := setup.NewOptions()
	settings.Farm = farm
	settings.HealthAddress = "0"
	settings.Diagnostics.DiagnosticsAddress = "0"
	settings.Diagnostics.InsecureDiagnostics = true
	settings.Diagnostics.TLSMinVersion = "VersionTLS12"

	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))

	mgr, _, err := setup.NewManager(ctx, config, settings, func(o *ctrl.Options) {
		// Managers of several management clusters in one process have controllers of one name.
		o.Controller.SkipNameValidation = new(true)
	})
	if err != nil {
		cancel()

		return nil, err
	}

	p := &Provider{Machines: farm, cancel: cancel, ended: make(chan error, 1)}
	go func() { p.ended <- mgr.Start(ctx) }()

	synced, stop := context.WithTimeout(ctx, syncTimeout)
	defer stop()

	if !mgr.GetCache().WaitForCacheSync(synced) {
		return nil, errors.Join(errors.New("the cache of the infrastructure provider does not fill"), p.Stop())
	}

	return p, nil
}

// Stop ends the manager, and its machines if they are its own.
func (p *Provider) Stop() error {
	p.cancel()

	err := <-p.ended
	if p.own {
		err = errors.Join(err, p.Machines.Close())
	}

	return err
}
