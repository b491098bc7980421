// SPDX-License-Identifier: Apache-2.0

// Package stage is where scenarios play: a management cluster with Cluster API's core manager, Ichor, and the infrastructure
// provider sim, all with the rights of their installations; and what a user of such a cluster has at hand: Talos' client,
// kubectl's configuration, the simulated machines.
//
// It is not pure, and only packages under test/ may import it.
package stage
