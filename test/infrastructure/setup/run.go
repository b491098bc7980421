// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/flags"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
	"github.com/maesh-dev/ichor/test/infrastructure/machines"
	"github.com/maesh-dev/ichor/test/infrastructure/reconcilers/simcluster"
	"github.com/maesh-dev/ichor/test/infrastructure/reconcilers/simmachine"
	"github.com/maesh-dev/ichor/test/infrastructure/reconcilers/simmachinepool"
)

// managerName is the manager's name in user agents, events and leases.
const managerName = "ichor-infrastructure-sim-manager"

// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// Run runs the manager with command-line arguments until ctx is done. Help goes to out.
func Run(ctx context.Context, args []string, out io.Writer) error {
	options := NewOptions()

	set := pflag.NewFlagSet(managerName, pflag.ContinueOnError)
	set.SetOutput(out)
	klog.InitFlags(flag.CommandLine)
	set.AddGoFlagSet(flag.CommandLine) // --kubeconfig, -v
	options.AddFlags(set)

	if err := set.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return nil
		}

		return err
	}

	if set.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: every setting is a flag", set.Arg(0))
	}

	ctrl.SetLogger(klog.Background())

	restConfig, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("configuration of the management cluster: %w", err)
	}

	mgr, _, err := NewManager(ctx, restConfig, options)
	if err != nil {
		return err
	}

	return mgr.Start(ctx)
}

// NewScheme returns a scheme with the kinds that the manager reads and writes.
func NewScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()

	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(clusterv1.AddToScheme(scheme))
	utilruntime.Must(infrav1.AddToScheme(scheme))

	return scheme
}

// NewManager returns a manager with all reconcilers, ready to be started, and its machines, which end with it unless the options have them. Each of change may
// alter what controller-runtime is given.
func NewManager(ctx context.Context, restConfig *rest.Config, options *Options, change ...func(*ctrl.Options)) (ctrl.Manager, *machines.Farm, error) {
	if err := options.Validate(); err != nil {
		return nil, nil, err
	}

	_, diagnostics, err := flags.GetManagerOptions(options.Diagnostics)
	if err != nil {
		return nil, nil, fmt.Errorf("diagnostics flags: %w", err)
	}

	managerOptions := ctrl.Options{
		Scheme:                        NewScheme(),
		LeaderElection:                options.LeaderElect,
		LeaderElectionID:              managerName + "-leader-election",
		LeaderElectionReleaseOnCancel: true,
		HealthProbeBindAddress:        options.HealthAddress,
		Metrics:                       *diagnostics,
		Cache:                         cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
	}
	if options.Namespace != "" {
		managerOptions.Cache.DefaultNamespaces = map[string]cache.Config{options.Namespace: {}}
	}

	for _, each := range change {
		each(&managerOptions)
	}

	restConfig = rest.CopyConfig(restConfig)
	restConfig.UserAgent = managerName

	mgr, err := ctrl.NewManager(restConfig, managerOptions)
	if err != nil {
		return nil, nil, fmt.Errorf("create the manager: %w", err)
	}

	if err := errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping)); err != nil {
		return nil, nil, fmt.Errorf("health checks: %w", err)
	}

	farm, err := addReconcilers(ctx, mgr, options)

	return mgr, farm, err
}

func addReconcilers(ctx context.Context, mgr ctrl.Manager, options *Options) (*machines.Farm, error) {
	farm := options.Farm
	if farm == nil {
		settings := options.Machines
		settings.Full, settings.Kubernetes = options.Fidelity == FidelityFull, options.Fidelity == FidelityInMemory
		if settings.Dir == noDirectory {
			settings.Dir = ""
		}

		settings.Keep = settings.Dir != ""

		farm = machines.New(settings)
		if err := mgr.Add(farm); err != nil {
			return nil, fmt.Errorf("machines: %w", err)
		}
	}

	clusters := &simcluster.Reconciler{Client: mgr.GetClient(), Farm: farm, WatchFilter: options.WatchFilter}
	if err := clusters.SetupWithManager(ctx, mgr, controller.Options{}); err != nil {
		return nil, err
	}

	pools := &simmachinepool.Reconciler{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Farm: farm, WatchFilter: options.WatchFilter,
	}
	if err := pools.SetupWithManager(ctx, mgr, controller.Options{}); err != nil {
		return nil, err
	}

	reconciler := &simmachine.Reconciler{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Farm: farm, WatchFilter: options.WatchFilter,
	}

	return farm, reconciler.SetupWithManager(mgr, controller.Options{MaxConcurrentReconciles: options.Concurrency})
}
