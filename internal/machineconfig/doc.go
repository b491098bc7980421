// SPDX-License-Identifier: Apache-2.0

// Package machineconfig renders the Talos machine config of one machine from everything that was read about it.
//
// It is PURE: the same Input gives the same bytes. It reads nothing, knows no time and no randomness; what needs a
// cluster (Secrets, patches, the machine itself) is read by a caller and handed in. Reconcilers, webhooks and the command
// line import it; it imports the API types, Talos machinery and other pure packages.
//
// The config is built in layers, lowest first:
//
//	Base     machinery's generator: secrets bundle, contract, Kubernetes version, endpoint, networks
//	System   registries, install, network, hostname, node labels, storage preparation
//	Cluster  TalosConfigPatches, by priority, then by name
//	Role
//	Pool     the selected patches, then those that the TalosConfig refers to, in its order
//	Machine
//
// and is then decoded strictly, checked against what no patch may touch, and validated as Talos does and further: some
// configs that machinery accepts cannot run on a node.
package machineconfig
