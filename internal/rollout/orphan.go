// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/etcd"
)

// orphans removes etcd members that no Machine has, one at a time.
func (p *planner) orphans() *Decision {
	if !p.initialized {
		return nil
	}

	stranger, doubt := p.stranger(func(string) bool { return false })
	if stranger == nil {
		if doubt != "" && len(p.leaving) == 0 {
			p.hold(wait(controlplanev1.PlanEtcdUnaccountedReason, "%s", doubt))
		}

		return nil
	}

	verdict := p.etcd.MaySpare(stranger.ID)
	if !verdict.OK {
		p.hold(blockedByEtcd(verdict, fmt.Sprintf("Etcd member %s is on no Machine and stays until it can be spared", stranger)))

		return nil
	}

	since, seen := p.Orphans[stranger.ID]
	if !seen {
		since = p.Now
	}

	if left := since.Add(OrphanGrace).Sub(p.Now); left > 0 {
		d := wait(controlplanev1.PlanRemovingOrphanReason, "Etcd member %s is on no Machine and is removed if that lasts for %s", stranger, minutes(OrphanGrace))
		d.RetryAfter = min(left, pollInterval)
		p.hold(d)

		return nil
	}

	heirs := p.etcd.Heirs(stranger.ID, namesOf(p.heirs()))
	if len(heirs) == 0 {
		return nil
	}

	return do(RemoveEtcdMember{"", stranger.ID, heirs[0].Host}, controlplanev1.PlanRemovingOrphanReason,
		"Etcd member %s is on no Machine: it is removed through Machine %s", stranger, heirs[0].Host)
}

// Orphans are the etcd members that no Machine has, for the observer to note since when.
func Orphans(s Snapshot) []etcd.MemberID {
	var out []etcd.MemberID

	for _, m := range EtcdOf(s).Unowned() {
		if m.Evidence == etcd.NoEvidence {
			out = append(out, m.ID)
		}
	}

	return out
}

// stranger is a member that certainly belongs to no machine but perhaps to those that are excused. When members are left over and that
// cannot be said, doubt says why.
func (p *planner) stranger(excused func(name string) bool) (member *etcd.MemberState, doubt string) {
	unowned := p.etcd.Unowned()
	if len(unowned) == 0 {
		return nil, ""
	}

	var silent []string

	for i := range p.Machines {
		if m := &p.Machines[i]; !excused(m.Name) && !p.etcd.Accounted(m.Name) {
			silent = append(silent, m.Name)
		}
	}

	if len(silent) > 0 {
		return nil, fmt.Sprintf("etcd member %s may be that of a machine that cannot say so: %s", unowned[0], listed(silent))
	}

	if !p.Nodes.Known {
		return nil, fmt.Sprintf("etcd member %s is on no Machine that is known, and the Nodes of the cluster cannot be read", unowned[0])
	}

	for i := range unowned {
		m := &unowned[i]

		switch {
		case m.Evidence == etcd.ByNameOrAddress && !excused(m.Host):
			doubt = fmt.Sprintf("etcd member %s has the name or the address of Machine %s, which runs another", m, m.Host)
		case p.liveNode(m) != "":
			doubt = fmt.Sprintf("etcd member %s is on Node %s, which is ready and has no Machine: make a Machine for it or remove the node", m, p.liveNode(m))
		default:
			return m, ""
		}
	}

	return nil, doubt
}

// liveNode is a ready Node that a member may run on, other than those of Machines.
func (p *planner) liveNode(member *etcd.MemberState) string {
	addresses := etcd.PeerAddresses(member.PeerURLs)

	for _, node := range p.Nodes.Items {
		if !node.Ready || p.hasMachine(node.Name) {
			continue
		}

		shares := slices.ContainsFunc(node.Addresses, func(address string) bool { return slices.Contains(addresses, address) })
		if shares || strings.EqualFold(node.Name, member.Name) {
			return node.Name
		}
	}

	return ""
}

func (p *planner) hasMachine(node string) bool {
	for i := range p.Machines {
		if p.Machines[i].NodeName == node {
			return true
		}
	}

	return false
}

func minutes(d time.Duration) string { return fmt.Sprintf("%d minutes", int(d.Minutes())) }
