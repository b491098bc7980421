// SPDX-License-Identifier: Apache-2.0

// Package launch is what Ichor's managers have in common from the command line to the moment when they take their webhooks and
// reconcilers: flags and their checks, logs, the wait for the definitions, client and caches that keep no more than is needed,
// health, diagnostics, leader election. It is not pure. The setup of each provider imports it; it knows neither.
//
//	options.go      the flags that all managers have
//	run.go          from the command line to a manager that runs
//	manager.go      a manager with its endpoints
//	cache.go        what caches keep of Secrets, and a cache of metadata alone
//	definitions.go  the wait for the definitions
//	verbosity.go    no log level that shows requests
//	warnings.go     no warnings about Secrets
package launch
