// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"slices"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/etcd"
	"github.com/maesh-dev/ichor/internal/prose"
)

// leave takes the etcd members of Machines that are being deleted out of etcd and lets the Machines go. It is the only place where a
// member with a Machine is removed, whoever deleted the Machine and why. It is derived anew each time from the member list: a leave that
// failed, or whose outcome nobody knows, shows as a member that is still there.
func (p *planner) leave() *Decision {
	if len(p.leaving) == 0 {
		return nil
	}

	for _, m := range p.leaving {
		if !m.Hook {
			return wait(controlplanev1.PlanMachineDeletingReason, "Nothing of ours keeps Machine %s any more, and it is being deleted: %s", m.Name, m.stage())
		}
	}

	var blocked, begun *Decision

	for _, m := range p.leaving {
		d := p.leaveInTurn(m)

		if _, done := d.Action.(ReleaseHook); done { // what has left etcd is finished first
			return d
		}

		if acts(d.Action) {
			begun = cmp.Or(begun, d)
		} else {
			blocked = cmp.Or(blocked, d)
		}
	}

	if begun != nil {
		return begun
	}

	// With the last member on its way out, only a new one helps: a machine may be made. With too few healthy members beside it, or one that
	// joins for ever, only the replacement of those machines helps.
	switch blocked.Reason {
	case controlplanev1.PlanEtcdLastMemberReason, controlplanev1.PlanEtcdQuorumAtRiskReason, controlplanev1.PlanEtcdChangingReason:
		p.hold(blocked)

		return nil
	default:
		return blocked
	}
}

// leaveInTurn is leaveOne as long as no other machine is away for an operation in place: one disturbance of etcd at a time. The operation of
// the machine itself ends with it.
func (p *planner) leaveInTurn(m *Machine) *Decision {
	d := p.leaveOne(m)

	if _, done := d.Action.(ReleaseHook); acts(d.Action) && !done {
		if busy := p.operates(m); busy != nil {
			return busy
		}
	}

	return d
}

func (p *planner) leaveOne(m *Machine) *Decision {
	switch {
	case !m.Deletion.AtHook:
		return wait(controlplanev1.PlanMachineDeletingReason, "Machine %s is being deleted: %s", m.Name, m.stage())
	case len(m.OtherHooks) > 0:
		return wait(controlplanev1.PlanMachineDeletingReason, "Machine %s is being deleted and leaves etcd after the other pre-terminate hooks are gone: %s", m.Name, prose.Names(m.OtherHooks))
	case p.nothingToLeave(m):
		return do(ReleaseHook{m.Name}, controlplanev1.PlanReleasingReason, "Machine %s goes before the control plane was initialized, and no other machine is in its etcd", m.Name)
	}

	members := p.etcd.MembersOf(m.Name)
	if len(members) == 0 {
		return p.letGo(m)
	}

	// Of several, the one that does not run goes first.
	slices.SortStableFunc(members, func(a, b etcd.MemberState) int { return int(a.Evidence) - int(b.Evidence) })

	return p.removeMember(m, members[0])
}

// nothingToLeave is true before the control plane is initialized when no other machine can have a member of the same etcd: each says that it
// has no data, or never had an address. One that is going too and does not answer is none that anybody counts on, or neither would ever go.
func (p *planner) nothingToLeave(m *Machine) bool {
	return !p.initialized && !p.bootstrapsBeside(m) && len(p.etcd.Members) <= 1 && !slices.ContainsFunc(p.Machines, func(other Machine) bool {
		return other.Name != m.Name && other.HadAddress && !other.empty() && (other.Deletion == nil || other.Etcd.Answered)
	})
}

// bootstrapsBeside tells whether etcd is being bootstrapped on another machine, or is about to be. A node that was let go would join it, and
// take its vote with it when it goes: it is kept, and leaves when there is an etcd. What the bootstrap waits for may go.
func (p *planner) bootstrapsBeside(m *Machine) bool {
	record, _ := p.record()
	if record == nil || record.Machine == m.Name {
		return false
	}

	first := p.machine(record.Machine)
	if first == nil || first.Deletion != nil {
		return false
	}

	asked := !first.BootstrapCalled.IsZero() && p.Now.Before(first.BootstrapCalled.Add(BootstrapWait))

	return asked || p.unproven() == nil && first.empty()
}

