// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	cliflag "k8s.io/component-base/cli/flag"
	logsv1 "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/cluster-api/feature"
	"sigs.k8s.io/cluster-api/util/apiwarnings"
	"sigs.k8s.io/cluster-api/util/flags"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/maesh-dev/ichor/bootstrap/metrics"
	"github.com/maesh-dev/ichor/bootstrap/moving"
	"github.com/maesh-dev/ichor/bootstrap/reconcilers/cluster"
	"github.com/maesh-dev/ichor/bootstrap/reconcilers/talosclusterconfig"
	"github.com/maesh-dev/ichor/bootstrap/reconcilers/talosconfig"
	"github.com/maesh-dev/ichor/bootstrap/reconcilers/talosconfigpatch"
	"github.com/maesh-dev/ichor/bootstrap/webhooks"
	"github.com/maesh-dev/ichor/internal/clustersecrets"
	"github.com/maesh-dev/ichor/internal/inputs"
)

// managerName is the manager's name in user agents, events and leases.
const managerName = "ichor-bootstrap-manager"

// cacheSyncTimeout leaves a large management cluster the time to be listed.
const cacheSyncTimeout = 5 * time.Minute

// Run runs the manager with command-line arguments until ctx is done. Help goes to out.
func Run(ctx context.Context, version string, args []string, out io.Writer) error {
	options := NewOptions()

	set := pflag.NewFlagSet(managerName, pflag.ContinueOnError)
	set.SetOutput(out)
	set.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	set.AddGoFlagSet(flag.CommandLine) // --kubeconfig
	options.AddFlags(set)

	if err := set.Set("v", "2"); err != nil {
		return fmt.Errorf("default log level: %w", err)
	}

	if err := set.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return nil
		}

		return err
	}

	if set.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: every setting is a flag", set.Arg(0))
	}

	if err := options.Validate(); err != nil {
		return err
	}

	if err := logsv1.ValidateAndApply(options.logs, nil); err != nil {
		return fmt.Errorf("logging flags: %w", err)
	}

	ctrl.SetLogger(klog.Background())

	restConfig, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("configuration of the management cluster: %w", err)
	}

	restConfig.UserAgent = fmt.Sprintf("%s/%s", managerName, version)

	if err := waitForDefinitions(ctx, restConfig); err != nil {
		return err
	}

	mgr, err := NewManager(ctx, restConfig, options)
	if err != nil {
		return err
	}

	mgr.GetLogger().WithName("setup").Info("Starting manager", "version", version)

	return mgr.Start(ctx)
}

// NewManager returns a manager with all webhooks and reconcilers, ready to be started. Each of change may alter what controller-runtime
// is given.
func NewManager(ctx context.Context, restConfig *rest.Config, options *Options, change ...func(*ctrl.Options)) (ctrl.Manager, error) {
	restConfig = rest.CopyConfig(restConfig)
	restConfig.QPS = options.KubeAPIQPS
	restConfig.Burst = options.KubeAPIBurst
	restConfig.Wrap(withoutSecretWarnings)
	restConfig.WarningHandler = apiwarnings.DefaultHandler(klog.Background().WithName("API Server Warning"))

	managerOptions, err := options.managerOptions()
	if err != nil {
		return nil, err
	}

	for _, each := range change {
		each(&managerOptions)
	}

	mgr, err := ctrl.NewManager(restConfig, managerOptions)
	if err != nil {
		return nil, fmt.Errorf("create the manager: %w", err)
	}

	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("health check: %w", err)
	}

	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("readiness check: %w", err)
	}

	// A manager that serves no webhooks yet must get no traffic: the API server would refuse what users write.
	if err := mgr.AddHealthzCheck("webhook", mgr.GetWebhookServer().StartedChecker()); err != nil {
		return nil, fmt.Errorf("health check of the webhooks: %w", err)
	}

	if err := mgr.AddReadyzCheck("webhook", mgr.GetWebhookServer().StartedChecker()); err != nil {
		return nil, fmt.Errorf("readiness check of the webhooks: %w", err)
	}

	if err := webhooks.SetupWithManager(mgr); err != nil {
		return nil, err
	}

	if err := mgr.Add(metrics.NewInventory(mgr.GetClient())); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}

	return mgr, addReconcilers(ctx, mgr, options)
}

func (o *Options) managerOptions() (ctrl.Options, error) {
	tlsOptions, diagnostics, err := flags.GetManagerOptions(o.Diagnostics)
	if err != nil {
		return ctrl.Options{}, fmt.Errorf("diagnostics flags: %w", err)
	}

	// It is there only when the endpoint is protected.
	if _, ok := diagnostics.ExtraHandlers[verbosityPath]; ok {
		diagnostics.ExtraHandlers[verbosityPath] = verbosityHandler()
	}

	cacheOptions, err := cacheOptions(o.Namespace, o.SyncPeriod)
	if err != nil {
		return ctrl.Options{}, err
	}

	return ctrl.Options{
		Scheme: NewScheme(),
		Controller: config.Controller{
			UsePriorityQueue: new(feature.Gates.Enabled(feature.PriorityQueue)),
			CacheSyncTimeout: cacheSyncTimeout,
		},
		LeaderElection:             o.LeaderElect,
		LeaderElectionID:           managerName + "-leader-election",
		LeaderElectionNamespace:    o.LeaseNamespace,
		LeaderElectionResourceLock: resourcelock.LeasesResourceLock,
		// The next leader need not wait for the lease to run out. That is safe because workers end first, and a process whose
		// workers do not end in time ends itself as soon as Start returns.
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &o.LeaseDuration,
		RenewDeadline:                 &o.RenewDeadline,
		RetryPeriod:                   &o.Retry,
		HealthProbeBindAddress:        o.HealthAddress,
		Metrics:                       *diagnostics,
		WebhookServer: webhook.NewServer(webhook.Options{
			Port:     o.WebhookPort,
			CertDir:  o.WebhookCertDir,
			CertName: o.WebhookCertName,
			KeyName:  o.WebhookKeyName,
			TLSOpts:  tlsOptions,
		}),
		Cache: cacheOptions,
	}, nil
}

func addReconcilers(ctx context.Context, mgr ctrl.Manager, options *Options) error {
	metadata, err := newMetadata(mgr, options.Namespace)
	if err != nil {
		return err
	}

	recorder := mgr.GetEventRecorder(managerName)
	keeper := clustersecrets.New(mgr.GetClient(), mgr.GetAPIReader(), metadata, recorder, clock.RealClock{})
	keeper.Made = metrics.BundleCreated

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
		WatchFilter: options.WatchFilter,
	}

	if err := clusterConfigs.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: reporters}); err != nil {
		return err
	}

	patches := &talosconfigpatch.Reconciler{
		Client: mgr.GetClient(), Inputs: reader, Metadata: metadata, Labels: labels, Clock: clock.RealClock{}, Settle: settle,
		WatchFilter: options.WatchFilter,
	}

	return patches.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: patchReporters})
}

// settle is how long changes are gathered before the patches that they concern are looked at again.
const settle = 5 * time.Second

// patchReporters is small, so that renders for a report leave the processor to those that machines wait for.
const patchReporters = 2

// reporters is how many objects of a kind that is only reported on are looked at at once.
const reporters = 10
