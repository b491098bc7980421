// SPDX-License-Identifier: Apache-2.0

// Package workload reads workload clusters: whether their API server answers, and their Nodes. It is an adapter, and not pure. The
// control-plane provider imports it. It deletes nothing: a Machine's Node is Cluster API's to delete.
package workload
