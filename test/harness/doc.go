// SPDX-License-Identifier: Apache-2.0

// Package harness starts the management cluster of the test world: a real etcd, a real Kubernetes API server and, when
// asked for, a real kube-controller-manager and the real Cluster API core manager with its webhooks and its own rights.
// Every one is a process of its own on a loopback address, built from source by package tools.
//
// Tests, the demo and the benchmarks use it. It needs no testing.T: see StartManagementCluster, and ForTest for tests.
// It is not pure, and only packages under test/ and programs that start the test world may import it.
package harness
