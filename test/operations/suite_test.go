// SPDX-License-Identifier: Apache-2.0

package operations_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/bootstrap/setup"
	"github.com/maesh-dev/ichor/test/harness"
	"github.com/maesh-dev/ichor/test/installation"
	"github.com/maesh-dev/ichor/test/invariants"
	"github.com/maesh-dev/ichor/test/standin"
)

const (
	// patience bounds every wait, on a machine that does other things too.
	patience = 90 * time.Second
	interval = 50 * time.Millisecond
)

var (
	systemNamespace = installation.Bootstrap.Namespace
	managerUser     = installation.Bootstrap.User()

	root       = filepath.Join("..", "..")
	cluster    *harness.ManagementCluster
	admin      client.Client
	program    string
	components installation.Components
	search     *invariants.Search

	// The same of the control-plane provider.
	controlPlaneProgram string
	controlPlane        installation.Components
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}

	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx := context.Background()
	ctrllog.SetLogger(harness.NewLogger(os.Stderr).V(1))

	dir, err := os.MkdirTemp("", "ichor-operations-")
	if err != nil {
		return 1, err
	}

	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	if program, err = harness.BuildProvider(ctx, "bootstrap", dir); err != nil {
		return 1, err
	}

	if controlPlaneProgram, err = harness.BuildProvider(ctx, "controlplane", dir); err != nil {
		return 1, err
	}

	if components, err = installation.Bootstrap.Read(ctx, root); err != nil {
		return 1, err
	}

	if controlPlane, err = installation.ControlPlane.Read(ctx, root); err != nil {
		return 1, err
	}

	crds, err := components.Definitions(ctx)
	if err != nil {
		return 1, err
	}

	// Nobody plays an infrastructure provider. Its objects are there because a cluster has them.
	crds = slices.Concat(crds, controlPlane.CRDs, standin.CRDs())

	if cluster, err = harness.StartManagementCluster(ctx, harness.Options{CRDs: crds, Audit: true}); err != nil {
		return 1, err
	}

	defer func() { err = errors.Join(err, cluster.Stop()) }()

	scheme := setup.NewScheme()
	if err := controlplanev1.AddToScheme(scheme); err != nil {
		return 1, err
	}

	if admin, err = client.New(cluster.Config(), client.Options{Scheme: scheme}); err != nil {
		return 1, err
	}

	if search, err = invariants.NewSearch(cluster.Config(), admin, filepath.Join(cluster.LogDir(), "*")); err != nil {
		return 1, err
	}

	for _, each := range []installation.Components{components, controlPlane} {
		if err := cluster.Apply(ctx, installation.Rights(each.Others)...); err != nil {
			return 1, err
		}
	}

	code = m.Run()

	return code, leaks(ctx)
}

// manager is a manager that runs.
type manager struct {
	*harness.Provider

	t *testing.T
}

// start runs the program as a user, and ends it with the test. A test that failed shows its log. An object is reconciled more than once a
// second, and not as slowly as in production.
func start(t *testing.T, name, user string, args ...string) *manager {
	t.Helper()

	return startWith(t, nil, name, user, append([]string{"--feature-gates=ReconcilerRateLimiting=false"}, args...)...)
}

// startWith is start with variables of the environment, and with Cluster API's feature gates as they are by default.
func startWith(t *testing.T, env []string, name, user string, args ...string) *manager {
	t.Helper()

	return launch(t, program, installation.Bootstrap, env, name, user, args...)
}

// startControlPlane is start for the program of the control-plane provider.
func startControlPlane(t *testing.T, name, user string, args ...string) *manager {
	t.Helper()

	return launch(t, controlPlaneProgram, installation.ControlPlane, nil, name, user, append([]string{"--feature-gates=ReconcilerRateLimiting=false"}, args...)...)
}

func launch(t *testing.T, program string, of installation.Provider, env []string, name, user string, args ...string) *manager {
	t.Helper()

	g := NewWithT(t)

	kubeconfig, err := cluster.UserKubeconfig(user, of.Groups()...)
	g.Expect(err).NotTo(HaveOccurred())

	webhooks, err := cluster.NewWebhookServer(name)
	g.Expect(err).NotTo(HaveOccurred())

	provider, err := cluster.StartProvider(t.Context(), harness.ProviderOptions{
		Name: name, Program: program, Kubeconfig: kubeconfig, Webhooks: webhooks, Env: env,
		Args: append([]string{"--logging-format=json"}, args...),
	})
	g.Expect(err).NotTo(HaveOccurred())

	t.Cleanup(func() {
		if t.Failed() {
			g.Expect(provider.CopyLog(os.Stderr)).To(Succeed())
		}

		g.Expect(provider.Kill()).To(Succeed())
	})

	return &manager{Provider: provider, t: t}
}
