// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
)

// emptiest is the failure domain for a new machine: the one with the fewest machines that are up to date, so that a rollout ends in
// balance, then the one with the fewest machines, then by name. Empty when the Cluster has none for control planes.
func (p *planner) emptiest() string {
	if len(p.Cluster.FailureDomains) == 0 {
		return ""
	}

	all, current := map[string]int{}, map[string]int{}

	for _, m := range p.live {
		all[m.FailureDomain]++

		if len(m.Differences) == 0 {
			current[m.FailureDomain]++
		}
	}

	domains := slices.Sorted(slices.Values(p.Cluster.FailureDomains))

	return slices.MinFunc(domains, func(a, b string) int {
		if current[a] != current[b] {
			return current[a] - current[b]
		}

		return all[a] - all[b]
	})
}

// fullest is the machine of some whose failure domain has most machines: one that is in a domain which is not, or no longer, for control
// planes goes before all others. Of several it is the oldest.
func (p *planner) fullest(among []*Machine) *Machine {
	all := map[string]int{}
	for _, m := range p.live {
		all[m.FailureDomain]++
	}

	weight := func(m *Machine) int {
		if len(p.Cluster.FailureDomains) > 0 && !slices.Contains(p.Cluster.FailureDomains, m.FailureDomain) {
			return len(p.live) + 1
		}

		return all[m.FailureDomain]
	}

	return slices.MinFunc(among, func(a, b *Machine) int {
		if wa, wb := weight(a), weight(b); wa != wb {
			return wb - wa
		}

		return oldest(a, b)
	})
}
