// SPDX-License-Identifier: Apache-2.0

// Package metrics has what the bootstrap provider measures, in controller-runtime's registry: counters and durations that
// reconcilers report, and an inventory of what is there, which is counted from the cache when it is asked for, so that it
// never drifts. Table says what each metric means, and docs/observability.md is made of it.
//
// No label names a machine: there are as many series as clusters and reasons, however many machines there are. Reconcilers
// and bootstrap/setup import the package. It is not pure.
package metrics
