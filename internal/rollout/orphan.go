// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/etcd"
	"github.com/maesh-dev/ichor/internal/prose"
)

// orphans removes etcd members that no Machine has, or that never start, one at a time.
func (p *planner) orphans() *Decision {
	if !p.initialized {
		return nil
	}

	what := "is on no Machine"

	orphan, doubt := p.stranger(func(string) bool { return false })

	switch {
	case orphan == nil:
		orphan, what = p.neverStarted(), "has never started"
	case orphan.Left:
		what = orphan.Problem
	}

	if orphan == nil {
		if doubt != "" && len(p.leaving) == 0 {
			p.hold(wait(controlplanev1.PlanEtcdUnaccountedReason, "%s", doubt))
		}

		return nil
	}

	// What is on no Machine here may be on one that has not been brought yet.
	if p.ControlPlane.ServedElsewhere {
		p.hold(wait(controlplanev1.PlanServedElsewhereReason,
			"Etcd member %s %s and is not removed: an API server of this cluster answered before any Machine here ran one. Bring the Machines of that control plane, or remove the annotation %s from TalosControlPlane %s if none of it is left",
			orphan, what, controlplanev1.ServedElsewhereAnnotation, p.ControlPlane.Name))

		return nil
	}

	since, seen := p.Orphans[orphan.ID]
	if !seen {
		since = p.Now
	}

	if d := p.spare(orphan, what, since); d != nil {
		if !orphan.Pending || p.Now.Sub(since) >= time.Minute { // each member is so for a moment
			p.hold(d)
		}

		return nil
	}

	through := p.heir(orphan.ID).Host

	return do(RemoveEtcdMember{"", orphan.ID, through}, controlplanev1.PlanRemovingOrphanReason,
		"Etcd member %s %s: it is removed through Machine %s", orphan, what, through)
}

// spare is what an orphan's removal waits for, or nil.
func (p *planner) spare(orphan *etcd.MemberState, what string, since time.Time) *Decision {
	if verdict := p.etcd.MaySpare(orphan.ID); !verdict.OK {
		return blockedByEtcd(verdict, fmt.Sprintf("Etcd member %s %s and stays until it can be spared", orphan, what))
	}

	if left := since.Add(OrphanGrace).Sub(p.Now); left > 0 {
		d := wait(controlplanev1.PlanRemovingOrphanReason, "Etcd member %s %s and is removed if that lasts for %s", orphan, what, minutes(OrphanGrace))
		d.RetryAfter = min(left, pollInterval)

		return d
	}

	return nothingOperates(p, nil)
}

// neverStarted is a member whose node has no data for it.
func (p *planner) neverStarted() *etcd.MemberState {
	for i := range p.etcd.Members {
		if m := &p.etcd.Members[i]; m.Pending {
			return m
		}
	}

	return nil
}

// Orphans are the etcd members that no Machine has, or has lost, and those that have not started, for the observer to note since when.
func Orphans(s Snapshot) []etcd.MemberID { return orphansOf(EtcdOf(s)) }

func orphansOf(cluster etcd.Cluster) []etcd.MemberID {
	var out []etcd.MemberID

	for _, m := range cluster.Members {
		if m.Orphan() || m.Pending {
			out = append(out, m.ID)
		}
	}

	return out
}

// NeedsNodes says whether a decision may depend on the Nodes of the workload cluster: when an etcd member is on no Machine for certain, it may
// be on one of them.
func NeedsNodes(s Snapshot) bool { return len(EtcdOf(s).Unowned()) > 0 }

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
			silent = append(silent, fmt.Sprintf("%s (%s)", m.Name, m.notUp()))
		}
	}

	if len(silent) > 0 {
		return nil, fmt.Sprintf("etcd member %s may be that of a machine that cannot say so: %s", unowned[0], prose.Named(silent))
	}

	if !p.Nodes.Known {
		return nil, fmt.Sprintf("etcd member %s is on no Machine that is known, and the Nodes of the cluster cannot be read", unowned[0])
	}

	for i := range unowned {
		m := &unowned[i]

		at := slices.IndexFunc(m.Candidates, func(name string) bool { return !excused(name) })

		switch node := p.liveNode(m); {
		case at >= 0:
			doubt = fmt.Sprintf("etcd member %s has the name or the address of Machine %s, which does not say that it is another's", m, m.Candidates[at])
		case node != "":
			doubt = fmt.Sprintf("etcd member %s is on Node %s, which is ready and has no Machine: make a Machine for it or remove the node", m, node)
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
