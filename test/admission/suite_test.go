// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/test/harness"
	"github.com/maesh-dev/ichor/test/installation"
	"github.com/maesh-dev/ichor/test/stage"
)

// provider is one of Ichor's, with everything that its installation consists of.
type provider struct {
	installation.Provider

	// label is clusterctl's name of the provider, and group that of its kinds.
	label, group string

	components []*unstructured.Unstructured
}

var (
	root      = filepath.Join("..", "..")
	cluster   *harness.ManagementCluster
	admin     client.Client
	bootstrap = &provider{Provider: installation.Bootstrap, label: "bootstrap-ichor", group: bootstrapv1.GroupVersion.Group}
	control   = &provider{Provider: installation.ControlPlane, label: "control-plane-ichor", group: controlplanev1.GroupVersion.Group}
	providers = []*provider{bootstrap, control}
	warnings  = &warningLog{}
	logs      = &buffer{}
)

// forEach runs a test for each provider.
func forEach(t *testing.T, test func(*testing.T, *provider)) {
	for _, each := range providers {
		t.Run(each.label, func(t *testing.T) { test(t, each) })
	}
}

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}

	os.Exit(code)
}

// run installs what the installations consist of, as far as it means something without pods, and starts the managers in this process,
// with the rights that their installations give them.
func run(m *testing.M) (code int, err error) {
	ctx := context.Background()

	logger := harness.NewLogger(logs)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)

	crds, err := harness.CAPICRDs(ctx)
	if err != nil {
		return 1, err
	}

	installed := make([]installation.Components, len(providers))

	for i, each := range providers {
		if each.components, err = installation.Build(ctx, root, each.Directory+"/default"); err != nil {
			return 1, err
		}

		if installed[i], err = each.Read(ctx, root); err != nil {
			return 1, err
		}

		crds = append(crds, installed[i].CRDs...)
	}

	if cluster, err = harness.StartManagementCluster(ctx, harness.Options{CRDs: crds}); err != nil {
		return 1, err
	}

	defer func() { err = errors.Join(err, cluster.Stop()) }()

	for _, each := range installed {
		stop, err := each.Start(ctx, cluster, nil)
		if err != nil {
			return 1, err
		}

		defer func() {
			if failed := stop(); failed != nil {
				fmt.Fprintln(os.Stderr, failed)

				code = 1
			}
		}()
	}

	config := cluster.Config()
	config.WarningHandlerWithContext = warnings

	if admin, err = client.New(config, client.Options{Scheme: stage.NewScheme()}); err != nil {
		return 1, err
	}

	if err = waitForWebhooks(ctx); err != nil {
		return 1, err
	}

	return m.Run(), nil
}

// waitForWebhooks tries until the webhooks answer, and the API server has seen the definitions.
func waitForWebhooks(ctx context.Context) error {
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		for _, wrong := range []*unstructured.Unstructured{
			object("TalosConfig", "ready", "{configContract: v1.99}"),
			object("TalosControlPlaneTemplate", "ready", "{template: {spec: {talosConfigSpec: {configContract: v1.99}}}}"),
		} {
			err := admin.Create(ctx, wrong, client.DryRunAll)
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "not known to this release") {
				return false, nil
			}
		}

		return true, nil
	})
}

// object makes an object of a kind of ours from its spec, in YAML.
func object(kind, name, spec string) *unstructured.Unstructured {
	content := map[string]any{}
	if err := yaml.Unmarshal([]byte(spec), &content); err != nil {
		panic(fmt.Sprintf("%s: %v", name, err))
	}

	version := bootstrapv1.GroupVersion
	if strings.HasPrefix(kind, "TalosControlPlane") {
		version = controlplanev1.GroupVersion
	}

	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": version.String(),
		"kind":       kind,
		"metadata":   map[string]any{"name": name, "namespace": "default"},
		"spec":       content,
	}}
}

// create makes an object that goes with the test.
func create(t *testing.T, made client.Object) {
	t.Helper()

	g := NewWithT(t)
	g.Expect(admin.Create(t.Context(), made)).To(Succeed())
	t.Cleanup(func() {
		g.Expect(client.IgnoreNotFound(admin.Delete(context.WithoutCancel(t.Context()), made))).To(Succeed())
	})
}

// warningLog keeps what the API server warns of.
type warningLog struct {
	mu   sync.Mutex
	seen []string
}

func (w *warningLog) HandleWarningHeaderWithContext(_ context.Context, code int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if code == 299 {
		w.seen = append(w.seen, text)
	}
}

func (w *warningLog) all() string {
	w.mu.Lock()
	defer w.mu.Unlock()

	return strings.Join(w.seen, "\n")
}

// buffer is what was logged.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.text.String()
}
