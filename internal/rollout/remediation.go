// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/etcd"
	"github.com/maesh-dev/ichor/internal/prose"
)

// minHealthyPeriod is the default of spec.remediation.minHealthyPeriodSeconds.
const minHealthyPeriod = time.Hour

// no is a gate's answer about a remediation.
type no struct {
	// deferred is true when something else has to be over first; otherwise the machine cannot be replaced.
	deferred bool
	message  string

	// after is when to look again, or zero.
	after time.Duration
}

func later(format string, args ...any) *no {
	return &no{deferred: true, message: fmt.Sprintf(format, args...)}
}

func never(format string, args ...any) *no { return &no{message: fmt.Sprintf(format, args...)} }

// remediation must hold before an unhealthy machine is deleted.
var remediation = []struct {
	why   string
	check func(p *planner, m *Machine) *no
}{
	{"A cluster that is being deleted is left to its deletion.", func(p *planner, _ *Machine) *no { return deferral(clusterStays(p, nil)) }},
	{"A topology that is about to say another version would have the replacement replaced at once.", func(p *planner, _ *Machine) *no { return deferral(topologySettled(p, nil)) }},
	{"A node that is rebooting for us is not ill.", func(p *planner, _ *Machine) *no { return deferral(nothingOperates(p, nil)) }},
	{"A fault that comes back with every replacement is not mended by another.", retryLimits},
	{"One machine at a time, but if those that go cannot for want of healthy members, one that has none to lose goes too.", nobodyElseLeaves},
	{"One at a time also means that the machine in place of the last one is made first, unless etcd takes none in because of this one.", replacementFirst},
	{"Before the control plane is initialized, the machine that etcd is bootstrapped on, or may be, is all there is.", notTheFirst},
	{"The only machine has all the data.", notTheOnly},
	{"A machine that is still coming up may be about to help, unless etcd does not take it in because of this one.", nobodyComesUp},
	{"Another machine must have a whole Kubernetes control plane, or no replacement can join.", anotherServes},
	{"The members that stay must be a quorum.", quorumStays},
}

// remediate replaces a machine of which a MachineHealthCheck or a user says that it is unhealthy: the first that may be, since another one may
// be what the first waits for. It notes down what it does before it deletes the Machine, so that the replacement is known as one whatever
// happens in between.
func (p *planner) remediate() *Decision {
	all := p.unhealthy()
	if len(all) == 0 {
		p.noteDeleting()

		return nil
	}

	for _, m := range all {
		if p.mayReplace(m) == nil {
			return p.replace(m)
		}
	}

	p.refuse(all[0], p.mayReplace(all[0]))

	return nil
}

// mayReplace is the first gate's no, or nil.
func (p *planner) mayReplace(m *Machine) *no {
	for _, each := range remediation {
		if n := each.check(p, m); n != nil {
			return n
		}
	}

	return nil
}

func (p *planner) replace(m *Machine) *Decision {
	record := p.ControlPlane.Remediation
	message := fmt.Sprintf("Machine %s is unhealthy and is replaced", m.Name)

	if record == nil || record.Machine != m.Name {
		next, _ := p.nextRecord(m)

		return do(RecordRemediation{next}, controlplanev1.PlanRecordingReason, "%s", message)
	}

	p.remediation = &RemediationNote{m.Name, controlplanev1.MachineRemediationMachineDeletingReason, "Machine is being deleted"}

	return do(DeleteMachine{m.Name}, controlplanev1.PlanRemediatingReason, "%s", message)
}

func (p *planner) refuse(m *Machine, n *no) {
	reason := controlplanev1.MachineCannotBeRemediatedReason
	if n.deferred {
		reason = controlplanev1.MachineRemediationDeferredReason
	}

	p.remediation = &RemediationNote{m.Name, reason, prose.Shorten(n.message)}

	d := wait(reason, "Machine %s is unhealthy and is not replaced: %s", m.Name, n.message)
	d.RetryAfter = n.after
	p.hold(d)
}

