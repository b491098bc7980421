// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/test/harness"
	"github.com/maesh-dev/ichor/test/installation"
	"github.com/maesh-dev/ichor/test/scale"
)

const (
	// The Secret, the status, and the Paused condition, which Cluster API's own function writes.
	maxWritesPerMachine = 3

	// Writes that are the cluster's and not a machine's: its other Secrets, and the status of its settings and patches.
	maxClusterWrites = 50

	// Events that are the cluster's.
	maxClusterEvents = 5

	// What a manager may take in comparison with the same writes and renders in a bare loop.
	maxLoopTime = 1.5

	// quiet is how long a manager that has made every Secret must have written nothing to be done. It is no part of what is measured.
	quiet = 3 * time.Second

	// steadyPasses is how often each TalosConfig is reconciled while nothing changes.
	steadyPasses = 3

	// roundTimeout bounds a round on a busy machine.
	roundTimeout = 10 * time.Minute
)

// round is one fleet, made ready by a manager or by a bare loop.
type round struct {
	took   time.Duration
	writes tally
}

// measureMachines has managers and bare loops make fleets ready, in a world whose API server notes its requests.
func measureMachines(ctx context.Context, world *scale.World, s sizes) ([]result, error) {
	b := &machinesBench{world: world, machines: s.machines}

	// The first round is not counted: it warms the API server, and shows the bare loop what to write.
	if _, err := b.manager(ctx, "warm-up"); err != nil {
		return nil, err
	}

	steady, err := b.steady(ctx, "warm-up", s.steadyPeriod)
	if err != nil {
		return nil, err
	}

	if b.loop, err = newBareLoop(ctx, world, "warm-up"); err != nil {
		return nil, err
	}

	if err = b.rounds(ctx, s.machineRounds); err != nil {
		return nil, err
	}

	return append(b.results(), steady...), nil
}

// machinesBench has what the rounds have measured.
type machinesBench struct {
	world           *scale.World
	machines        int
	loop            *bareLoop
	managers, loops []time.Duration
	machine         []string // the writes of any round for the machine for which there were the most
	cluster         int      // the most writes of any round that are no machine's
	events          int
}

// rounds measures the two in turns, each as often first as second.
func (b *machinesBench) rounds(ctx context.Context, n int) error {
	for i := range n {
		manager := func() error {
			measured, err := b.manager(ctx, fmt.Sprintf("manager-%d", i))
			b.managers = append(b.managers, measured.took)
			b.note(measured)

			return err
		}
		bare := func() error {
			took, err := b.bare(ctx, fmt.Sprintf("bare-%d", i))
			b.loops = append(b.loops, took)

			return err
		}

		first, second := manager, bare
		if i%2 == 1 {
			first, second = bare, manager
		}

		if err := errors.Join(first(), second()); err != nil {
			return fmt.Errorf("round %d: %w", i, err)
		}

		progress("round %d: manager %v, bare loop %v", i+1, b.managers[i].Round(time.Millisecond), b.loops[i].Round(time.Millisecond))
	}

	return nil
}

// note keeps the worst of all rounds.
func (b *machinesBench) note(measured round) {
	if most := measured.writes.mostOfMachine(); len(most) > len(b.machine) {
		b.machine = most
	}

	b.cluster, b.events = max(b.cluster, measured.writes.others), max(b.events, measured.writes.events)
}

func (b *machinesBench) results() []result {
	manager, bare := median(b.managers), median(b.loops)
	prefix := fmt.Sprintf("%d Machines: ", b.machines)

	return []result{
		limited(prefix+"writes for a Machine, the most", float64(len(b.machine)), units, maxWritesPerMachine, strings.Join(b.machine, ", ")),
		limited(prefix+"writes for the cluster", float64(b.cluster), units, maxClusterWrites, "its other Secrets, status of settings and patches"),
		limited(prefix+"events", float64(b.events), units, maxClusterEvents, "none for a Machine; not among the writes"),
		limited(prefix+"time", float64(manager)/float64(bare), times, maxLoopTime,
			fmt.Sprintf("%v, bare loop %v, medians of %d rounds", manager.Round(time.Millisecond), bare.Round(time.Millisecond), len(b.managers))),
	}
}

// manager makes a fleet and has a new manager make it ready. The time is that from the manager's first write to its last.
func (b *machinesBench) manager(ctx context.Context, namespace string) (measured round, err error) {
	ctx, cancel := context.WithTimeout(ctx, roundTimeout)
	defer cancel()

	if err = b.fleet(ctx, namespace); err != nil {
		return round{}, err
	}

	requests, err := b.world.FollowRequests(installation.Bootstrap.User())
	if err != nil {
		return round{}, err
	}

	defer func() { err = errors.Join(err, requests.Close()) }()

	process, err := b.world.StartManager(ctx, namespace, "--namespace="+namespace)
	if err != nil {
		return round{}, err
	}

	measured = round{writes: newTally(namespace)}
	if err = measured.watch(ctx, requests, b.machines); err != nil {
		return measured, fmt.Errorf("%s: %w", namespace, err)
	}

	return measured, errors.Join(process.Stop(), b.checkReady(ctx, namespace))
}

