// SPDX-License-Identifier: Apache-2.0

// Package e2e has tests of whole installations: clusterctl installs released providers on an empty management cluster, and
// clusters are made, scaled and deleted by what a user would apply. The environment variable E2E_INFRA names the infrastructure
// provider that a MachineDeployment scales on; provider sim is installed beside it, and crashes.
package e2e
