// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/bootstrap/metrics"
	"github.com/maesh-dev/ichor/bootstrap/moving"
	"github.com/maesh-dev/ichor/bootstrap/reconcilers/cluster"
	"github.com/maesh-dev/ichor/bootstrap/reconcilers/talosclusterconfig"
	"github.com/maesh-dev/ichor/bootstrap/reconcilers/talosconfig"
	"github.com/maesh-dev/ichor/bootstrap/reconcilers/talosconfigpatch"
	"github.com/maesh-dev/ichor/bootstrap/webhooks"
	"github.com/maesh-dev/ichor/internal/clustersecrets"
	"github.com/maesh-dev/ichor/internal/inputs"
	"github.com/maesh-dev/ichor/internal/launch"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// managerName is the manager's name in user agents, events and leases.
const managerName = "ichor-bootstrap-manager"

// concurrency is how many TalosConfigs are reconciled at once unless a flag says otherwise.
const concurrency = 100

// Options are the manager's settings: those that every manager has and that have flags, and what tests may have otherwise.
type Options struct {
	launch.Options

	// Settle is how long changes are gathered before what is reported of the objects that they concern is looked at again.
	Settle time.Duration

	// Bundle changes how the secrets of new clusters are made.
	Bundle []secrets.Option
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	options := &Options{Options: *launch.NewOptions(), Settle: settle}
	options.Concurrency = concurrency

	return options
}

// Run runs the manager with command-line arguments until ctx is done. Help goes to out.
func Run(ctx context.Context, version string, args []string, out io.Writer) error {
	options := NewOptions()

	return launch.Program{
		Name:        managerName,
		Needs:       bootstrapv1.GroupVersion.WithKind("TalosConfigPatch"),
		Definitions: "config/bootstrap/crd",
		Options:     &options.Options,
		AddFlags:    func(set *pflag.FlagSet) { options.AddFlags(set, "TalosConfigs") },
		Validate:    options.Validate,
		NewManager: func(ctx context.Context, config *rest.Config) (ctrl.Manager, error) {
			return NewManager(ctx, config, options)
		},
	}.Run(ctx, version, args, out)
}

// NewManager returns a manager with all webhooks and reconcilers, ready to be started. Each of change may alter what controller-runtime
// is given.
func NewManager(ctx context.Context, restConfig *rest.Config, options *Options, change ...func(*ctrl.Options)) (ctrl.Manager, error) {
	mgr, err := launch.Manager{Name: managerName, Scheme: NewScheme(), Objects: cached()}.New(restConfig, &options.Options, change...)
	if err != nil {
		return nil, err
	}

	if err := webhooks.SetupWithManager(mgr); err != nil {
		return nil, err
	}

	return mgr, addReconcilers(ctx, mgr, options)
}

func addReconcilers(ctx context.Context, mgr ctrl.Manager, options *Options) error {
	metadata, err := launch.NewMetadata(mgr, options.Namespace)
	if err != nil {
		return err
	}

	recorder := mgr.GetEventRecorder(managerName)
	keeper := clustersecrets.New(mgr.GetClient(), mgr.GetAPIReader(), metadata, recorder, clock.RealClock{}, options.Bundle...)
	keeper.Made = metrics.BundleCreated

	if err := mgr.Add(metrics.NewInventory(mgr.GetClient(), keeper)); err != nil {
		return fmt.Errorf("metrics: %w", err)
	}

	concurrency := controller.Options{MaxConcurrentReconciles: options.Concurrency}

	clusters := &cluster.Reconciler{
		Client:      mgr.GetClient(),
		Metadata:    metadata,
		Secrets:     keeper,
		Clock:       clock.RealClock{},
		WatchFilter: options.WatchFilter,
	}
	if err := clusters.SetupWithManager(ctx, mgr, concurrency); err != nil {
		return err
	}

	reader := inputs.NewReader(mgr.GetClient(), mgr.GetAPIReader(), metadata)

	reconciler := &talosconfig.Reconciler{
		Client:      mgr.GetClient(),
		APIReader:   mgr.GetAPIReader(),
		Metadata:    metadata,
		Inputs:      reader,
		Recorder:    recorder,
		Secrets:     keeper,
		Clock:       clock.RealClock{},
		WatchFilter: options.WatchFilter,
	}
	if err := reconciler.SetupWithManager(ctx, mgr, concurrency); err != nil {
		return err
	}

	labels := moving.NewLabeller(mgr.GetClient(), reader, clock.RealClock{})

	clusterConfigs := &talosclusterconfig.Reconciler{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Inputs: reader, Metadata: metadata, Secrets: keeper, Labels: labels,
		Settle: options.Settle, WatchFilter: options.WatchFilter,
	}

	if err := clusterConfigs.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: reporters}); err != nil {
		return err
	}

	patches := &talosconfigpatch.Reconciler{
		Client: mgr.GetClient(), Inputs: reader, Metadata: metadata, Labels: labels, Clock: clock.RealClock{}, Settle: options.Settle,
		WatchFilter: options.WatchFilter,
	}

	return patches.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: patchReporters})
}

// settle is that of Options in production.
const settle = 5 * time.Second

// patchReporters is small, so that renders for a report leave the processor to those that machines wait for.
const patchReporters = 2

// reporters is how many objects of a kind that is only reported on are looked at at once.
const reporters = 10
