// SPDX-License-Identifier: Apache-2.0

// Package machines holds the simulated machines of the infrastructure provider sim, and the load balancers of their clusters.
// They live in this process, and may outlive the provider's manager in it: a manager finds them by their provider IDs. When the
// process ends, they lose their power; what is on their disks is gone with it, unless it is kept in a directory (Options.Keep).
//
// It is not pure. The provider's reconcilers import it, and tests that want to reach into a machine.
package machines
