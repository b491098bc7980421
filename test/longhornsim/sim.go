// SPDX-License-Identifier: Apache-2.0

package longhornsim

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lh "github.com/maesh-dev/ichor/test/longhornsim/api/v1beta2"
	"github.com/maesh-dev/ichor/test/longhornsim/model"
)

// Defaults of Options.
const (
	DefaultNamespace = "longhorn-system"

	defaultDiskSize    = 100 << 30
	defaultRebuildRate = 100 << 20
	defaultDelta       = 10
)

// Options say what is simulated. Config alone is needed.
type Options struct {
	// Config is an administrator's access to the cluster.
	Config *rest.Config

	// Namespace that Longhorn is installed in. Default: longhorn-system.
	Namespace string

	// NodeLabels are what the Kubernetes Nodes have that Longhorn runs on. Default: it runs on all.
	NodeLabels map[string]string

	// Clock is the time. Default: real time. With a clock of k8s.io/utils/clock/testing it passes by Advance.
	Clock clock.PassiveClock

	// Pace is how fast things go. Default: 100 MiB in a second, a tenth of it for a copy that is used again, attached at once.
	Pace model.Pace

	// DiskSize is how large the disks of a node are that nobody has said anything about. Default: 100 GiB.
	DiskSize int64

	// Mounted says what is at a path of a node, and how large it is. Default: a disk of DiskSize, wherever one looks.
	Mounted func(node, path string) (size int64, there bool)

	// Manual leaves out the watches: the Sim looks when Settle or Advance is called, and at no other time.
	Manual bool

	// Workloads has the Sim play, for the pods on its nodes, the kubelet (they run, and end when they are deleted) and the
	// attach-detach controller. Leave it out where something else does.
	Workloads bool
}

// Sim is a Longhorn that runs. Its methods may be called from several goroutines.
type Sim struct {
	options Options
	// client reads and writes as Longhorn does, without a cache; user is whoever has started the Sim.
	client client.Client
	user   client.Client

	// sizes of disks, by node and path. States that were handed out read them too.
	sizes sync.Map

	mu         sync.Mutex
	reality    *model.Reality
	violations []string
	wake       time.Time

	hook *webhook
	loop *loop
}

// NewScheme returns a scheme with Kubernetes' kinds and Longhorn's.
func NewScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	utilruntime.Must(lh.AddToScheme(scheme))

	return scheme
}

// scheme is the Sim's own, which nobody adds to. To make one takes longer than most of a start.
var scheme = sync.OnceValue(NewScheme)

// Start installs Longhorn into a cluster and plays it until Stop. ctx bounds the start alone.
func Start(ctx context.Context, options Options) (*Sim, error) {
	s, err := newSim(options)
	if err != nil {
		return nil, err
	}

	if err := s.install(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("install Longhorn: %w", err), s.Stop())
	}

	if err := s.Settle(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}

	if !s.options.Manual {
		if s.loop, err = s.startLoop(ctx); err != nil {
			return nil, errors.Join(err, s.Stop())
		}
	}

	return s, nil
}

func newSim(options Options) (*Sim, error) {
	if options.Config == nil {
		return nil, errors.New("longhornsim: Options.Config is missing: give an administrator's access to the cluster")
	}

	if options.Namespace == "" {
		options.Namespace = DefaultNamespace
	}

	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}

	if options.DiskSize == 0 {
		options.DiskSize = defaultDiskSize
	}

	if options.Pace.RebuildBytes == 0 {
		options.Pace.RebuildBytes = defaultRebuildRate
	}

	if options.Pace.DeltaPercent == 0 {
		options.Pace.DeltaPercent = defaultDelta
	}

	s := &Sim{options: options}
	s.reality = model.NewReality(options.Pace, s.mounted)

	var err error
	if s.user, err = client.New(options.Config, client.Options{Scheme: scheme()}); err != nil {
		return nil, err
	}

	// Longhorn's own writes are known by their user: the webhook lets them pass, and an audit can tell them from others.
	config := rest.CopyConfig(options.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: s.userName(), Groups: []string{"system:masters"}}
	config.QPS = -1

	s.client, err = client.New(config, client.Options{Scheme: scheme(), Mapper: mapper()})

	return s, err
}

