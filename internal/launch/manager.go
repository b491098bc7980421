// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
	"sigs.k8s.io/cluster-api/feature"
	"sigs.k8s.io/cluster-api/util/apiwarnings"
	"sigs.k8s.io/cluster-api/util/flags"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// cacheSyncTimeout leaves a large management cluster the time to be listed.
const cacheSyncTimeout = 5 * time.Minute

// shutdownTimeout is how long a manager waits for its workers when it is asked to end: less than terminationGracePeriodSeconds of its Deployment,
// after which it is killed and keeps its lease, so that the next leader has to wait for that to run out. Workers end at once, but for Cluster API's
// on a connection to a workload cluster that has just come or failed: it waits for ever for a controller that has ended to hear of it.
const shutdownTimeout = 8 * time.Second

// Manager is what a manager has of its own.
type Manager struct {
	// Name of the manager, in its lease.
	Name string

	// Scheme has the kinds that it reads and writes.
	Scheme *runtime.Scheme

	// Objects are what its cache does with some kinds. Of all others it keeps everything but who has written what.
	Objects map[client.Object]cache.ByObject
}

// New returns a manager with its endpoints, that has no webhooks and no reconcilers yet. Each of change may alter what
// controller-runtime is given.
func (m Manager) New(restConfig *rest.Config, options *Options, change ...func(*ctrl.Options)) (ctrl.Manager, error) {
	restConfig = rest.CopyConfig(restConfig)
	restConfig.QPS = options.KubeAPIQPS
	restConfig.Burst = options.KubeAPIBurst
	restConfig.Wrap(withoutSecretWarnings)
	restConfig.WarningHandler = apiwarnings.DefaultHandler(klog.Background().WithName("API Server Warning"))

	managerOptions, err := m.options(options)
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

	return mgr, nil
}

func (m Manager) options(o *Options) (ctrl.Options, error) {
	tlsOptions, diagnostics, err := flags.GetManagerOptions(o.Diagnostics)
	if err != nil {
		return ctrl.Options{}, fmt.Errorf("diagnostics flags: %w", err)
	}

	// It is there only when the endpoint is protected.
	if _, ok := diagnostics.ExtraHandlers[verbosityPath]; ok {
		diagnostics.ExtraHandlers[verbosityPath] = verbosityHandler()
	}

	return ctrl.Options{
		Scheme: m.Scheme,
		Controller: config.Controller{
			UsePriorityQueue: new(feature.Gates.Enabled(feature.PriorityQueue)),
			CacheSyncTimeout: cacheSyncTimeout,
		},
		LeaderElection:             o.LeaderElect,
		LeaderElectionID:           m.Name + "-leader-election",
		LeaderElectionNamespace:    o.LeaseNamespace,
		LeaderElectionResourceLock: resourcelock.LeasesResourceLock,
		// The next leader need not wait for the lease to run out. That is safe because workers end first, and a process whose
		// workers do not end in time ends itself as soon as Start returns.
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       new(shutdownTimeout),
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
		Cache: cache.Options{
			DefaultFieldSelector: within(o.Namespace),
			SyncPeriod:           &o.SyncPeriod,
			DefaultTransform:     cache.TransformStripManagedFields(),
			ByObject:             m.Objects,
		},
	}, nil
}
