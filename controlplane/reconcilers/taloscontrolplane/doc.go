// SPDX-License-Identifier: Apache-2.0

// Package taloscontrolplane reconciles TalosControlPlanes: it observes the Machines of a control plane and their nodes, has
// internal/rollout decide what happens next, does that one thing, and reports. It is not pure. controlplane/setup imports it.
//
// Files are phases:
//
//	controller.go   the order of a reconcile
//	watches.go      what wakes it
//	observe.go      what the management cluster says, once
//	inspect.go      what the nodes say, when it is due
//	health.go       what that means for the conditions of Machines
//	desired.go      Machine, TalosConfig and infrastructure machine as they should be
//	execute.go      the one thing that is done; machines.go and etcd.go do it
//	propagate.go    what reaches existing machines without a rollout
//	kubeconfig.go   the Secret with the kubeconfig
//	status.go       the report; conditions.go has the conditions
//	memory.go       what is remembered between reconciles, and may be forgotten at any time
//
// Decisions depend on stored objects and on what nodes say, and on nothing that this process remembers, but for how long something has
// lasted.
package taloscontrolplane
