// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/etcd"
	"github.com/maesh-dev/ichor/internal/prose"
)

const (
	// pollInterval is when to look again at what nothing watches: nodes and their etcd.
	pollInterval = 20 * time.Second

	// actInterval is when to look again after an action: what it changes on a node nobody watches.
	actInterval = 2 * time.Second

	// restInterval is when to look again although all is well: nodes fall ill, and certificates and periods of grace come due.
	restInterval = 5 * time.Minute

	// OrphanGrace is how long an etcd member must have had no Machine before it is removed: longer than it takes for a Machine and its
	// node to be seen, also after a restart or a move.
	OrphanGrace = 5 * time.Minute
)

// planner is a Snapshot with what follows from it.
type planner struct {
	*Snapshot

	etcd etcd.Cluster

	// ours are the control plane's Machines, oldest first; live those that are not being deleted, leaving the others, by the time of
	// their deletion.
	ours, live, leaving []*Machine
	byName              map[string]*Machine // only of many

	// initialized is true once the API server has answered, by status, by record, or by a Machine that has a Node.
	initialized bool

	// held is what there is to say about a step that waits and lets others go on.
	held []Decision

	remediation *RemediationNote
}

// step is one thing to look at. The first that has a decision settles it.
type step struct {
	// why says what the step is for, and why it has its place.
	why  string
	plan func(*planner) *Decision
}

// steps in their order. What protects comes before what changes; what finishes something before what begins something.
var steps = []step{
	{"Whoever is paused does nothing, deletion included.", (*planner).paused},
	{"A control plane that is being deleted waits for the workers, lets its Machines go and deletes them, whatever state anything is in.", (*planner).deletion},
	{"Without a Cluster nothing can be decided.", (*planner).clusterMissing},
	{"A control-plane Machine without an owner is adopted before it is counted.", (*planner).adopt},
	{"Every Machine has our hook before anything may delete it.", (*planner).protect},
	{"A member's ID is noted down while its node can say it, since later it may not.", (*planner).recordMember},
	{"That a machine has had an address is noted down before etcd may be bootstrapped: a node with etcd data may be there, and status is lost in a move.", (*planner).recordAddress},
	{"Etcd is bootstrapped once in a cluster's life: the record comes before the call, and nothing else before both.", (*planner).bootstrap},
	{"A member that no Machine has counts against the quorum: it goes first, after a period of grace.", (*planner).orphans},
	{"A Machine that is being deleted leaves etcd before it goes, one at a time, and everything else waits for it.", (*planner).leave},
	{"A remediation that has done its work is forgotten.", (*planner).forgetRemediation},
	{"An unhealthy machine is replaced before anything else is changed.", (*planner).remediate},
	{"A machine that is not as the spec wants it is replaced before the number of machines is looked at, so that each one made is up to date.", (*planner).roll},
	{"There are as many machines as the spec wants.", (*planner).scale},
	{"Nothing is left to do once every machine is well.", (*planner).comeUp},
}

// Plan decides what happens next.
func Plan(s Snapshot) Decision { return newPlanner(&s).plan() }

func (p *planner) plan() Decision {
	for _, each := range steps {
		if d := each.plan(p); d != nil {
			return p.finish(*d)
		}
	}

	return p.finish(Decision{Action: Rest{}, Reason: controlplanev1.PlanUpToDateReason, Message: "Every machine is as the spec wants it"})
}

func newPlanner(s *Snapshot) *planner {
	p := &planner{
		Snapshot: s, etcd: etcdOf(s), ours: make([]*Machine, 0, len(s.Machines)), live: make([]*Machine, 0, len(s.Machines)),
		initialized: s.ControlPlane.Initialized || s.ControlPlane.Bootstrap.Record.Done || s.ControlPlane.BundleBootstrap.Record.Done,
	}

	if len(s.Machines) >= many {
		p.byName = make(map[string]*Machine, len(s.Machines))
	}

	for i := range s.Machines {
		m := &s.Machines[i]
		if p.byName != nil {
			p.byName[m.Name] = m
		}

		p.initialized = p.initialized || m.ShowsAPIServer()

		if m.Ours {
			p.ours = append(p.ours, m)
		}
	}

	slices.SortFunc(p.ours, oldest)

	for _, m := range p.ours {
		if m.Deletion == nil {
			p.live = append(p.live, m)
		} else {
			p.leaving = append(p.leaving, m)
		}
	}

	slices.SortStableFunc(p.leaving, func(a, b *Machine) int { return a.Deletion.Since.Compare(b.Deletion.Since) })

	return p
}

// many is from how many on Machines are looked up in a map.
const many = 16

// machine finds a Machine by its name, or nil.
func (p *planner) machine(name string) *Machine {
	if p.byName != nil {
		return p.byName[name]
	}

	for i := range p.Machines {
		if p.Machines[i].Name == name {
			return &p.Machines[i]
		}
	}

	return nil
}

// finish adds what steps before the deciding one had to say, and when to look again.
func (p *planner) finish(d Decision) Decision {
	if !acts(d.Action) && len(p.held) > 0 {
		d = p.said(d)
	}

	d.Remediation = p.note(d)

	switch _, rests := d.Action.(Rest); {
	case rests:
		d.RetryAfter = p.untilRollout()
	case acts(d.Action):
		d.RetryAfter = actInterval
	default:
		d.RetryAfter = cmp.Or(d.RetryAfter, pollInterval)
	}

	return d
}

