// SPDX-License-Identifier: Apache-2.0

// Package talossim simulates Talos nodes: what the product knows of a machine is what its Talos API says, so a simulated
// node is that API, over real gRPC and mutual TLS on a loopback address of its own, and the machine behind it: a disk with
// two boot slots, a machine configuration that is loaded and validated as strictly as a node of that version does it,
// boots with new boot IDs, roles, and a member of an etcd cluster.
//
// A World holds the nodes of one test. Nodes whose configurations share a certificate authority form a cluster, as in
// reality; nothing else ties them together. Faults are set by the test, one node at a time.
//
// There are two fidelities. Light nodes share a model of etcd in this process, which follows etcd's own rules, and have no
// Kubernetes. Nodes of full fidelity run a real etcd member and API server with what the machine configuration says.
//
// What a node does is stated call by call, with the source of each claim, in the conformance table of this package's
// tests. Known differences from a real node: a boot takes as long as the test wants it to; no scheduler runs, and of a
// cluster's controller managers one; the logs are those of Talos' services; nodes find each other without a discovery
// service, and show no Members; and of files there are the few that anybody asks for; and what is not about
// managing a node (packet capture, processes) answers Unimplemented.
//
// A World keeps a Transcript: what happened, in order, as text that the same scenario gives again.
//
// It is not pure, and only packages under test/ and programs that start the test world may import it.
package talossim
