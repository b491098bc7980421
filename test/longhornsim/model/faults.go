// SPDX-License-Identifier: Apache-2.0

package model

import "maps"

// Faults are what is wrong, until it is mended. Make them with NewFaults; set and delete entries.
type Faults struct {
	// RebuildStalls has the volumes whose new copies make no progress. "*" is all of them.
	RebuildStalls map[string]bool
	// RebuildFails has the volumes whose new copies fail half way.
	RebuildFails map[string]bool
	// RebuildSlow has, by volume, by how much new copies are slower: 10 takes ten times as long.
	RebuildSlow map[string]int64
	// RebuildSlotsTaken has, by node, the places for rebuilding that are taken and never given back (longhorn#8535, #13629).
	RebuildSlotsTaken map[string]int64

	// EngineStuck has the volumes whose engine does not stop: they detach for ever.
	EngineStuck map[string]bool
	// OrphanEngine has the nodes with an engine that belongs to no volume (longhorn#6552).
	OrphanEngine map[string]bool
	// AttachStuck has the volumes that never finish attaching.
	AttachStuck map[string]bool
	// TicketStays has the volumes whose ticket of the eviction stays when it is over (longhorn#9781).
	TicketStays map[string]bool

	// ManagerDown has the nodes whose longhorn-manager does not run.
	ManagerDown map[string]bool
	// DisksUnsynced has the nodes whose disks' status never follows their spec (longhorn#13494, #6487).
	DisksUnsynced map[string]bool
	// NoEngineImage has the nodes that the engine's program never gets to.
	NoEngineImage map[string]bool
}

// NewFaults returns no faults.
func NewFaults() Faults {
	return Faults{
		RebuildStalls: map[string]bool{}, RebuildFails: map[string]bool{}, RebuildSlow: map[string]int64{},
		RebuildSlotsTaken: map[string]int64{}, EngineStuck: map[string]bool{}, OrphanEngine: map[string]bool{},
		AttachStuck: map[string]bool{}, TicketStays: map[string]bool{}, ManagerDown: map[string]bool{},
		DisksUnsynced: map[string]bool{}, NoEngineImage: map[string]bool{},
	}
}

func (f Faults) clone() Faults {
	return Faults{
		RebuildStalls: maps.Clone(f.RebuildStalls), RebuildFails: maps.Clone(f.RebuildFails),
		RebuildSlow: maps.Clone(f.RebuildSlow), RebuildSlotsTaken: maps.Clone(f.RebuildSlotsTaken),
		EngineStuck: maps.Clone(f.EngineStuck), OrphanEngine: maps.Clone(f.OrphanEngine),
		AttachStuck: maps.Clone(f.AttachStuck), TicketStays: maps.Clone(f.TicketStays),
		ManagerDown: maps.Clone(f.ManagerDown), DisksUnsynced: maps.Clone(f.DisksUnsynced),
		NoEngineImage: maps.Clone(f.NoEngineImage),
	}
}
