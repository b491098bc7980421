// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"fmt"
	"io"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/controllers/remote"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/controlplane/reconcilers/taloscontrolplane"
	"github.com/maesh-dev/ichor/controlplane/webhooks"
	"github.com/maesh-dev/ichor/internal/clustersecrets"
	"github.com/maesh-dev/ichor/internal/launch"
	"github.com/maesh-dev/ichor/internal/talos"
)

// managerName is the manager's name in user agents, events and leases.
const managerName = "ichor-controlplane-manager"

// The right to ask who reads the diagnostics endpoint, and whether they may.
//
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// Run runs the manager with command-line arguments until ctx is done. Help goes to out.
func Run(ctx context.Context, version string, args []string, out io.Writer) error {
	options := NewOptions()

	return launch.Program{
		Name:        managerName,
		Needs:       controlplanev1.GroupVersion.WithKind("TalosControlPlane"),
		Definitions: "config/controlplane/crd",
		Options:     &options.Options,
		AddFlags:    options.AddFlags,
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
	metadata, err := launch.NewMetadata(mgr, options.Namespace, taloscontrolplane.MetadataAnnotations()...)
	if err != nil {
		return err
	}

	clusters, err := clustercache.SetupWithManager(ctx, mgr, clustercache.Options{
		SecretClient:     mgr.GetClient(),
		WatchFilterValue: options.WatchFilter,
		ClusterFilter:    isOurs,
		Cache:            workloadCache(),
		Client: clustercache.ClientOptions{
			QPS: options.ClusterCacheQPS, Burst: options.ClusterCacheBurst, UserAgent: remote.DefaultClusterAPIUserAgent(managerName),
		},
	}, controller.Options{MaxConcurrentReconciles: options.ClusterCacheConcurrency})
	if err != nil {
		return fmt.Errorf("connections to workload clusters: %w", err)
	}

	nodes := talos.NewPool(talos.Options{Clock: clock.RealClock{}})
	if err := mgr.Add(nodes); err != nil {
		return fmt.Errorf("connections to nodes: %w", err)
	}

	recorder := mgr.GetEventRecorder(managerName)

	reconciler := &taloscontrolplane.Reconciler{
		Client:         mgr.GetClient(),
		APIReader:      mgr.GetAPIReader(),
		Metadata:       metadata,
		Recorder:       recorder,
		Secrets:        clustersecrets.New(mgr.GetClient(), mgr.GetAPIReader(), metadata, recorder, clock.RealClock{}),
		ClusterCache:   clusters,
		Talos:          nodes,
		Clock:          clock.RealClock{},
		WatchFilter:    options.WatchFilter,
		GracePeriod:    options.RemoteConditionsGracePeriod,
		HealthInterval: options.HealthInterval,
		PollInterval:   options.PollInterval,
	}

	return reconciler.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: options.Concurrency})
}
