// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/test/loopback"
	"github.com/maesh-dev/ichor/test/pods"
	"github.com/maesh-dev/ichor/test/tools"
)

// Options say what a management cluster consists of. The zero value is an API server with its etcd.
type Options struct {
	// Dir holds data, certificates and kubeconfigs. A directory that is named here must be empty or not exist, and is
	// left in place by Stop; without one, a temporary directory is used, and removed by Stop.
	Dir string

	// LogDir receives one file for each component, NAME.log. Default: logs in Dir.
	LogDir string

	// CRDs are installed before the controllers start. Prefer it to InstallCRDs: the garbage collector notices kinds that
	// come later only after up to 30 seconds, and the core manager wants to see the kinds that it is to follow.
	CRDs []*apiextensionsv1.CustomResourceDefinition

	// Manifests are YAML files that are applied after the CRDs and before the controllers start, for instance the
	// ClusterRole that lets the core manager handle a provider's kinds.
	Manifests []string

	// ControllerManager starts kube-controller-manager: garbage collection, namespaces, service accounts and their
	// tokens, aggregation of cluster roles, disruption budgets, and the workload controllers that need no node.
	ControllerManager bool

	// CAPICore starts the Cluster API core manager with its CRDs, roles and webhooks, as the ServiceAccount that a
	// release runs it as. It implies ControllerManager. Kinds outside Cluster API's own groups need a ClusterRole with
	// the label cluster.x-k8s.io/aggregate-to-manager: "true", here as in production.
	CAPICore bool

	// CAPIFeatureGates are set on the core manager, above the defaults of its release. ReconcilerRateLimiting, which
	// holds each object to one reconcile a second, is off unless it is named here.
	CAPIFeatureGates map[string]bool

	// Images has the Pods run whose images it names, by package pods, and cert-manager's part played: providers that are
	// installed with clusterctl, or by hand, run, serve their webhooks and become available. It implies ControllerManager.
	Images map[string]pods.Image

	// Audit has the API server note every request, for Requests. It costs time and space with every request.
	Audit bool

	// Progress receives the progress of building tools that are not there yet. Default: the standard error output.
	Progress io.Writer
}

// startTimeout bounds a start of everything, tools not included. It is many times what a start needs on an idle machine,
// since tests of several packages may share two cores.
const startTimeout = 3 * time.Minute

// ManagementCluster is a running management cluster. Its methods may be called from several goroutines.
type ManagementCluster struct {
	options Options
	dir     string
	logDir  string
	paths   map[string]string
	ca      *authority
	ports   loopback.Reservations

	serverURL  string
	etcdURL    string
	admin      *rest.Config
	client     client.Client
	kubeconfig string

	egress *egress
	pods   *pods.Runner

	mu        sync.Mutex
	processes []*process
	providers []*Provider
	parts     []func() error
	stopped   bool
}

// StartManagementCluster starts a management cluster and waits until all of it answers. It builds the tools that are not
// there. ctx bounds the start alone; the cluster lives until Stop, or until this process ends (on Linux, however it
// ends). If the start fails, everything that was started is stopped.
func StartManagementCluster(ctx context.Context, options Options) (*ManagementCluster, error) {
	if options.CAPICore || options.Images != nil {
		options.ControllerManager = true
	}
	if options.Progress == nil {
		options.Progress = os.Stderr
	}
	paths, err := toolPaths(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("management cluster: %w", err)
	}

	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	mc := &ManagementCluster{options: options, paths: paths}
	if err := mc.start(ctx); err != nil {
		return nil, fmt.Errorf("management cluster: %w", errors.Join(err, mc.Stop()))
	}
	return mc, nil
}

func toolPaths(ctx context.Context, options Options) (map[string]string, error) {
	names := []string{tools.Etcd, tools.KubeAPIServer}
	if options.ControllerManager {
		names = append(names, tools.KubeControllerManager)
	}
	if options.CAPICore {
		names = append(names, tools.CAPICore, tools.CAPICoreComponents)
	}
	builder, err := tools.NewBuilder(options.Progress)
	if err != nil {
		return nil, err
	}
	paths := make(map[string]string, len(names))
	for _, name := range names {
		if paths[name], err = builder.Path(ctx, name); err != nil {
			return nil, err
		}
	}
	return paths, nil
}

