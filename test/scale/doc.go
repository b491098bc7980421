// SPDX-License-Identifier: Apache-2.0

// Package scale makes worlds of many Machines for the benchmarks and for the tests that are about numbers: a management cluster
// with the definitions of Cluster API and Ichor and without Cluster API's core manager, fleets of Machines whose TalosConfigs
// are theirs from the start, and the bootstrap provider's manager as a process of its own that is measured from outside: its
// requests at the API server, its memory at the kernel, its reconciles at its metrics.
//
// It is not pure, and only packages under test/ may import it.
package scale
