// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/bootstrap/setup"
	"github.com/maesh-dev/ichor/test/harness"
	"github.com/maesh-dev/ichor/test/installation"
	"github.com/maesh-dev/ichor/test/tools"
)

const (
	pollInterval = 100 * time.Millisecond

	// diagnosticsTimeout bounds the start of an endpoint on a busy machine.
	diagnosticsTimeout = time.Minute
)

// BareUser is who writes what a manager is compared with.
const BareUser = "bare-loop"

// World is a management cluster for many Machines.
type World struct {
	*harness.ManagementCluster

	// Admin reads live and may do everything.
	Admin client.Client

	dir         string
	program     string
	kubeconfig  string
	components  installation.Components
	webhooks    harness.WebhookServer
	diagnostics *installation.Diagnostics
}

// Options say what a world has besides an API server.
type Options struct {
	// Audit has the API server note all requests.
	Audit bool

	// GarbageCollector starts the controller manager.
	GarbageCollector bool
}

// Start starts a world and builds the manager. Nothing reconciles until StartManager.
func Start(ctx context.Context, options Options) (*World, error) {
	root, err := tools.RepositoryRoot()
	if err != nil {
		return nil, err
	}

	dir, err := os.MkdirTemp("", "ichor-scale-")
	if err != nil {
		return nil, err
	}

	w := &World{dir: dir}
	if err = w.start(ctx, root, options); err != nil {
		return nil, errors.Join(err, w.Stop())
	}

	return w, nil
}

func (w *World) start(ctx context.Context, root string, options Options) error {
	var err error
	if w.program, err = harness.BuildProvider(ctx, "bootstrap", w.dir); err != nil {
		return err
	}

	if w.components, err = installation.Bootstrap.Read(ctx, root); err != nil {
		return err
	}

	crds, err := w.components.Definitions(ctx)
	if err != nil {
		return err
	}

	w.ManagementCluster, err = harness.StartManagementCluster(ctx, harness.Options{
		CRDs: crds, Audit: options.Audit, ControllerManager: options.GarbageCollector,
	})
	if err != nil {
		return err
	}

	if w.Admin, err = client.New(w.Config(), client.Options{Scheme: setup.NewScheme()}); err != nil {
		return err
	}

	if err = w.Apply(ctx, installation.Rights(w.components.Others)...); err != nil {
		return err
	}

	if w.diagnostics, err = installation.NewDiagnostics(ctx, w.Admin); err != nil {
		return err
	}

	if w.kubeconfig, err = w.UserKubeconfig(installation.Bootstrap.User(), installation.Bootstrap.Groups()...); err != nil {
		return err
	}

	w.webhooks, err = w.NewWebhookServer(installation.Bootstrap.Account)

	return err
}

// Stop ends everything and removes what it has written.
func (w *World) Stop() error {
	var err error
	if w.ManagementCluster != nil {
		err = w.ManagementCluster.Stop()
	}

	return errors.Join(err, os.RemoveAll(w.dir))
}

// StartManager starts a manager that serves the world's webhooks, and waits until it is ready and tells of itself. Its requests are limited by the API
// server alone unless the flags say otherwise.
func (w *World) StartManager(ctx context.Context, name string, flags ...string) (*harness.Provider, error) {
	manager, err := w.StartProvider(ctx, w.ManagerOptions(name, w.webhooks, flags...))
	if err != nil {
		return nil, err
	}

	var failure error

	// The endpoints start one after the other.
	err = wait.PollUntilContextTimeout(ctx, pollInterval, diagnosticsTimeout, true, func(ctx context.Context) (bool, error) {
		_, failure = w.diagnostics.Get(ctx, manager, "/metrics")

		return failure == nil, nil
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("diagnostics of %s: %w", name, err), failure, manager.Kill())
	}

	return manager, nil
}

// ManagerOptions are those of a manager with webhooks of its own.
func (w *World) ManagerOptions(name string, webhooks harness.WebhookServer, flags ...string) harness.ProviderOptions {
	return harness.ProviderOptions{
		Name: name, Program: w.program, Kubeconfig: w.kubeconfig, Webhooks: webhooks,
		Args: append([]string{"--kube-api-qps=-1"}, flags...),
	}
}

// InstallWebhooks has the API server ask the manager that StartManager has started.
func (w *World) InstallWebhooks(ctx context.Context) error {
	configurations := w.components.Webhooks()
	if err := w.PointWebhooks(w.webhooks, configurations...); err != nil {
		return err
	}

	return w.Apply(ctx, configurations...)
}