// mapper knows the kinds that the Sim itself reads and writes, so that it need not ask the API server.
func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)

	for _, kind := range []string{
		"BackingImage", "Engine", "EngineImage", "InstanceManager", "Node", "Replica", "Setting", "Shard", "ShardGroup", "ShareManager",
		"Volume", "VolumeAttachment",
	} {
		m.Add(lh.GroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}

	m.Add(corev1.SchemeGroupVersion.WithKind("ServiceAccount"), meta.RESTScopeNamespace)

	for _, kind := range []string{"Namespace", "Node", "PersistentVolume"} {
		m.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeRoot)
	}

	m.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	m.Add(policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), meta.RESTScopeNamespace)
	m.Add(storagev1.SchemeGroupVersion.WithKind("VolumeAttachment"), meta.RESTScopeRoot)
	m.Add(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"), meta.RESTScopeRoot)
	m.Add(admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"), meta.RESTScopeRoot)

	return m
}

func (s *Sim) userName() string {
	return "system:serviceaccount:" + s.options.Namespace + ":" + model.ServiceAccount
}

func (s *Sim) mounted(node, at string) (int64, bool) {
	if said, there := s.sizes.Load(node + ":" + path.Clean(at)); there {
		size, _ := said.(int64) // nothing else is stored

		return size, size > 0
	}

	if s.options.Mounted != nil {
		return s.options.Mounted(node, at)
	}

	return s.options.DiskSize, true
}

// Stop ends the simulation and removes the webhook; Longhorn's objects stay.
func (s *Sim) Stop() error {
	var errs []error

	if s.loop != nil {
		errs = append(errs, s.loop.stop())
	}

	if s.hook != nil {
		errs = append(errs, s.hook.stop(s.client))
	}

	return errors.Join(errs...)
}

// Settle does everything that is to be done now.
func (s *Sim) Settle(ctx context.Context) error {
	return s.change(ctx, func(*model.State) error { return nil })
}

// Advance lets time pass on a fake clock, and does what is to be done on the way, each at its time.
func (s *Sim) Advance(ctx context.Context, d time.Duration) error {
	fake, ok := s.options.Clock.(interface{ SetTime(t time.Time) })
	if !ok {
		return errors.New("longhornsim: Advance wants Options.Clock to be a fake clock")
	}

	if err := s.Settle(ctx); err != nil {
		return err
	}

	for until := s.options.Clock.Now().Add(d); ; {
		s.mu.Lock()
		next := s.wake
		s.mu.Unlock()

		if next.IsZero() || next.After(until) {
			fake.SetTime(until)

			return s.Settle(ctx)
		}

		fake.SetTime(next)

		if err := s.Settle(ctx); err != nil {
			return err
		}
	}
}

// change lets a function change the state, and then does what follows from it. It begins anew when somebody else writes.
func (s *Sim) change(ctx context.Context, change func(*model.State) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	var (
		state *model.State
		again bool
	)

	// What the Sim does for Kubernetes, such as to end a pod, may have consequences for Longhorn.
	for range maxRounds {
		var err error
		for range maxAttempts {
			if state, again, err = s.round(ctx, change); err == nil || !mayTryAgain(err) {
				break
			}
		}

		if err != nil {
			return err
		}

		if !again {
			break
		}

		change = func(*model.State) error { return nil }
	}

	s.wake = state.Wake
	s.watch(state)

	return nil
}

// maxRounds bounds what Longhorn and Kubernetes have to say to each other at one moment.
const maxRounds = 20

// maxAttempts bounds how often the Sim begins anew because somebody else has written.
const maxAttempts = 10

// round reads, decides and writes once. It says whether something was done that may want another one.
func (s *Sim) round(ctx context.Context, change func(*model.State) error) (*model.State, bool, error) {
	read, err := s.read(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("read Longhorn's objects: %w", err)
	}

	state := s.state(read)
	before := state.Clone()
	cluster := s.wanted(read, state)

	if err := change(state); err != nil {
		return nil, false, err
	}

	if !state.Settle() {
		return nil, false, errors.New("longhornsim: the model comes to no end: two of its rules undo each other")
	}

	// What is written comes back as the server has it, with a status of before.
	settled := state.Clone()
	if err := s.save(ctx, before, state); err != nil {
		return nil, false, fmt.Errorf("write Longhorn's objects: %w", err)
	}

	again, err := s.writeKubernetes(ctx, settled, cluster)

	return settled, again, err
}

func mayTryAgain(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}

// watch notes what no test wants to see.
func (s *Sim) watch(state *model.State) {
	at := state.Now.UTC().Format(time.TimeOnly)

	for _, fault := range state.Inconsistent() {
		s.violations = append(s.violations, at+" inconsistent: "+fault)
	}

	for _, volume := range state.Unusable() {
		s.violations = append(s.violations, at+" volume "+volume+" has no healthy copy that can be read")
	}
}

// Violations returns what was wrong whenever the Sim had looked: a volume without a healthy copy that could be read, or objects
// that contradict each other.
func (s *Sim) Violations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()

	return append([]string(nil), s.violations...)
}

// State returns what Longhorn's objects say now, to read.
func (s *Sim) State(ctx context.Context) (*model.State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	read, err := s.read(ctx)
	if err != nil {
		return nil, err
	}

	return s.state(read).Clone(), nil
}

// Client returns the access of whoever has started the Sim, for Longhorn's kinds too; the webhook judges what it writes.
func (s *Sim) Client() client.Client { return s.user }

// Namespace is where Longhorn is installed.
func (s *Sim) Namespace() string { return s.options.Namespace }

// Budget returns the disruption budget of a node's instance manager, or nil.
func (s *Sim) Budget(ctx context.Context, node string, engine lh.DataEngine) (*policyv1.PodDisruptionBudget, error) {
	budget := &policyv1.PodDisruptionBudget{}

	err := s.user.Get(ctx, client.ObjectKey{Namespace: s.options.Namespace, Name: model.InstanceManagerName(node, engine)}, budget)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none
	}

	return budget, err
}
