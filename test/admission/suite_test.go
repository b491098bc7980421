// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/bootstrap/setup"
	"github.com/maesh-dev/ichor/test/harness"
)

const (
	managerNamespace = "ichor-bootstrap-system"
	managerUser      = "system:serviceaccount:" + managerNamespace + ":ichor-bootstrap-manager"
)

var (
	root       = filepath.Join("..", "..")
	cluster    *harness.ManagementCluster
	admin      client.Client
	components []*unstructured.Unstructured
	warnings   = &warningLog{}
	logs       = &buffer{}
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}

	os.Exit(code)
}

// run installs what an installation consists of, as far as it means something without pods, and plays the parts of cert-manager, which
// makes the certificate and tells the API server whom to trust, and of the Service.
func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	logger := harness.NewLogger(logs)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)

	if components, err = kustomize(ctx); err != nil {
		return 1, err
	}

	crds, err := harness.CAPICRDs(ctx)
	if err != nil {
		return 1, err
	}

	own, installed, err := installable()
	if err != nil {
		return 1, err
	}

	cluster, err = harness.StartManagementCluster(ctx, harness.Options{CRDs: append(crds, own...)})
	if err != nil {
		return 1, err
	}

	defer func() {
		if stopErr := cluster.Stop(); err == nil {
			err = stopErr
		}
	}()

	webhooks, err := cluster.NewWebhookServer("ichor-bootstrap-manager")
	if err != nil {
		return 1, err
	}

	if err := cluster.PointWebhooks(webhooks, installed...); err != nil {
		return 1, err
	}

	if err := cluster.Apply(ctx, installed...); err != nil {
		return 1, err
	}

	stop, err := startManager(ctx, webhooks)
	if err != nil {
		return 1, err
	}

	config := cluster.Config()
	config.WarningHandlerWithContext = warnings

	if admin, err = client.New(config, client.Options{Scheme: setup.NewScheme()}); err != nil {
		return 1, err
	}

	if err = waitForWebhooks(ctx); err == nil {
		code = m.Run()
	}

	if stopErr := stop(); err == nil {
		err = stopErr
	}

	return code, err
}

// kustomize builds the installation with the pinned kustomize.
func kustomize(ctx context.Context) ([]*unstructured.Unstructured, error) {
	command := exec.CommandContext(ctx, "go", "tool", "-modfile=internal/tools/tools.mod", "kustomize", "build", "config/bootstrap/default")
	command.Dir = root

	var failure bytes.Buffer

	command.Stderr = &failure

	manifests, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("kustomize build config/bootstrap/default: %w\n%s", err, failure.String())
	}

	return harness.DecodeYAML(manifests)
}

// installable leaves out what only cert-manager knows, and takes the definitions apart, which must be served before the manager starts.
func installable() (crds []*apiextensionsv1.CustomResourceDefinition, others []*unstructured.Unstructured, err error) {
	for _, component := range components {
		switch {
		case component.GetKind() == "CustomResourceDefinition":
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(component.Object, crd); err != nil {
				return nil, nil, err
			}

			crds = append(crds, crd)
		case component.GroupVersionKind().Group != "cert-manager.io":
			others = append(others, component.DeepCopy())
		}
	}

	return crds, others, nil
}

// startManager starts a manager in this process, with the rights that the installation gives it.
func startManager(ctx context.Context, webhooks harness.WebhookServer) (func() error, error) {
	config, err := cluster.UserConfig(managerUser, "system:serviceaccounts", "system:serviceaccounts:"+managerNamespace)
	if err != nil {
		return nil, err
	}

	options := setup.NewOptions()
	options.HealthAddress = "0"
	options.WebhookPort, options.WebhookCertDir = webhooks.Port, webhooks.CertDir
	options.Diagnostics.DiagnosticsAddress = "0"
	options.Diagnostics.InsecureDiagnostics = true
	options.Diagnostics.TLSMinVersion = "VersionTLS13"

	ctx, cancel := context.WithCancel(ctx)

	mgr, err := setup.NewManager(ctx, config, options)
	if err != nil {
		cancel()

		return nil, err
	}

	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()

	return func() error {
		cancel()

		return <-ended
	}, nil
}

// waitForWebhooks tries until the webhooks answer, and the API server has seen the definitions.
func waitForWebhooks(ctx context.Context) error {
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		wrong := object("TalosConfig", "ready", "{configContract: v1.99}")
		err := admin.Create(ctx, wrong, client.DryRunAll)

		return apierrors.IsInvalid(err) && strings.Contains(err.Error(), "not known to this release"), nil
	})
}

// object makes an object of a kind of ours from its spec, in YAML.
func object(kind, name, spec string) *unstructured.Unstructured {
	content := map[string]any{}
	if err := yaml.Unmarshal([]byte(spec), &content); err != nil {
		panic(fmt.Sprintf("%s: %v", name, err))
	}

	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": bootstrapv1.GroupVersion.String(),
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
