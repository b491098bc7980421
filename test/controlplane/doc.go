// SPDX-License-Identifier: Apache-2.0

// Package controlplane has scenarios of whole control planes: Ichor's managers, Cluster API's core manager and simulated machines with real
// etcd members and API servers, from creation to deletion. All tests share one stage, each in a namespace of its own.
//
// `make test-long`, or -long, has those that take longer, too.
package controlplane
