// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/maesh-dev/ichor/test/harness"
	"github.com/maesh-dev/ichor/test/infrastructure/inprocess"
	"github.com/maesh-dev/ichor/test/infrastructure/machines"
	"github.com/maesh-dev/ichor/test/installation"
)

// serveCommand runs the demo's world until it is told to stop.
const serveCommand = "serve"

// serve starts everything and stays. The file "ready" appears when all of it answers.
func serve(ctx context.Context, s state) (err error) {
	ctrl.SetLogger(harness.NewLogger(os.Stderr)) // of the infrastructure provider, into world.log

	pid := strconv.Itoa(os.Getpid())
	if err = os.WriteFile(s.path("pid"), []byte(pid), 0o600); err != nil {
		return err
	}

	defer func() { err = errors.Join(err, os.Remove(s.path("pid"))) }()

	bootstrap, err := installation.Bootstrap.Read(ctx, s.root)
	if err != nil {
		return err
	}

	controlPlane, err := installation.ControlPlane.Read(ctx, s.root)
	if err != nil {
		return err
	}

	infrastructure, err := inprocess.Read(ctx, s.root)
	if err != nil {
		return err
	}

	cluster, err := harness.StartManagementCluster(ctx, harness.Options{
		Dir:       s.path("cluster"),
		LogDir:    s.path("logs"),
		CAPICore:  true,
		CRDs:      slices.Concat(bootstrap.CRDs, controlPlane.CRDs, infrastructure.CRDs),
		Manifests: []string{bootstrap.AggregatedRole, controlPlane.AggregatedRole, infrastructure.AggregatedRole},
	})
	if err != nil {
		return err
	}

	defer func() { err = errors.Join(err, cluster.Stop()) }()

	if err = copyFile(cluster.KubeconfigPath(), s.kubeconfig()); err != nil {
		return err
	}

	bootstrapManager, err := bootstrap.StartProcess(ctx, cluster, s.path("bin/"+installation.Bootstrap.Account))
	if err != nil {
		return err
	}

	controlPlaneManager, err := controlPlane.StartProcess(ctx, cluster, s.path("bin/"+installation.ControlPlane.Account))
	if err != nil {
		return err
	}

	provider, err := inprocess.Start(ctx, infrastructure, cluster, machines.Options{Full: true, Dir: s.path("machines")})
	if err != nil {
		return err
	}

	defer func() { err = errors.Join(err, provider.Stop()) }()

	if err = os.WriteFile(s.path("ready"), nil, 0o600); err != nil {
		return err
	}

	// Until the demo is told to end, or a part of it has ended by itself. The cluster's Stop ends what still runs.
	select {
	case <-ctx.Done():
		return nil
	case <-bootstrapManager.Done():
		return fmt.Errorf("%s has ended: see its log in %s", installation.Bootstrap.Account, s.path("logs"))
	case <-controlPlaneManager.Done():
		return fmt.Errorf("%s has ended: see its log in %s", installation.ControlPlane.Account, s.path("logs"))
	}
}

func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}

	return os.WriteFile(to, content, 0o600)
}
