// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/test/talossim"
)

// Invariant names what is watched.
type Invariant string

// The invariants.
const (
	// Quorum of etcd: of the members with a vote, more than half run, and they agree on who they are.
	Quorum Invariant = "quorum"

	// Disturbances: no more nodes that have been ready are not, than are allowed. See election.
	Disturbances Invariant = "disturbances"

	// Bootstrap of etcd has an effect once, and is called on one node alone.
	Bootstrap Invariant = "bootstrap"

	// Hooks: a Machine of a control plane has the hook that keeps its infrastructure, from birth.
	Hooks Invariant = "hooks"

	// Leaves: an etcd member whose Machine there is leaves when that is being deleted and has been drained, and not before.
	Leaves Invariant = "leaves"

	// Nodes of the cluster are not deleted by Ichor: Cluster API does so when the machine is gone, and could not drain it otherwise.
	Nodes Invariant = "nodes"

	// Secrets are in Secrets alone.
	Secrets Invariant = "secrets"
)

// samplePeriod is how often the machines are looked at. A reboot of a simulated machine takes longer.
const samplePeriod = 100 * time.Millisecond

// Fault is an invariant that does not hold, or has not held.
type Fault struct { //nolint:errname // A fault of the cluster, which is told as an error.
	Invariant Invariant
	Text      string
}

func (f *Fault) Error() string { return fmt.Sprintf("invariant %s: %s", f.Invariant, f.Text) }

// Options say what is watched.
type Options struct {
	// Client is an administrator's for the management cluster. Nil: there is none, and Hooks, Leaves and Secrets are not looked at.
	Client client.WithWatch

	// Namespace is that of the cluster's objects.
	Namespace string

	// Nodes are the cluster's simulated machines that there are.
	Nodes func() []*talossim.Node

	// Transcript is what happened to them, as talossim tells it.
	Transcript func() string

	// Bootstraps is how many etcd clusters they have made, those that are gone included.
	Bootstraps func() int

	// AuditLogs are the files in which the cluster's own API servers note their requests. Nil: Nodes is not looked at.
	AuditLogs func() ([]string, error)

	// Disturbances are how many nodes may be disturbed at once. Zero: one.
	Disturbances int

	// Search finds secrets. Nil: Secrets is not looked at.
	Search *Search
}

// Watch watches one cluster. Its methods may be called from several goroutines.
type Watch struct {
	options Options
	cancel  context.CancelFunc
	ended   sync.WaitGroup

	mu      sync.Mutex
	allowed int
	paused  map[Invariant]int
	faults  []*Fault
	quorum  quorum
	ready   map[*talossim.Node]time.Time
	most    int
	born    map[string]bool
	members map[uint64]string
	looked  map[*talossim.Node]bool
	left    map[string]bool
	deleted map[string]string
}

// Start begins to watch. Stop it.
func Start(ctx context.Context, options Options) *Watch {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w := &Watch{
		options: options, cancel: cancel, allowed: max(options.Disturbances, 1),
		paused: map[Invariant]int{}, ready: map[*talossim.Node]time.Time{}, born: map[string]bool{},
		members: map[uint64]string{}, looked: map[*talossim.Node]bool{}, left: map[string]bool{}, deleted: map[string]string{},
	}

	w.ended.Go(func() { w.sampleUntil(ctx) })

	if options.Client != nil {
		w.ended.Go(func() { w.followMachines(ctx) })
	}

	return w
}

// Stop ends the watch. What has been found before is still there to be asked for.
func (w *Watch) Stop() {
	w.cancel()
	w.ended.Wait()
}

// Allow sets how many nodes may be disturbed at once from now on, those that the scenario itself disturbs included.
func (w *Watch) Allow(disturbances int) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.allowed = disturbances
}

// Pause leaves an invariant alone until the function that is returned is called: a scenario that breaks it itself says so.
func (w *Watch) Pause(invariant Invariant) (resume func()) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.paused[invariant]++

	return sync.OnceFunc(func() {
		w.mu.Lock()
		defer w.mu.Unlock()

		w.paused[invariant]--
	})
}

// Check looks at everything, and returns what does not hold now or has not held since the watch began.
func (w *Watch) Check(ctx context.Context) error {
	w.sample(ctx)
	w.checkBootstrap()

	if err := w.checkNodes(); err != nil {
		return err
	}

	if err := w.checkAgreement(ctx); err != nil {
		return err
	}

	if err := w.checkSecrets(ctx); err != nil {
		return err
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	errs := make([]error, len(w.faults))
	for i, fault := range w.faults {
		errs[i] = fault
	}

	return errors.Join(errs...)
}

// fault notes what does not hold, once. The caller holds the lock.
func (w *Watch) fault(invariant Invariant, format string, args ...any) {
	fault := &Fault{Invariant: invariant, Text: fmt.Sprintf(format, args...)}
	known := slices.ContainsFunc(w.faults, func(other *Fault) bool { return *other == *fault })

	if w.paused[invariant] == 0 && !known {
		w.faults = append(w.faults, fault)
	}
}

func (w *Watch) sampleUntil(ctx context.Context) {
	ticker := time.NewTicker(samplePeriod)
	defer ticker.Stop()

	for {
		w.sample(ctx)

		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (w *Watch) sample(ctx context.Context) {
	w.sampleMembers()
	w.sampleDisturbances()
	w.sampleQuorum(ctx)
}
