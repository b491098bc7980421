// SPDX-License-Identifier: Apache-2.0

// Package builder makes the objects that a user of Ichor writes: clusters, control planes, Machines, MachineDeployments and
// patches, on one of the infrastructure providers of the test world. What is not said has the value that a test which is about
// something else wants. It is pure, and only packages under test/ may import it.
package builder
