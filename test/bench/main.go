// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"
)

// comparison is one promise: subject costs at most so many times what baseline costs.
type comparison struct {
	name               string
	subject, baseline  func() error
	maxTime, maxAllocs float64 // zero: reported only
}

// cost is what one call costs.
type cost struct {
	time   time.Duration
	allocs float64
}

func main() {
	rounds := flag.Int("rounds", 15, "interleaved rounds for each comparison")
	calls := flag.Int("calls", 40, "calls in a round")
	flag.Parse()

	if err := run(*rounds, *calls); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(rounds, calls int) error {
	comparisons, err := renderComparisons()
	if err != nil {
		return err
	}

	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "comparison\tours\tbaseline\ttime ratio\tlimit\tallocs\tbaseline\tratio\tlimit")

	failed := 0

	for _, each := range comparisons {
		subject, baseline, err := each.measure(rounds, calls)
		if err != nil {
			return fmt.Errorf("%s: %w", each.name, err)
		}

		timeRatio := float64(subject.time) / float64(baseline.time)
		allocRatio := subject.allocs / baseline.allocs

		if exceeds(timeRatio, each.maxTime) || exceeds(allocRatio, each.maxAllocs) {
			failed++
		}

		fmt.Fprintf(table, "%s\t%v\t%v\t%.2f\t%s\t%.0f\t%.0f\t%.2f\t%s\n", each.name,
			subject.time.Round(time.Microsecond), baseline.time.Round(time.Microsecond), timeRatio, limit(each.maxTime),
			subject.allocs, baseline.allocs, allocRatio, limit(each.maxAllocs))
	}

	if err = table.Flush(); err != nil {
		return err
	}

	if failed > 0 {
		return fmt.Errorf("%d of %d comparisons are above their limit", failed, len(comparisons))
	}

	return nil
}

func exceeds(ratio, limit float64) bool { return limit > 0 && ratio > limit }

func limit(value float64) string {
	if value == 0 {
		return "-"
	}

	return fmt.Sprintf("%.2f", value)
}

// measure runs the two in turns, so that what disturbs the machine disturbs both, and takes medians.
func (c comparison) measure(rounds, calls int) (subject, baseline cost, err error) {
	var subjects, baselines []cost

	for range rounds {
		for _, each := range []struct {
			call  func() error
			costs *[]cost
		}{{c.subject, &subjects}, {c.baseline, &baselines}} {
			measured, err := measureRound(each.call, calls)
			if err != nil {
				return cost{}, cost{}, err
			}

			*each.costs = append(*each.costs, measured)
		}
	}

	return median(subjects), median(baselines), nil
}

func measureRound(call func() error, calls int) (cost, error) {
	var before, after runtime.MemStats

	runtime.GC()
	runtime.ReadMemStats(&before)

	start := time.Now()

	for range calls {
		if err := call(); err != nil {
			return cost{}, err
		}
	}

	elapsed := time.Since(start)

	runtime.ReadMemStats(&after)

	return cost{elapsed / time.Duration(calls), float64(after.Mallocs-before.Mallocs) / float64(calls)}, nil
}

func median(costs []cost) cost {
	times := make([]time.Duration, len(costs))
	allocs := make([]float64, len(costs))

	for i, each := range costs {
		times[i], allocs[i] = each.time, each.allocs
	}

	slices.Sort(times)
	slices.Sort(allocs)

	return cost{times[len(times)/2], allocs[len(allocs)/2]}
}
