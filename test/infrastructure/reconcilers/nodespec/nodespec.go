// SPDX-License-Identifier: Apache-2.0

// Package nodespec says what a simulated node is like by the spec of its object. It is pure.
package nodespec

import (
	"time"

	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
	"github.com/maesh-dev/ichor/test/talossim"
)

// Options are those of a node of that name and provider ID.
func Options(name, providerID string, spec infrav1.SimMachineSpec) talossim.NodeOptions {
	return talossim.NodeOptions{
		Name: name, ProviderID: providerID, Image: spec.Image,
		Blank: spec.Disk == infrav1.DiskBlank, Metal: spec.Platform == infrav1.PlatformMetal,
	}
}

// Faults are those of the spec.
func Faults(f infrav1.Faults) talossim.Faults {
	return talossim.Faults{
		Unreachable: f.Unreachable, BlackHole: f.BlackHole, Delay: time.Duration(f.DelayMilliseconds) * time.Millisecond,
		WrongCA: f.WrongCA, ClockSkew: time.Duration(f.ClockSkewSeconds) * time.Second, Hostname: f.Hostname, TimeUnsynced: f.TimeUnsynced,
		LeaveFails: f.LeaveFails, EtcdNeverStarts: f.EtcdNeverStarts, EtcdNeverCatchesUp: f.EtcdNeverCatchesUp,
		PullFails: f.PullFails, InstallExitCode: f.InstallExitCode, BootFails: f.BootFails, NeverReady: f.NeverReady,
		ServiceWaits: f.ServiceWaits, NodeNotReady: f.NodeNotReady,
	}
}
