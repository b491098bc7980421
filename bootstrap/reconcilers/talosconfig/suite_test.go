// SPDX-License-Identifier: Apache-2.0

package talosconfig_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	componentlogs "k8s.io/component-base/logs"
	"k8s.io/klog/v2"
	"sigs.k8s.io/cluster-api/feature"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/bootstrap/setup"
	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/test/harness"
)

// The manager under test runs as this user, with the rights of config/bootstrap/rbac and no more.
const managerUser = "system:serviceaccount:ichor-bootstrap-system:ichor-bootstrap-manager"

// settle is how long the manager gathers changes before it reports on patches: a tenth of what it does in production.
const settle = 500 * time.Millisecond

// The management cluster of this package: a real API server with the real Cluster API core manager, and the manager of the
// bootstrap provider in this process.
var (
	cluster *harness.ManagementCluster
	admin   client.Client
	logs    = &buffer{}
	traffic = &requests{}
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%v\n", err)
		code = 1
	}

	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	// Tests wait for the API server and the managers most of the time.
	if err := harness.Parallel(4); err != nil {
		return 1, err
	}

	logger := harness.NewLogger(logs)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)

	// The Kubernetes client asks this one whether to log its requests.
	if _, err := componentlogs.GlogSetter("7"); err != nil {
		return 1, err
	}

	// Tests reconcile an object more than once a second.
	if err := feature.MutableGates.Set("ReconcilerRateLimiting=false"); err != nil {
		return 1, err
	}

	root := filepath.Join("..", "..", "..")

	crds, err := harness.ReadCRDs(filepath.Join(root, "config", "bootstrap", "crd", "bases"))
	if err != nil {
		return 1, err
	}

	rbac := filepath.Join(root, "config", "bootstrap", "rbac")

	cluster, err = harness.StartManagementCluster(ctx, harness.Options{
		CAPICore:  true,
		CRDs:      append(crds, harness.InfrastructureCRDs()...),
		Manifests: []string{filepath.Join(rbac, "aggregated_role.yaml"), filepath.Join(rbac, "role.yaml")},
	})
	if err != nil {
		return 1, err
	}

	defer func() {
		if stopErr := cluster.Stop(); err == nil {
			err = stopErr
		}
	}()

	if admin, err = client.New(cluster.Config(), client.Options{Scheme: setup.NewScheme()}); err != nil {
		return 1, err
	}

	if err := bindManager(ctx); err != nil {
		return 1, err
	}

	stop, err := startManager(ctx, traffic)
	if err != nil {
		return 1, err
	}

	defer func() {
		if stopErr := stop(); err == nil {
			err = stopErr
		}
	}()

	code = m.Run()

	if strings.Contains(logs.String(), "is forbidden: User ") {
		return 1, errors.New("the rights in config/bootstrap/rbac do not suffice: the log speaks of something that the user is forbidden")
	}

	return code, nil
}

func bindManager(ctx context.Context) error {
	return admin.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "manager"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "manager-role"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: managerUser}},
	})
}

