// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	bootstrapsetup "github.com/maesh-dev/ichor/bootstrap/setup"
	controlplanesetup "github.com/maesh-dev/ichor/controlplane/setup"
	"github.com/maesh-dev/ichor/internal/launch"
	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/test/harness"
)

// syncTimeout bounds the wait for the manager's cache.
const syncTimeout = time.Minute

// constructor makes a manager of a provider with the options that every manager has.
type constructor func(ctx context.Context, config *rest.Config, set func(*launch.Options), change func(*ctrl.Options)) (ctrl.Manager, error)

func newBootstrapManager(ctx context.Context, config *rest.Config, set func(*launch.Options), change func(*ctrl.Options)) (ctrl.Manager, error) {
	options := bootstrapsetup.NewOptions()
	set(&options.Options)
	// An RSA key takes the race detector ten seconds. Managers that are processes of their own make one.
	options.Bundle = []secrets.Option{secrets.WithECDSAServiceAccountKey()}

	return bootstrapsetup.NewManager(ctx, config, options, change)
}

func newControlPlaneManager(ctx context.Context, config *rest.Config, set func(*launch.Options), change func(*ctrl.Options)) (ctrl.Manager, error) {
	options := controlplanesetup.NewOptions()
	set(&options.Options)
	// Simulated machines are faster than real ones.
	options.PollInterval = time.Second

	return controlplanesetup.NewManager(ctx, config, options, change)
}

// Start installs the components into the management cluster, starts a manager in this process, and waits until it works.
// Every request of the manager goes through wrap, if there is one. The function that is returned stops the manager, which otherwise
// outlives ctx.
func (c Components) Start(ctx context.Context, cluster *harness.ManagementCluster, wrap func(http.RoundTripper) http.RoundTripper) (func() error, error) {
	webhooks, err := c.install(ctx, cluster)
	if err != nil {
		return nil, err
	}

	config, err := cluster.UserConfig(c.provider.User(), c.provider.Groups()...)
	if err != nil {
		return nil, err
	}

	if wrap != nil {
		config.Wrap(wrap)
	}

	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))

	mgr, err := c.provider.newManager(ctx, config, func(o *launch.Options) { quiet(o, webhooks) }, func(o *ctrl.Options) {
		// Managers of several management clusters in one process have controllers of one name.
		o.Controller.SkipNameValidation = new(true)
	})
	if err != nil {
		cancel()

		return nil, err
	}

	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()

	stop := func() error {
		cancel()

		return <-ended
	}

	synced, done := context.WithTimeout(ctx, syncTimeout)
	defer done()

	if !mgr.GetCache().WaitForCacheSync(synced) {
		return nil, errors.Join(fmt.Errorf("the cache of %s does not fill", c.provider.Account), stop())
	}

	return stop, nil
}

// StartProcess installs the components into the management cluster, starts a program that harness.BuildProvider has built as a process of
// its own, and waits until it is ready.
func (c Components) StartProcess(ctx context.Context, cluster *harness.ManagementCluster, program string, args ...string) (*harness.Provider, error) {
	webhooks, err := c.install(ctx, cluster)
	if err != nil {
		return nil, err
	}

	kubeconfig, err := cluster.UserKubeconfig(c.provider.User(), c.provider.Groups()...)
	if err != nil {
		return nil, err
	}

	return cluster.StartProvider(ctx, harness.ProviderOptions{
		Name: c.provider.Account, Program: program, Kubeconfig: kubeconfig, Webhooks: webhooks, Args: args,
	})
}

// install applies the components, with webhooks that lead to this machine.
func (c Components) install(ctx context.Context, cluster *harness.ManagementCluster) (harness.WebhookServer, error) {
	webhooks, err := cluster.NewWebhookServer(c.provider.Account)
	if err != nil {
		return harness.WebhookServer{}, err
	}

	others := make([]*unstructured.Unstructured, len(c.Others))
	for i, object := range c.Others {
		others[i] = object.DeepCopy()
	}

	if err := cluster.PointWebhooks(webhooks, others...); err != nil {
		return harness.WebhookServer{}, err
	}

	if err := cluster.Apply(ctx, others...); err != nil {
		return harness.WebhookServer{}, err
	}

	return webhooks, c.waitForRights(ctx, cluster)
}

// waitForRights waits until the roles that are gathered from others have their rules: nothing that a manager does is to be forbidden.
func (c Components) waitForRights(ctx context.Context, cluster *harness.ManagementCluster) error {
	for _, object := range c.Others {
		if _, gathers, err := unstructured.NestedMap(object.Object, "aggregationRule"); err != nil || !gathers {
			continue
		}

		if err := cluster.WaitForAggregatedRole(ctx, object.GetName()); err != nil {
			return err
		}
	}

	return nil
}

// quiet is for a manager in this process: it serves webhooks and nothing else.
func quiet(o *launch.Options, webhooks harness.WebhookServer) {
	o.KubeAPIQPS = -1
	o.HealthAddress = "0"
	o.WebhookPort, o.WebhookCertDir = webhooks.Port, webhooks.CertDir
	o.Diagnostics.DiagnosticsAddress = "0"
	o.Diagnostics.InsecureDiagnostics = true
	o.Diagnostics.TLSMinVersion = "VersionTLS12"
}
