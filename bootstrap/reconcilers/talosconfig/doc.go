// SPDX-License-Identifier: Apache-2.0

// Package talosconfig reconciles TalosConfigs: for each one that a Machine or MachinePool owns it renders the machine
// config and writes it into the Secret from which Cluster API boots the machine. It is not pure; bootstrap/setup imports it.
//
// A reconcile observes (the TalosConfig, its owner, the Cluster, the data Secret, all from the cache), decides purely what
// to do, does it, and reports it in one status patch:
//
//	observe.go   what is there
//	decide.go    which one of the steps comes next: wait, render, keep, refresh, claim, adopt, refuse, forgo
//	execute.go   the steps
//	refresh.go   the step that is for MachinePools alone: another config into the same Secret
//	inputs.go    what a render needs beyond the observation, read only for a render; see internal/inputs
//	bundle.go    the cluster's secrets and the contract; see internal/clustersecrets
//	describe.go  what the data Secret says of its config, so that a lost status comes back
//	status.go    conditions and status
//	events.go    events
//	failing.go   what is said of steps that fail for nothing that a user has written
//	watches.go   what wakes which TalosConfig
//	targets.go   which TalosConfigs an object concerns that selects machines
//
// Once the Secret is written, a change of an input changes nothing for that Machine (the Secret of a MachinePool follows it), as Cluster API's contract demands: the
// machine has booted, or may boot at any moment, from what is there.
package talosconfig
