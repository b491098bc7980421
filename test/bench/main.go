// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/maesh-dev/ichor/test/harness"
	"github.com/maesh-dev/ichor/test/scale"
)

// sizes say how much is measured. Tests run every part with small ones.
type sizes struct {
	renderRounds, renderCalls int

	machines, machineRounds int

	// steadyPeriod is how often each TalosConfig is reconciled while nothing changes.
	steadyPeriod time.Duration

	configs int

	hostileTries int

	// hostile are the patches of the part hostile, by their names. Nil: all.
	hostile *regexp.Regexp

	// settling is how long a process must have been quiet, or its memory have stopped to shrink, to be at rest.
	settling time.Duration

	planMachines, planRounds int

	// clusters are those of the part clusters, which are watched for so many intervals of the manager when they are at rest. Zero: not at all.
	clusters, steadyIntervals int

	// profiles is a directory for profiles of what the managers of the part memory keep. Empty: none are written.
	profiles string
}

// part is one group of promises.
type part struct {
	name    string
	measure func(context.Context, sizes) ([]result, error)
}

var parts = []part{
	{"render", measureRender},
	{"machines", inWorld(scale.Options{Audit: true}, measureMachines)},
	{"memory", inWorld(scale.Options{}, measureMemory)},
	{"hostile", inWorld(scale.Options{}, measureHostile)},
	{"plan", measurePlan},
	{"clusters", measureClusters},
}

// inWorld measures a part in a management cluster of its own.
func inWorld(options scale.Options, measure func(context.Context, *scale.World, sizes) ([]result, error)) func(context.Context, sizes) ([]result, error) {
	return func(ctx context.Context, s sizes) (results []result, err error) {
		world, err := scale.Start(ctx, options)
		if err != nil {
			return nil, err
		}

		defer func() { err = errors.Join(err, world.Stop()) }()

		return measure(ctx, world, s)
	}
}

func main() {
	var s sizes

	patches := flag.String("patches", "", "hostile patches whose name matches the regular expression; empty: all")
	only := flag.String("run", "", "measure only the parts whose name matches the regular expression: render, machines, memory, hostile, plan, clusters")

	flag.IntVar(&s.renderRounds, "rounds", 15, "interleaved rounds for each comparison of renders")
	flag.IntVar(&s.renderCalls, "calls", 40, "renders in a round")
	flag.IntVar(&s.machines, "machines", 1000, "Machines in a round of the part machines")
	flag.IntVar(&s.machineRounds, "machine-rounds", 5, "interleaved rounds of the part machines")
	flag.DurationVar(&s.steadyPeriod, "steady-period", 5*time.Second, "how often the Machines of the part machines are reconciled while nothing changes")
	flag.IntVar(&s.configs, "configs", 10_000, "TalosConfigs of the part memory")
	flag.IntVar(&s.hostileTries, "tries", 3, "tries for each patch of the part hostile")
	flag.DurationVar(&s.settling, "settling", 10*time.Second, "how long memory must have stopped to shrink to be that of a process at rest")
	flag.StringVar(&s.profiles, "profiles", "", "directory for heap profiles of the part memory, for go tool pprof")
	flag.IntVar(&s.planMachines, "plan-machines", 1000, "Machines of the part plan")
	flag.IntVar(&s.planRounds, "plan-rounds", 25, "rounds of the part plan")
	flag.IntVar(&s.clusters, "clusters", 50, "clusters of the part clusters")
	flag.IntVar(&s.steadyIntervals, "steady", 2, "minutes for which the clusters at rest are watched; 0: they are not")
	flag.Parse()
	ctrl.SetLogger(harness.NewLogger(io.Discard))

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	var err error
	if s.hostile, err = regexp.Compile(*patches); err != nil {
		fmt.Fprintln(os.Stderr, "error: -patches:", err)
		stop()
		os.Exit(1)
	}

	if err := run(ctx, *only, s); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, only string, s sizes) error {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}

	var results []result

	for _, each := range parts {
		if !pattern.MatchString(each.name) {
			continue
		}

		progress("%s", each.name)

		measured, err := each.measure(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", each.name, err)
		}

		results = append(results, measured...)
	}

	if len(results) == 0 {
		return fmt.Errorf("-run %q: no part has such a name", only)
	}

	failed, err := printResults(os.Stdout, results)
	if err != nil {
		return err
	}

	if failed > 0 {
		return fmt.Errorf("%d of %d figures are above their limit", failed, len(results))
	}

	return nil
}

// progress tells what is being done, apart from the table.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s  "+format+"\n", append([]any{time.Now().Format(time.TimeOnly)}, args...)...)
}
