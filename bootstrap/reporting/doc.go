// SPDX-License-Identifier: Apache-2.0

// Package reporting is what the reconcilers of kinds that are reported on have in common: why an object targets nothing, a status in
// one patch, and watches that gather changes. It is not pure; bootstrap's reconcilers import it.
//
//	target.go   why an object targets no Cluster
//	status.go   the Paused condition and the write of a status
//	failing.go  what conditions say of looks that fail, and when
//	retry.go    when they are tried again
//	watches.go  which object wakes which
package reporting
