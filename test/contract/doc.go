// SPDX-License-Identifier: Apache-2.0

// Package contract tests the bootstrap provider as Cluster API uses it: on a real API server with Cluster API's own core
// manager and webhooks, in its installed form, with the providers of package standin beside it. MachineDeployments,
// MachinePools and ClusterClasses make the TalosConfigs here, and clusterctl moves them.
//
// RULES.md lists the rules of Cluster API's contracts, and FAILURES.md what is known to go wrong with others, of bootstrap and of control-plane
// providers, each with the tests that prove it, here or in other packages. Tests that prove a rule of the contract name it as
// "contract: ...".
package contract
