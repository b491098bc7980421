// SPDX-License-Identifier: Apache-2.0

// Command demo shows Ichor at work on real parts: an API server with its etcd and controllers, the Cluster API core manager,
// Ichor's two managers and the infrastructure provider sim, each with the rights of its own ServiceAccount. The machines are
// simulated; their etcd and their Kubernetes API servers are real. `demo up` starts them in the background, makes a cluster from
// templates/ with clusterctl, and shows step by step what the control plane does and why: until it runs, and when it is scaled;
// the config of a machine; and what a patch changes and covers. `demo down` ends them. Run it with `make demo` and
// `make demo-down`.
package main
