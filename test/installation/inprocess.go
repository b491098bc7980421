// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/maesh-dev/ichor/bootstrap/setup"
	"github.com/maesh-dev/ichor/test/harness"
)

// syncTimeout bounds the wait for the manager's cache.
const syncTimeout = time.Minute

// Start installs the components into the management cluster, starts a manager in this process, and waits until it works.
// Every request of the manager goes through wrap, if there is one. The function that is returned stops the manager.
func (c Components) Start(ctx context.Context, cluster *harness.ManagementCluster, wrap func(http.RoundTripper) http.RoundTripper) (func() error, error) {
	webhooks, err := cluster.NewWebhookServer(ManagerAccount)
	if err != nil {
		return nil, err
	}

	others := make([]*unstructured.Unstructured, len(c.Others))
	for i, object := range c.Others {
		others[i] = object.DeepCopy()
	}

	if err := cluster.PointWebhooks(webhooks, others...); err != nil {
		return nil, err
	}

	if err := cluster.Apply(ctx, others...); err != nil {
		return nil, err
	}

	config, err := cluster.UserConfig(ManagerUser, ManagerGroups...)
	if err != nil {
		return nil, err
	}

	if wrap != nil {
		config.Wrap(wrap)
	}

	ctx, cancel := context.WithCancel(ctx)

	mgr, err := setup.NewManager(ctx, config, options(webhooks), func(o *ctrl.Options) {
		// Managers of several management clusters in one process have controllers of one name.
		o.Controller.SkipNameValidation = new(true)
	})
	if err != nil {
		cancel()

		return nil, err
	}

	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()

	synced, stop := context.WithTimeout(ctx, syncTimeout)
	defer stop()

	if !mgr.GetCache().WaitForCacheSync(synced) {
		cancel()

		return nil, fmt.Errorf("the manager's cache does not fill: %w", <-ended)
	}

	return func() error {
		cancel()

		return <-ended
	}, nil
}

func options(webhooks harness.WebhookServer) *setup.Options {
	o := setup.NewOptions()
	o.KubeAPIQPS = -1
	o.HealthAddress = "0"
	o.WebhookPort, o.WebhookCertDir = webhooks.Port, webhooks.CertDir
	o.Diagnostics.DiagnosticsAddress = "0"
	o.Diagnostics.InsecureDiagnostics = true
	o.Diagnostics.TLSMinVersion = "VersionTLS12"

	return o
}
