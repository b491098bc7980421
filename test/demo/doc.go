// SPDX-License-Identifier: Apache-2.0

// Command demo shows Ichor at work on real parts: an API server with its etcd and controllers, the Cluster API core manager,
// and Ichor's bootstrap manager with the rights of its own ServiceAccount. `demo up` starts them in the background, applies
// examples/demo, and shows the machine configs that come out; `demo down` ends them. Run it with `make demo` and
// `make demo-down`.
package main