// noteDeleting keeps the status of a machine that is being deleted because it was unhealthy.
func (p *planner) noteDeleting() {
	if record := p.ControlPlane.Remediation; record != nil {
		if m := p.machine(record.Machine); m != nil && m.Deletion != nil {
			p.remediation = &RemediationNote{m.Name, controlplanev1.MachineRemediationMachineDeletingReason, "Machine is being deleted"}
		}
	}
}

// replaces is the record of a remediation whose replacement is still to be made.
func (p *planner) replaces() *RemediationRecord {
	record := p.ControlPlane.Remediation
	if record == nil || p.machine(record.Machine) != nil || p.replaced(record) {
		return nil
	}

	return record
}

// replaced is true when the Machine that a remediation has made is there.
func (p *planner) replaced(record *RemediationRecord) bool {
	return slices.ContainsFunc(p.ours, func(m *Machine) bool {
		return m.RemediationFor != nil && m.RemediationFor.Machine == record.Machine
	})
}

func (p *planner) forgetRemediation() *Decision {
	record := p.ControlPlane.Remediation
	if record == nil {
		return nil
	}

	m := p.machine(record.Machine)

	switch {
	case m != nil && m.Deletion == nil && !m.unhealthy():
		return do(ClearRemediation{}, controlplanev1.PlanRecordingReason, "Nobody wants Machine %s replaced any more", record.Machine)
	case m == nil && p.replaced(record):
		return do(ClearRemediation{}, controlplanev1.PlanRecordingReason, "Machine %s has been replaced", record.Machine)
	case m == nil && len(p.live) >= p.replicas():
		return do(ClearRemediation{}, controlplanev1.PlanRecordingReason, "Machine %s is gone and needs no replacement", record.Machine)
	default:
		return nil
	}
}

// unhealthy is true when a MachineHealthCheck wants the machine replaced by its owner.
func (m *Machine) unhealthy() bool {
	return meta.IsStatusConditionFalse(m.Conditions, clusterv1.MachineHealthCheckSucceededCondition) &&
		meta.IsStatusConditionFalse(m.Conditions, clusterv1.MachineOwnerRemediatedCondition)
}

// unhealthy are the unhealthy machines, the one whose replacement helps most first: that of which it is noted down already, the one that a
// user asks for, then one that never got a node, one whose member is ill, one whose components are.
func (p *planner) unhealthy() []*Machine {
	all := filter(p.live, (*Machine).unhealthy)

	rank := func(m *Machine) []int {
		record := p.ControlPlane.Remediation
		out := []int{truth(record == nil || record.Machine != m.Name), truth(!m.RemediateRequested), truth(m.NodeName != "")}
		out = append(out, truth(m.says(controlplanev1.MachineEtcdMemberHealthyCondition)))

		for _, name := range required {
			out = append(out, truth(m.says(name)))
		}

		return out
	}

	slices.SortFunc(all, func(a, b *Machine) int { return cmp.Or(slices.Compare(rank(a), rank(b)), oldest(a, b)) })

	return all
}

func truth(b bool) int {
	if b {
		return 1
	}

	return 0
}

// nextRecord is the record of a machine's remediation, or why there may be none now.
func (p *planner) nextRecord(m *Machine) (RemediationRecord, *no) {
	spec := p.ControlPlane.Spec.Remediation
	next := RemediationRecord{Machine: m.Name, Timestamp: p.Now.UTC().Truncate(time.Second)}

	healthy, retry := minHealthyPeriod, time.Duration(0)
	if spec.MinHealthyPeriodSeconds != nil {
		healthy = time.Duration(*spec.MinHealthyPeriodSeconds) * time.Second
	}

	if spec.RetryPeriodSeconds != nil {
		retry = time.Duration(*spec.RetryPeriodSeconds) * time.Second
	}

	// With this record the one of before is forgotten, and its retries are not.
	if pending := p.replaces(); pending != nil {
		next.RetryCount = pending.RetryCount
	}

	last := m.RemediationFor
	if last == nil || !last.Timestamp.Add(healthy).After(p.Now) {
		return next, nil
	}

	if left := last.Timestamp.Add(retry).Sub(p.Now); left > 0 {
		n := later("it replaces Machine %s, which was unhealthy too, and the next attempt is made %s after that (spec.remediation.retryPeriodSeconds)", last.Machine, retry)
		n.after = left

		return next, n
	}

	if spec.MaxRetry != nil && last.RetryCount >= int(*spec.MaxRetry) {
		return next, never("it has been replaced in vain %d times in a row (spec.remediation.maxRetry)", last.RetryCount)
	}

	next.RetryCount = max(next.RetryCount, last.RetryCount+1)

	return next, nil
}

