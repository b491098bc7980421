// SPDX-License-Identifier: Apache-2.0

// Package talosclusterconfig reports on TalosClusterConfigs: whether machines can be rendered with them. It makes nothing that machines
// need; a TalosConfig's reconcile finds the same faults. It is not pure; bootstrap/setup imports it.
//
//	observe.go   what the caches say: Clusters that are targeted, others that target them, versions of Secrets
//	judge.go     what the Secrets hold, read only when one of them or what it is judged by has changed
//	status.go    conditions
//	watches.go   what wakes which TalosClusterConfig
package talosclusterconfig
