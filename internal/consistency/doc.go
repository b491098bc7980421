// SPDX-License-Identifier: Apache-2.0

// Package consistency holds a reconcile back until the caches have what the one before it wrote. One that sees the state of before would do
// the same once more: a Machine would be made again; or it finds nothing to do, and a status that is no longer true stays.
//
// Cluster API's controller does the same (sigs.k8s.io/cluster-api/util/controller), but not when its feature gate ReconcilerRateLimiting is off.
package consistency