// fleet makes one of which no manager knows yet.
func (b *machinesBench) fleet(ctx context.Context, namespace string) error {
	fleet, err := b.world.NewFleet(ctx, namespace)
	if err != nil {
		return err
	}

	return b.world.AddMachines(ctx, fleet, b.machines)
}

// watch reads the requests until every machine has its Secret and nothing has been written for a while.
func (r *round) watch(ctx context.Context, requests *harness.RequestReader, machines int) error {
	var first, last time.Time

	for since := time.Now(); r.writes.secrets < machines || time.Since(since) < quiet; {
		next, err := requests.Next()
		if err != nil {
			return err
		}

		for _, request := range next {
			if !r.writes.add(request) {
				continue
			}

			since = time.Now()

			if first.IsZero() || request.Received.Before(first) {
				first = request.Received
			}

			if request.Answered.After(last) {
				last = request.Answered
			}
		}

		if err = scale.Pause(ctx, 200*time.Millisecond); err != nil {
			return fmt.Errorf("%d of %d data Secrets are there: %w", r.writes.secrets, machines, err)
		}
	}

	r.took = last.Sub(first)

	return nil
}

// checkReady says so when a TalosConfig is not ready after all.
func (b *machinesBench) checkReady(ctx context.Context, namespace string) error {
	configs := &bootstrapv1.TalosConfigList{}
	if err := b.world.Admin.List(ctx, configs, client.InNamespace(namespace)); err != nil {
		return err
	}

	if len(configs.Items) != b.machines {
		return fmt.Errorf("%d TalosConfigs in namespace %s, want %d", len(configs.Items), namespace, b.machines)
	}

	for i := range configs.Items {
		if config := &configs.Items[i]; !conditions.IsTrue(config, bootstrapv1.TalosConfigReadyCondition) {
			return fmt.Errorf("TalosConfig %s/%s is not ready: %v", namespace, config.Name, config.Status.Conditions)
		}
	}

	return nil
}

// bare has the bare loop make a fleet ready.
func (b *machinesBench) bare(ctx context.Context, namespace string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, roundTimeout)
	defer cancel()

	if err := b.fleet(ctx, namespace); err != nil {
		return 0, err
	}

	return b.loop.run(ctx, namespace)
}

// steady reconciles a fleet that is ready, by a manager that has just started: it knows nothing but what it caches.
func (b *machinesBench) steady(ctx context.Context, namespace string, period time.Duration) (results []result, err error) {
	ctx, cancel := context.WithTimeout(ctx, roundTimeout)
	defer cancel()

	requests, err := b.world.FollowRequests(installation.Bootstrap.User())
	if err != nil {
		return nil, err
	}

	defer func() { err = errors.Join(err, requests.Close()) }()

	process, err := b.world.StartManager(ctx, "steady", "--namespace="+namespace, "--sync-period="+period.String())
	if err != nil {
		return nil, err
	}

	total := newTally(namespace)
	count := func() error {
		seen, err := requests.Next()

		for _, request := range seen {
			total.add(request)
		}

		return err
	}

	// The first pass may read live what a new manager has not seen yet, but write nothing.
	if _, err = reconciled(ctx, b.world, process, b.machines); err != nil {
		return nil, err
	}

	if err = count(); err != nil {
		return nil, err
	}

	first := total.live
	total.live = nil

	reconciles, err := reconciled(ctx, b.world, process, (1+steadyPasses)*b.machines)
	if err != nil {
		return nil, err
	}

	if err = errors.Join(process.Stop(), count()); err != nil {
		return nil, err
	}

	progress("steady state: %d reconciles, live reads %v, and before, at the start, %v", reconciles, total.live, first)

	note := fmt.Sprintf("%d reconciles", reconciles)

	return []result{
		limited("steady state: writes", float64(total.writes()), units, 0, note),
		limited("steady state: live reads", float64(len(total.live)), units, 0, note),
	}, nil
}

// reconciled waits for so many reconciles of TalosConfigs, and returns how many there were.
func reconciled(ctx context.Context, world *scale.World, process *harness.Provider, want int) (int, error) {
	for {
		ended, err := world.Reconciles(ctx, process)
		reconciles := ended["talosconfig"]

		if err != nil || reconciles >= want {
			return reconciles, err
		}

		if err = scale.Pause(ctx, time.Second); err != nil {
			return reconciles, fmt.Errorf("%d of %d reconciles: %w", reconciles, want, err)
		}
	}
}
