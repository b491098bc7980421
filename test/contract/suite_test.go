// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/klog/v2"
	"sigs.k8s.io/cluster-api/feature"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/bootstrap/setup"
	"github.com/maesh-dev/ichor/test/harness"
	"github.com/maesh-dev/ichor/test/installation"
	"github.com/maesh-dev/ichor/test/standin"
)

// root of the repository.
var root = filepath.Join("..", "..")

// home is the management cluster of this package. It is the workload cluster of all Clusters too, so that their Machines
// become Nodes that Cluster API finds.
var (
	home       *site
	components installation.Components
	logs       = &buffer{}
)

// site is a management cluster with Cluster API, Ichor and the stand-in providers.
type site struct {
	*harness.ManagementCluster
	admin    client.Client
	requests *requests
	stops    []func() error
}

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}

	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	logger := harness.NewLogger(logs)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)

	// Tests reconcile an object more than once a second.
	if err := feature.MutableGates.Set("ReconcilerRateLimiting=false"); err != nil {
		return 1, err
	}

	if components, err = installation.Bootstrap.Read(ctx, root); err != nil {
		return 1, err
	}

	if home, err = startSite(ctx, nil); err != nil {
		return 1, err
	}

	code = m.Run()

	if err := home.stop(); err != nil {
		return 1, err
	}

	if strings.Contains(logs.String(), "is forbidden: User ") {
		return 1, errors.New("the rights in config/bootstrap/rbac do not suffice: the log speaks of something that the user is forbidden")
	}

	return code, nil
}

// startSite starts a management cluster. Machines become Nodes of the workload cluster, which is its own unless one is given.
func startSite(ctx context.Context, workload client.Client) (_ *site, err error) {
	s := &site{requests: &requests{}}

	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()

	crds := standin.CRDs()
	for _, crd := range components.CRDs {
		crds = append(crds, crd.DeepCopy())
	}

	s.ManagementCluster, err = harness.StartManagementCluster(ctx, harness.Options{
		CAPICore:         true,
		CAPIFeatureGates: map[string]bool{"ClusterTopology": true},
		CRDs:             crds,
		Manifests:        []string{components.AggregatedRole},
	})
	if err != nil {
		return s, err
	}

	s.stops = append(s.stops, s.ManagementCluster.Stop)

	if s.admin, err = client.New(s.Config(), client.Options{Scheme: setup.NewScheme()}); err != nil {
		return s, err
	}

	if err = installation.LabelCRDs(ctx, s.Client()); err != nil {
		return s, err
	}

	stop, err := components.Start(ctx, s.ManagementCluster, s.requests.wrap)
	if err != nil {
		return s, err
	}

	s.stops = append(s.stops, stop)

	if workload == nil {
		workload = s.Client()
	}

	ctx, cancel := context.WithCancel(ctx)

	wait, err := standin.Start(ctx, s.Config(), workload)
	if err != nil {
		cancel()

		return s, err
	}

	s.stops = append(s.stops, func() error { cancel(); return wait() })

	return s, nil
}

// stop ends everything, the last first.
func (s *site) stop() error {
	var errs []error

	for _, stop := range slices.Backward(s.stops) {
		errs = append(errs, stop())
	}

	s.stops = nil

	return errors.Join(errs...)
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

// requests are what a manager has written.
type requests struct {
	mu   sync.Mutex
	seen []string
}

func (r *requests) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err == nil && response.StatusCode < http.StatusBadRequest && request.Method != http.MethodGet {
			r.mu.Lock()
			defer r.mu.Unlock()

			r.seen = append(r.seen, request.Method+" "+request.URL.Path)
		}

		return response, err
	})
}

// in returns what was written in a namespace, in order, without what leads to it in the path.
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
