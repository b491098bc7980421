// SPDX-License-Identifier: Apache-2.0

// Command demo shows Ichor at work on real parts: an API server with its etcd and controllers, the Cluster API core manager,
// and Ichor's bootstrap manager with the rights of its own ServiceAccount. Package standin plays the infrastructure provider.
// `demo up` starts them in the background, applies examples/demo, shows the machine configs that come out, and scales a
// MachineDeployment from examples/scaling; `demo down` ends them. Run it with `make demo` and `make demo-down`.
package main
