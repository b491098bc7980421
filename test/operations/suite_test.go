// SPDX-License-Identifier: Apache-2.0

package operations_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/maesh-dev/ichor/bootstrap/setup"
	"github.com/maesh-dev/ichor/test/harness"
	"github.com/maesh-dev/ichor/test/tools"
)

const (
	systemNamespace = "ichor-bootstrap-system"
	serviceAccount  = "ichor-bootstrap-manager"
	managerUser     = "system:serviceaccount:" + systemNamespace + ":" + serviceAccount

	// patience bounds every wait, on a machine that does other things too.
	patience = 90 * time.Second
	interval = 50 * time.Millisecond
)

var (
	root       = filepath.Join("..", "..")
	cluster    *harness.ManagementCluster
	admin      client.Client
	program    string
	components []*unstructured.Unstructured
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

	if components, err = build(ctx, "config/bootstrap/default"); err != nil {
		return 1, err
	}

	crds, err := definitions(ctx)
	if err != nil {
		return 1, err
	}

	if cluster, err = harness.StartManagementCluster(ctx, harness.Options{CRDs: crds, Audit: true}); err != nil {
		return 1, err
	}

	defer func() { err = errors.Join(err, cluster.Stop()) }()

	if admin, err = client.New(cluster.Config(), client.Options{Scheme: setup.NewScheme()}); err != nil {
		return 1, err
	}

	if err := cluster.Apply(ctx, rights(components)...); err != nil {
		return 1, err
	}

	return m.Run(), nil
}

// build runs kustomize.
func build(ctx context.Context, path string) ([]*unstructured.Unstructured, error) {
	kubectl, err := tools.Path(ctx, tools.Kubectl)
	if err != nil {
		return nil, err
	}

	manifests, err := exec.CommandContext(ctx, kubectl, "kustomize", filepath.Join(root, path)).Output()
	if err != nil {
		if failed, ok := errors.AsType[*exec.ExitError](err); ok {
			return nil, fmt.Errorf("build %s: %w\n%s", path, err, failed.Stderr)
		}

		return nil, fmt.Errorf("build %s: %w", path, err)
	}

	return harness.DecodeYAML(manifests)
}

// definitions are those of Cluster API and ours.
func definitions(ctx context.Context) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	crds, err := harness.CAPICRDs(ctx)
	if err != nil {
		return nil, err
	}

	for _, component := range components {
		if component.GetKind() != "CustomResourceDefinition" {
			continue
		}

		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(component.Object, crd); err != nil {
			return nil, err
		}

		crds = append(crds, crd)
	}

	return crds, nil
}

// rights are the components that give rights, and what they are given to.
func rights(components []*unstructured.Unstructured) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured

	for _, component := range components {
		if component.GetKind() == "Namespace" || component.GetKind() == "ServiceAccount" || strings.HasPrefix(component.GroupVersionKind().Group, "rbac.") {
			found = append(found, component)
		}
	}

	return found
}

// manager is a manager that runs.
type manager struct {
	*harness.Provider

	t *testing.T
}

// start runs the program as a user, and ends it with the test. A test that failed shows its log.
func start(t *testing.T, name, user string, args ...string) *manager {
	t.Helper()

	return startWith(t, nil, name, user, args...)
}

// startWith is start with variables of the environment.
func startWith(t *testing.T, env []string, name, user string, args ...string) *manager {
	t.Helper()

	g := NewWithT(t)

	kubeconfig, err := cluster.UserKubeconfig(user, "system:serviceaccounts", "system:serviceaccounts:"+systemNamespace)
	g.Expect(err).NotTo(HaveOccurred())

	webhooks, err := cluster.NewWebhookServer(name)
	g.Expect(err).NotTo(HaveOccurred())

	provider, err := cluster.StartProvider(t.Context(), harness.ProviderOptions{
		Name: name, Program: program, Kubeconfig: kubeconfig, Webhooks: webhooks,
		// An object is reconciled more than once a second.
		Env:  env,
		Args: append([]string{"--feature-gates=ReconcilerRateLimiting=false", "--logging-format=json"}, args...),
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
