// SPDX-License-Identifier: Apache-2.0

// Package machines holds the simulated machines of the infrastructure provider sim, and the load balancers of their clusters.
// They live in this process, and may outlive the provider's manager in it: a manager finds them by their provider IDs. When the
// process ends, they are gone, and with them what was on their disks.
//
// It is not pure. The provider's reconcilers import it, and tests that want to reach into a machine.
package machines
