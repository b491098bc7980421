// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"
)

// comparison is one promise: subject costs at most so many times what baseline costs.
type comparison struct {
	name               string
	subject, baseline  func() error
	maxTime, maxAllocs float64 // zero: told only
}

// cost is what one call costs.
type cost struct {
	time   time.Duration
	allocs float64
}

func measureRender(_ context.Context, s sizes) ([]result, error) {
	comparisons, err := renderComparisons()
	if err != nil {
		return nil, err
	}

	var results []result

	for _, each := range comparisons {
		subject, baseline, err := each.measure(s.renderRounds, s.renderCalls)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", each.name, err)
		}

		results = append(results,
			ratio(each.name+": time", float64(subject.time)/float64(baseline.time), each.maxTime,
				fmt.Sprintf("%v, bare machinery %v", subject.time.Round(time.Microsecond), baseline.time.Round(time.Microsecond))),
			ratio(each.name+": allocations", subject.allocs/baseline.allocs, each.maxAllocs,
				fmt.Sprintf("%.0f, bare machinery %.0f", subject.allocs, baseline.allocs)))
	}

	return results, nil
}

func ratio(name string, measured, limit float64, note string) result {
	if limit == 0 {
		return told(name, measured, times, note)
	}

	return limited(name, measured, times, limit, note)
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

	return medianCost(subjects), medianCost(baselines), nil
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

func medianCost(costs []cost) cost {
	times := make([]time.Duration, len(costs))
	allocs := make([]float64, len(costs))

	for i, each := range costs {
		times[i], allocs[i] = each.time, each.allocs
	}

	return cost{median(times), median(allocs)}
}

func median[T cmp.Ordered](values []T) T {
	sorted := slices.Sorted(slices.Values(values))

	return sorted[len(sorted)/2]
}