// startManager starts a manager in this process and waits until it works. The function that it returns stops it.
func startManager(ctx context.Context, counter *requests) (func() error, error) {
	config, err := cluster.UserConfig(managerUser)
	if err != nil {
		return nil, err
	}

	config.Wrap(counter.wrap)

	webhooks, err := cluster.NewWebhookServer("ichor-bootstrap-manager")
	if err != nil {
		return nil, err
	}

	options := setup.NewOptions()
	options.KubeAPIQPS = -1
	options.Settle = settle
	// An RSA key takes the race detector ten seconds. TestTakenOverBundle has one.
	options.Bundle = []secrets.Option{secrets.WithECDSAServiceAccountKey()}
	options.HealthAddress = "0"
	options.WebhookPort, options.WebhookCertDir = webhooks.Port, webhooks.CertDir
	options.Diagnostics.DiagnosticsAddress = "0"
	options.Diagnostics.InsecureDiagnostics = true
	options.Diagnostics.TLSMinVersion = "VersionTLS12"

	ctx, cancel := context.WithCancel(ctx)

	mgr, err := setup.NewManager(ctx, config, options, func(o *ctrl.Options) {
		// Several managers in one process have controllers of one name.
		o.Controller.SkipNameValidation = new(true)
	})
	if err != nil {
		cancel()

		return nil, err
	}

	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()

	synced, stopSync := context.WithTimeout(ctx, time.Minute)
	defer stopSync()

	if !mgr.GetCache().WaitForCacheSync(synced) {
		cancel()

		return nil, fmt.Errorf("the manager's cache does not fill: %w", <-ended)
	}

	return func() error {
		cancel()

		return <-ended
	}, nil
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

func (b *buffer) String() string { return b.since(0) }

// since is what was logged after the first so many bytes.
func (b *buffer) since(size int) string {
	b.mu.Lock()
	defer b.mu.Unlock()

	return string(b.text.Bytes()[size:])
}

func (b *buffer) size() int {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.text.Len()
}

// requests are those of one manager: what it wrote, and what it read live.
type requests struct {
	mu    sync.Mutex
	seen  []string
	tried []string
	hooks map[string]func()

	// instead stand between the manager and the API server for the requests in a namespace.
	instead map[string]answer
}

// answer makes of the API server one that answers otherwise.
type answer func(server http.RoundTripper) http.RoundTripper

// intercept has the requests in a namespace answered otherwise from now on.
func (r *requests) intercept(namespace string, by answer) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if r.instead == nil {
		r.instead = map[string]answer{}
	}

	r.instead[namespace] = by
}

// server is who answers a request.
func (r *requests) server(request *http.Request, server http.RoundTripper) http.RoundTripper {
	_, rest, _ := strings.Cut(request.URL.Path, "/namespaces/")
	namespace, _, _ := strings.Cut(rest, "/")

	r.mu.Lock()
	defer r.mu.Unlock()

	if by, ok := r.instead[namespace]; ok {
		return by(server)
	}

	return server
}

// before has something done once, right before the next request, as "POST /api/v1/namespaces/NAMESPACE/secrets", is sent.
func (r *requests) before(request string, do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if r.hooks == nil {
		r.hooks = map[string]func(){}
	}

	r.hooks[request] = do
}

// due returns what is to be done before the request.
func (r *requests) due(request string) func() {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.tried = append(r.tried, request)

	do := r.hooks[request]
	delete(r.hooks, request)

	return do
}

// count counts the requests that were sent, refused ones included.
func (r *requests) count(request string) int {
	r.mu.Lock()
	defer r.mu.Unlock()

	count := 0

	for _, each := range r.tried {
		if each == request {
			count++
		}
	}

	return count
}

func (r *requests) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if do := r.due(request.Method + " " + request.URL.Path); do != nil {
			do()
		}

		response, err := r.server(request, next).RoundTrip(request)
		if err == nil {
			lagging(request, response)
		}

		// What the API server refused changed nothing: a patch of a version that the cache had not seen, a create that another won.
		if err == nil && response.StatusCode < http.StatusBadRequest {
			r.note(request)
		}

		return response, err
	})
}

// note leaves out what does not count: lists and watches of caches, discovery, events.
func (r *requests) note(request *http.Request) {
	path := request.URL.Path

	// A dry run writes nothing.
	if request.URL.Query().Has("dryRun") || strings.Contains(path, "/events") || !strings.Contains(path, "/namespaces/") {
		return
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	r.seen = append(r.seen, request.Method+" "+path)
}

// in returns the requests in a namespace, in order, without what leads to it in the path.
func (r *requests) in(namespace string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()

	var found []string

	for _, each := range r.seen {
		if _, path, ok := strings.Cut(each, "/namespaces/"+namespace+"/"); ok {
			method, _, _ := strings.Cut(each, " ")
			found = append(found, method+" "+path)
		}
	}

	return found
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