// note is the status of an unhealthy machine's remediation, also when something else comes first.
func (p *planner) note(d Decision) *RemediationNote {
	if p.remediation != nil || p.ControlPlane.Deleting || d.Reason == controlplanev1.PlanPausedReason {
		return p.remediation
	}

	if all := p.unhealthy(); len(all) > 0 {
		return &RemediationNote{all[0].Name, controlplanev1.MachineRemediationDeferredReason, d.Message}
	}

	return nil
}

// said is all that steps are waiting for. The reason is that of the first.
func (p *planner) said(last Decision) Decision {
	all := p.held
	if _, waits := last.Action.(Wait); waits {
		all = append(slices.Clip(all), last)
	}

	d, parts := all[0], []string{all[0].Message}

	for _, other := range all[1:] {
		if !slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(part, other.Message) }) {
			parts = append(parts, other.Message)
		}

		if d.RetryAfter == 0 || (other.RetryAfter != 0 && other.RetryAfter < d.RetryAfter) {
			d.RetryAfter = other.RetryAfter
		}
	}

	d.Message = prose.InOrder(parts)

	return d
}

// hold says that something waits, and lets the next steps go on.
func (p *planner) hold(d *Decision) { p.held = append(p.held, *d) }

func wait(reason, format string, args ...any) *Decision { return do(Wait{}, reason, format, args...) }

// do is a decision. Its message may quote what others say, at any length: it is cut to what status has room for.
func do(action Action, reason, format string, args ...any) *Decision {
	return &Decision{Action: action, Reason: reason, Message: prose.Shorten(fmt.Sprintf(format, args...))}
}

func (p *planner) paused() *Decision {
	switch {
	case p.Cluster != nil && p.Cluster.Paused:
		return wait(controlplanev1.PlanPausedReason, "Cluster %s is paused", p.Cluster.Name)
	case p.ControlPlane.Paused:
		return wait(controlplanev1.PlanPausedReason, "TalosControlPlane %s is paused", p.ControlPlane.Name)
	default:
		return nil
	}
}

func (p *planner) clusterMissing() *Decision {
	if p.Cluster != nil {
		return nil
	}

	return wait(controlplanev1.PlanClusterMissingReason, "The Cluster of TalosControlPlane %s does not exist", p.ControlPlane.Name)
}

func (p *planner) adopt() *Decision {
	for i := range p.Machines {
		// One that goes and has our hook waits for us: without an owner nobody would have it leave etcd, and it would hang for ever.
		if m := &p.Machines[i]; m.Orphan && (m.Deletion == nil || m.Hook) {
			return do(AdoptMachine{m.Name}, controlplanev1.PlanAdoptingReason, "Machine %s is a control-plane machine of the Cluster and has no owner", m.Name)
		}
	}

	return nil
}

// protect covers Machines that were not made by us, or whose hook was taken off. One that is being deleted gets it back as long as it
// is a member of etcd that has to leave, and its infrastructure is there.
func (p *planner) protect() *Decision {
	for _, m := range p.ours {
		if m.Hook {
			continue
		}

		if m.Deletion == nil || (len(p.etcd.MembersOf(m.Name)) > 0 && m.Deletion.beforeInfrastructure() && !p.nothingToLeave(m)) {
			return do(AddHook{m.Name}, controlplanev1.PlanProtectingReason, "Machine %s lacks the hook that keeps its infrastructure until its etcd member has left", m.Name)
		}
	}

	return nil
}

func (p *planner) recordMember() *Decision {
	for _, m := range p.ours {
		self := m.Etcd.Self
		if !m.Etcd.Answered || self == 0 || slices.Contains(m.RecordedMembers, self) {
			continue
		}

		if _, ok := p.etcd.Member(self); ok {
			return do(RecordMember{m.Name, self}, controlplanev1.PlanRecordingReason, "Machine %s runs etcd member %s", m.Name, self)
		}
	}

	return nil
}

func (p *planner) recordAddress() *Decision {
	for _, m := range p.ours {
		noted := m.AddressRecorded || len(m.RecordedMembers) > 0
		if !noted && (len(m.Addresses) > 0 || m.NodeName != "") {
			return do(RecordAddress{m.Name}, controlplanev1.PlanRecordingReason, "Machine %s has an address", m.Name)
		}
	}

	return nil
}

// comeUp waits for machines and members that are not well, or not yet.
func (p *planner) comeUp() *Decision {
	if !p.initialized {
		return nil // bootstrap has said what it waits for
	}

	for _, m := range p.live {
		switch complaint := p.complaint(m, required); {
		case complaint == "":
		case m.NodeName == "":
			return wait(controlplanev1.PlanWaitingForMachineReason, "%s", complaint)
		default:
			return wait(controlplanev1.PlanMachineUnhealthyReason, "%s", complaint)
		}
	}

	for _, m := range p.etcd.Members {
		if !m.Healthy() {
			return wait(controlplanev1.PlanMachineUnhealthyReason, "Etcd member %s %s", m, m.Problem)
		}
	}

	return nil
}

// untilRollout is when to look again at rest: before long, and when spec.rollout.after makes a difference.
func (p *planner) untilRollout() time.Duration {
	after := p.ControlPlane.Spec.Rollout.After.Time
	if after.After(p.Now) {
		return min(after.Sub(p.Now), restInterval)
	}

	return restInterval
}

// replicas that the spec wants.
func (p *planner) replicas() int {
	if n := p.ControlPlane.Spec.Replicas; n != nil {
		return int(*n)
	}

	return 1
}

// oldest orders Machines by age, then by name.
func oldest(a, b *Machine) int {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
}

func namesOf(machines []*Machine) []string {
	out := make([]string, 0, len(machines))
	for _, m := range machines {
		out = append(out, m.Name)
	}

	return out
}
