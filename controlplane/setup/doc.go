// SPDX-License-Identifier: Apache-2.0

// Package setup turns flags into a running manager of the control-plane provider: scheme, caches, connections to workload clusters and to
// nodes, webhooks, reconcilers. The manager's main package imports it, and so do tests and benchmarks, which thereby run with the caches
// of production. It is not pure.
package setup