func (mc *ManagementCluster) start(ctx context.Context) error {
	if err := mc.prepareDirectories(); err != nil {
		return err
	}
	var err error
	if mc.ca, err = newAuthority(); err != nil {
		return err
	}
	if err := mc.startEtcd(ctx); err != nil {
		return err
	}
	if mc.options.Images != nil {
		if mc.egress, err = mc.startEgress(); err != nil {
			return err
		}
	}
	if err := mc.startAPIServer(ctx); err != nil {
		return err
	}
	if err := mc.connect(); err != nil {
		return err
	}
	return mc.furnish(ctx)
}

// furnish brings definitions, manifests and controllers into a cluster whose API server answers.
func (mc *ManagementCluster) furnish(ctx context.Context) error {
	var (
		core *capiCore
		err  error
	)
	crds := slices.Clone(mc.options.CRDs)
	if mc.options.CAPICore {
		if core, err = mc.prepareCAPICore(); err != nil {
			return err
		}
		crds = append(core.components.crds, crds...)
	}
	if err := mc.InstallCRDs(ctx, crds...); err != nil {
		return err
	}
	if core != nil {
		if err := mc.applyCAPICore(ctx, core); err != nil {
			return err
		}
	}
	if err := mc.ApplyFiles(ctx, mc.options.Manifests...); err != nil {
		return err
	}
	if mc.options.ControllerManager {
		if err := mc.startControllerManager(ctx); err != nil {
			return err
		}
	}
	if mc.options.Images != nil {
		if err := mc.startPods(ctx); err != nil {
			return err
		}
	}
	if core != nil {
		return mc.startCAPICore(ctx, core)
	}
	return nil
}

func (mc *ManagementCluster) prepareDirectories() error {
	mc.dir = mc.options.Dir
	if mc.dir == "" {
		dir, err := os.MkdirTemp("", "ichor-management-")
		if err != nil {
			return err
		}
		mc.dir = dir
	}
	dir, err := filepath.Abs(mc.dir)
	if err != nil {
		return err
	}
	mc.dir = dir
	if err := os.MkdirAll(mc.dir, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(mc.dir)
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("directory %s is not empty: name an empty one, or remove what an earlier run left", mc.dir)
	}
	mc.logDir = mc.options.LogDir
	if mc.logDir == "" {
		mc.logDir = filepath.Join(mc.dir, "logs")
	}
	return os.MkdirAll(mc.logDir, 0o755)
}

// run starts a program that belongs to the cluster and is stopped with it.
func (mc *ManagementCluster) run(ctx context.Context, p program) error {
	proc, err := start(ctx, mc.logDir, p)
	if err != nil {
		return err
	}
	mc.mu.Lock()
	defer mc.mu.Unlock()
	mc.processes = append(mc.processes, proc)
	return nil
}

// Stop ends every process of the cluster, the last started first, and removes the directory if it was a temporary one.
// It returns an error if a process had ended by itself before. A second call does nothing.
func (mc *ManagementCluster) Stop() error {
	mc.mu.Lock()
	defer mc.mu.Unlock()
	if mc.stopped {
		return nil
	}
	mc.stopped = true
	var errs []error
	for _, stop := range slices.Backward(mc.parts) {
		errs = append(errs, stop())
	}
	for _, provider := range slices.Backward(mc.providers) {
		errs = append(errs, provider.process.stop())
	}
	for _, proc := range slices.Backward(mc.processes) {
		errs = append(errs, proc.stop())
	}
	errs = append(errs, mc.ports.Release())
	if mc.options.Dir == "" && mc.dir != "" {
		errs = append(errs, os.RemoveAll(mc.dir))
	}
	return errors.Join(errs...)
}

// LogDir is the directory of the components' log files.
func (mc *ManagementCluster) LogDir() string {
	return mc.logDir
}

// PID is the process number of a component, which is named as its tool is.
func (mc *ManagementCluster) PID(name string) (int, error) {
	mc.mu.Lock()
	defer mc.mu.Unlock()
	for _, proc := range mc.processes {
		if proc.name == name {
			return proc.PID(), nil
		}
	}
	return 0, fmt.Errorf("the management cluster has no component %s", name)
}

// logTails returns the last lines of each component's log.
func (mc *ManagementCluster) logTails(lines int) map[string]string {
	mc.mu.Lock()
	defer mc.mu.Unlock()
	tails := make(map[string]string, len(mc.processes))
	for _, proc := range mc.processes {
		tails[proc.name] = proc.tail(lines)
	}
	return tails
}
