// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/test/harness"
	"github.com/maesh-dev/ichor/test/scale"
)

const (
	maxResident = 150 // MB, whatever the number of TalosConfigs up to 10,000
	megabyte    = 1e6

	// restFactor is how many times as long as others a manager that has worked much gets to come to rest: it gives back some 20 seconds later.
	restFactor = 3

	memoryTimeout = 40 * time.Minute
)

// measureMemory has a manager render many TalosConfigs, and another begin with all of them in its caches. Each is looked at by the kernel,
// as a process of its own. The Machines have the status that Cluster API's core manager gives them.
func measureMemory(ctx context.Context, world *scale.World, s sizes) ([]result, error) {
	ctx, cancel := context.WithTimeout(ctx, memoryTimeout)
	defer cancel()

	fleet, err := world.NewFleet(ctx, "memory")
	if err != nil {
		return nil, err
	}

	empty, err := restartedMemory(ctx, s, world, "empty")
	if err != nil {
		return nil, err
	}

	if err = world.AddMachines(ctx, fleet, s.configs); err != nil {
		return nil, err
	}

	if err = world.RunMachines(ctx, fleet, s.configs); err != nil {
		return nil, err
	}

	progress("%d Machines with their TalosConfigs are there", s.configs)

	rendering, rendered, err := renderedMemory(ctx, s, world, fleet)
	if err != nil {
		return nil, err
	}

	restarted, err := restartedMemory(ctx, s, world, "restarted")
	if err != nil {
		return nil, err
	}

	prefix := fmt.Sprintf("%d TalosConfigs: ", s.configs)
	each := func(m scale.Memory) string {
		return fmt.Sprintf("of which %.0f MB program; %.0f bytes for each above an empty manager",
			float64(m.Program)/megabyte, (float64(m.Resident)-float64(empty.Resident))/float64(s.configs))
	}

	return []result{
		told("no TalosConfig: resident", float64(empty.Resident)/megabyte, mega,
			fmt.Sprintf("of which pages of the program's file %.0f MB", float64(empty.Program)/megabyte)),
		limited(prefix+"resident after rendering", float64(rendered.Resident)/megabyte, mega, maxResident, each(rendered)),
		limited(prefix+"resident after a restart", float64(restarted.Resident)/megabyte, mega, maxResident, each(restarted)),
		told(prefix+"peak while rendering", float64(rendering.Peak)/megabyte, mega, ""),
		told(prefix+"peak of a restart", float64(restarted.Peak)/megabyte, mega, ""),
	}, nil
}

// restartedMemory is that of a manager that has started and rested.
func restartedMemory(ctx context.Context, s sizes, world *scale.World, name string) (scale.Memory, error) {
	process, err := world.StartManager(ctx, name)
	if err != nil {
		return scale.Memory{}, err
	}

	// Every TalosConfig is reconciled once at the start.
	if err = untilQuiet(ctx, world, process, s.settling); err != nil {
		return scale.Memory{}, err
	}

	memory, err := settledMemory(ctx, s, world, process, name)

	return memory, errors.Join(err, process.Stop())
}

// settledMemory is that of a manager at rest, which nobody asks for anything: to make a profile, it would read much of its program's file. A
// profile tells afterwards what it is.
func settledMemory(ctx context.Context, s sizes, world *scale.World, process *harness.Provider, name string) (scale.Memory, error) {
	memory, err := scale.Settled(ctx, process.PID(), restFactor*s.settling, func() error { return nil })
	if err != nil || s.profiles == "" {
		return memory, err
	}

	profile, err := world.HeapProfile(ctx, process)
	if err != nil {
		return memory, err
	}

	return memory, os.WriteFile(filepath.Join(s.profiles, name+".heap"), profile, 0o600)
}

// untilQuiet waits until the manager has reconciled nothing for a period, which must be longer than it gathers changes before it reports on
// patches.
func untilQuiet(ctx context.Context, world *scale.World, process *harness.Provider, period time.Duration) error {
	var before map[string]int

	for {
		now, err := world.Reconciles(ctx, process)
		if err != nil || before != nil && maps.Equal(now, before) {
			return err
		}

		before = now

		if err = scale.Pause(ctx, max(period, time.Second)); err != nil {
			return err
		}
	}
}

// renderedMemory is that of a manager when it has rendered everything, and when it has rested after that.
func renderedMemory(ctx context.Context, s sizes, world *scale.World, fleet *scale.Fleet) (rendering, rendered scale.Memory, err error) {
	process, err := world.StartManager(ctx, "rendering")
	if err != nil {
		return rendering, rendered, err
	}

	if err = waitForSecrets(ctx, world.Admin, fleet.Namespace, s.configs); err != nil {
		return rendering, rendered, err
	}

	if err = untilQuiet(ctx, world, process, s.settling); err != nil {
		return rendering, rendered, err
	}

	if rendering, err = scale.MemoryOf(process.PID()); err != nil {
		return rendering, rendered, err
	}

	if err = checkAllReady(ctx, world.Admin, fleet.Namespace, s.configs); err != nil {
		return rendering, rendered, err
	}

	rendered, err = settledMemory(ctx, s, world, process, "rendered")

	return rendering, rendered, errors.Join(err, process.Stop())
}

// waitForSecrets counts without reading them.
func waitForSecrets(ctx context.Context, c client.Client, namespace string, n int) error {
	for {
		page := &corev1.SecretList{}
		if err := c.List(ctx, page, client.InNamespace(namespace), client.Limit(1)); err != nil {
			return err
		}

		if page.RemainingItemCount != nil && int(*page.RemainingItemCount)+1 > n {
			return nil
		}

		if err := scale.Pause(ctx, time.Second); err != nil {
			return fmt.Errorf("wait for %d data Secrets: %w", n, err)
		}
	}
}

// checkAllReady says so when not so many TalosConfigs are ready.
func checkAllReady(ctx context.Context, c client.Client, namespace string, n int) error {
	ready, page := 0, &bootstrapv1.TalosConfigList{}

	for {
		if err := c.List(ctx, page, client.InNamespace(namespace), client.Limit(500), client.Continue(page.Continue)); err != nil {
			return err
		}

		for i := range page.Items {
			if conditions.IsTrue(&page.Items[i], bootstrapv1.TalosConfigReadyCondition) {
				ready++
			}
		}

		if page.Continue == "" {
			break
		}
	}

	if ready != n {
		return fmt.Errorf("%d TalosConfigs in namespace %s are ready, want %d", ready, namespace, n)
	}

	return nil
}