// deferral is the no of another list's gate.
func deferral(d *Decision) *no {
	if d == nil {
		return nil
	}

	return later("%s", d.Message)
}

func retryLimits(p *planner, m *Machine) *no {
	// Once the record is written the attempt counts as made.
	if record := p.ControlPlane.Remediation; record != nil && record.Machine == m.Name {
		return nil
	}

	_, n := p.nextRecord(m)

	return n
}

func nobodyElseLeaves(p *planner, m *Machine) *no {
	for _, member := range p.etcd.MembersOf(m.Name) {
		if member.Healthy() {
			return deferral(nobodyLeaves(p, m))
		}
	}

	for _, other := range p.leaving {
		if !other.Hook || !other.Deletion.AtHook {
			return deferral(nobodyLeaves(p, m))
		}

		switch p.leaveOne(other).Reason {
		case controlplanev1.PlanEtcdQuorumAtRiskReason, controlplanev1.PlanEtcdChangingReason, controlplanev1.PlanEtcdLastMemberReason:
		default:
			return deferral(nobodyLeaves(p, m))
		}
	}

	return nil
}

func replacementFirst(p *planner, m *Machine) *no {
	record := p.replaces()
	if record == nil || p.obstructs(m) {
		return nil
	}

	return later("the machine in place of %s is still to be made", record.Machine)
}

// obstructs is true for a machine whose etcd members are all dead: as long as they count, etcd takes in no other (etcd.Cluster.MayAdd).
func (p *planner) obstructs(m *Machine) bool {
	members := p.etcd.MembersOf(m.Name)

	return len(members) > 0 && !slices.ContainsFunc(members, etcd.MemberState.Healthy)
}

func notTheFirst(p *planner, m *Machine) *no {
	record, _ := p.record()

	switch {
	case p.initialized:
		return nil
	case m.hasData():
		return never("it has etcd data, and the control plane is not initialized. Mend it, or delete the Machine if its data is worth nothing")
	case record != nil && record.Machine == m.Name:
		return never("etcd was to be bootstrapped on it, and nobody knows whether that was done. Mend it, or delete the Machine if its data is worth nothing")
	default:
		return nil
	}
}

func notTheOnly(p *planner, _ *Machine) *no {
	if p.initialized && len(p.ours) <= 1 {
		return never("it is the only machine of the control plane")
	}

	return nil
}

func nobodyComesUp(p *planner, m *Machine) *no {
	if !p.initialized {
		return nil
	}

	for _, other := range p.live {
		waits := len(p.etcd.MembersOf(other.Name)) == 0 && p.obstructs(m)
		if other != m && other.NodeName == "" && !other.unhealthy() && !waits {
			return later("Machine %s is still coming up", other.Name)
		}
	}

	return nil
}

func anotherServes(p *planner, m *Machine) *no {
	if !p.initialized || slices.ContainsFunc(p.ours, func(other *Machine) bool { return other != m && other.componentsWell() }) {
		return nil
	}

	return never("no other machine has API server, controller manager and scheduler healthy")
}

func quorumStays(p *planner, m *Machine) *no {
	if !p.initialized {
		return nil
	}

	d := memberMayLeave(p, m)

	switch {
	case d == nil:
		return nil
	case d.Reason == controlplanev1.PlanEtcdQuorumAtRiskReason, d.Reason == controlplanev1.PlanEtcdLastMemberReason:
		return never("%s", d.Message)
	default:
		return later("%s", d.Message)
	}
}