// removeMember has a member leave, or removes it by its ID when its node cannot.
func (p *planner) removeMember(m *Machine, member etcd.MemberState) *Decision {
	if verdict := p.etcd.MayRemove(member.ID); !verdict.OK {
		return blockedByEtcd(verdict, "Machine "+m.Name+" stays until its etcd member can be removed")
	}

	heir := p.heir(member.ID)
	runs := member.Evidence == etcd.BySelf && m.Etcd.Answered
	leads := p.etcd.Leader == member.ID || m.Etcd.Leader == member.ID

	switch {
	case runs && leads && !m.ForwardFailed:
		return do(ForwardLeadership{m.Name, member.ID, heir.ID}, controlplanev1.PlanLeavingEtcdReason,
			"Machine %s is being deleted and leads etcd: leadership goes to another member, best to %s", m.Name, heir)
	case runs && member.Healthy() && !m.LeaveFailed:
		return do(LeaveEtcd{m.Name, member.ID}, controlplanev1.PlanLeavingEtcdReason, "Machine %s is being deleted: its etcd member %s leaves", m.Name, member.ID)
	default:
		return do(RemoveEtcdMember{m.Name, member.ID, heir.Host}, controlplanev1.PlanLeavingEtcdReason,
			"Machine %s is being deleted and its etcd member %s cannot leave by itself: it is removed through Machine %s", m.Name, member.ID, heir.Host)
	}
}

// heir is the member that carries on best without another. There is one whenever etcd says that the other may be removed.
func (p *planner) heir(of etcd.MemberID) etcd.MemberState {
	return p.etcd.Heirs(of, namesOf(p.heirs()))[0]
}

// heirs are the machines that leadership had better go to: those that stay, as the spec wants them before others, the newest first.
func (p *planner) heirs() []*Machine {
	out := slices.Clone(p.live)
	slices.SortStableFunc(out, func(a, b *Machine) int {
		if au, bu := len(a.Differences) == 0, len(b.Differences) == 0; au != bu {
			if au {
				return -1
			}

			return 1
		}

		return oldest(b, a)
	})

	return out
}

// letGo takes the hook off a Machine that has no member, once that is certain and those that stay are a quorum.
func (p *planner) letGo(m *Machine) *Decision {
	if verdict := p.etcd.HasQuorum(); !verdict.OK {
		return blockedByEtcd(verdict, "Machine "+m.Name+" stays until etcd is well without it")
	}

	if p.etcd.Accounted(m.Name) || len(p.etcd.Unowned()) == 0 {
		return do(ReleaseHook{m.Name}, controlplanev1.PlanReleasingReason, "No etcd member is on Machine %s, and etcd is well without it", m.Name)
	}

	// Its node tells nothing and never did. If every machine that stays knows its member, the one that is left over is that of this
	// machine or of one that is gone already.
	stranger, doubt := p.stranger(func(name string) bool { return p.machine(name).Deletion != nil })
	if stranger == nil {
		return wait(controlplanev1.PlanEtcdUnaccountedReason, "Machine %s stays: %s", m.Name, doubt)
	}

	// It may as well be on a machine that has not been brought yet, as in orphans.
	if p.ControlPlane.ServedElsewhere {
		return wait(controlplanev1.PlanServedElsewhereReason,
			"Machine %s stays: its node tells nothing, and etcd member %s may be its own, or that of a Machine which is not here: an API server of this cluster answered before any Machine here ran one. Bring the Machines of that control plane, or remove the annotation %s from TalosControlPlane %s if none of it is left",
			m.Name, stranger, controlplanev1.ServedElsewhereAnnotation, p.ControlPlane.Name)
	}

	if verdict := p.etcd.MaySpare(stranger.ID); !verdict.OK {
		return blockedByEtcd(verdict, "Machine "+m.Name+" stays until the etcd member that may be its own can be removed")
	}

	through := p.heir(stranger.ID).Host

	return do(RemoveEtcdMember{m.Name, stranger.ID, through}, controlplanev1.PlanLeavingEtcdReason,
		"Machine %s is being deleted and its node tells nothing; etcd member %s is on no machine that stays and is removed through Machine %s", m.Name, stranger, through)
}

// blockedByEtcd turns a no of package etcd into a decision.
func blockedByEtcd(verdict etcd.Verdict, what string) *Decision {
	reason := controlplanev1.PlanEtcdUnknownReason

	switch verdict.Reason {
	case etcd.QuorumAtRisk:
		reason = controlplanev1.PlanEtcdQuorumAtRiskReason
	case etcd.LastMember:
		reason = controlplanev1.PlanEtcdLastMemberReason
	case etcd.MembersChanging:
		reason = controlplanev1.PlanEtcdChangingReason
	case etcd.AlarmRaised:
		reason = controlplanev1.PlanEtcdAlarmReason
	case etcd.OK, etcd.NotMember, etcd.MembersUnknown:
	}

	return wait(reason, "%s: %s", what, verdict.Message)
}

// stage says in words how far a Machine's deletion is.
func (m *Machine) stage() string {
	if m.Deletion.Stage == "" {
		return "it has just begun"
	}

	return "Cluster API says " + m.Deletion.Stage
}
