// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/bootstrap/setup"
	"github.com/maesh-dev/ichor/test/harness"
	"github.com/maesh-dev/ichor/test/tools"
)

// The manager's ServiceAccount, as an installation has it.
const (
	managerNamespace = "ichor-bootstrap-system"
	ManagerUser      = "system:serviceaccount:" + managerNamespace + ":ichor-bootstrap-manager"
)

// BareUser is who writes what a manager is compared with.
const BareUser = "bare-loop"

// World is a management cluster for many Machines.
type World struct {
	*harness.ManagementCluster

	// Admin reads live and may do everything.
	Admin client.Client

	root       string
	dir        string
	program    string
	kubeconfig string
	webhooks   harness.WebhookServer
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

	w := &World{root: root, dir: dir}
	if err = w.start(ctx, options); err != nil {
		return nil, errors.Join(err, w.Stop())
	}

	return w, nil
}

func (w *World) start(ctx context.Context, options Options) error {
	var err error
	if w.program, err = harness.BuildProvider(ctx, "bootstrap", w.dir); err != nil {
		return err
	}

	crds, err := w.crds(ctx)
	if err != nil {
		return err
	}

	w.ManagementCluster, err = harness.StartManagementCluster(ctx, harness.Options{
		CRDs:              crds,
		Manifests:         []string{filepath.Join(w.root, "config", "bootstrap", "rbac", "role.yaml")},
		Audit:             options.Audit,
		ControllerManager: options.GarbageCollector,
	})
	if err != nil {
		return err
	}

	if w.Admin, err = client.New(w.Config(), client.Options{Scheme: setup.NewScheme()}); err != nil {
		return err
	}

	// Of the installation, what gives the manager its rights.
	err = w.Admin.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "ichor-bootstrap-manager"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "manager-role"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: ManagerUser}},
	})
	if err != nil {
		return err
	}

	if w.kubeconfig, err = w.UserKubeconfig(ManagerUser, "system:serviceaccounts", "system:serviceaccounts:"+managerNamespace); err != nil {
		return err
	}

	w.webhooks, err = w.NewWebhookServer("ichor-bootstrap-manager")

	return err
}

func (w *World) crds(ctx context.Context) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	crds, err := harness.CAPICRDs(ctx)
	if err != nil {
		return nil, err
	}

	own, err := harness.ReadCRDs(filepath.Join(w.root, "config", "bootstrap", "crd", "bases"))

	return append(crds, own...), err
}

// Stop ends everything and removes what it has written.
func (w *World) Stop() error {
	var err error
	if w.ManagementCluster != nil {
		err = w.ManagementCluster.Stop()
	}

	return errors.Join(err, os.RemoveAll(w.dir))
}

// StartManager starts a manager that serves the world's webhooks, and waits until it is ready. Its requests are limited by the API
// server alone unless the flags say otherwise.
func (w *World) StartManager(ctx context.Context, name string, flags ...string) (*harness.Provider, error) {
	return w.StartProvider(ctx, w.ManagerOptions(name, w.webhooks, flags...))
}

// ManagerOptions are those of a manager with webhooks of its own.
func (w *World) ManagerOptions(name string, webhooks harness.WebhookServer, flags ...string) harness.ProviderOptions {
	return harness.ProviderOptions{
		Name: name, Program: w.program, Kubeconfig: w.kubeconfig, Webhooks: webhooks,
		Args: append([]string{"--insecure-diagnostics", "--kube-api-qps=-1"}, flags...),
	}
}

// InstallWebhooks has the API server ask the manager that StartManager has started.
func (w *World) InstallWebhooks(ctx context.Context) error {
	content, err := os.ReadFile(filepath.Join(w.root, "config", "bootstrap", "webhook", "manifests.yaml"))
	if err != nil {
		return err
	}

	configurations, err := harness.DecodeYAML(content)
	if err != nil {
		return fmt.Errorf("webhooks: %w", err)
	}

	if err = w.PointWebhooks(w.webhooks, configurations...); err != nil {
		return err
	}

	return w.Apply(ctx, configurations...)
}
