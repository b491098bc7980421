// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/etcd"
	"github.com/maesh-dev/ichor/internal/prose"
)

// BootstrapWait is how long a node that was asked to bootstrap etcd is left alone. It answers at once and has data only after it has pulled an
// image and started etcd; being asked again in between would stop what it has begun.
const BootstrapWait = 5 * time.Minute

// bootstrap sees to it that etcd is bootstrapped once, however often the controller is killed and whatever of status is lost. The record
// is written before the call; a call is made only on the machine of the record, and only while every machine that ever had an address
// says that it has no etcd data. Who does not answer is not empty.
//
// What it waits for is held: a machine that never comes up may be deleted, or replaced when it is unhealthy.
func (p *planner) bootstrap() *Decision {
	bad := p.badRecord()

	switch {
	case bad != nil && p.initialized: // nothing is bootstrapped any more, whatever the record says
		p.hold(bad)

		return nil
	case bad != nil:
		return bad
	case p.initialized:
		return p.recordDone()
	case len(p.live) == 0:
		return nil // the first machine is made by scale
	}

	d := secretsThere(p, nil)
	if d == nil {
		d = p.bootstrapOnce()
	}

	if d != nil && !acts(d.Action) {
		p.hold(d)

		return nil
	}

	return d
}

func (p *planner) bootstrapOnce() *Decision {
	record, complete := p.record()

	if holder := p.holder(); holder != nil {
		if record == nil || !complete {
			return do(RecordBootstrap{BootstrapRecord{Machine: p.recordedOr(record, holder.Name)}}, controlplanev1.PlanRecordingReason,
				"Machine %s has etcd data: etcd is bootstrapped", holder.Name)
		}

		return wait(controlplanev1.PlanWaitingForAPIServerReason, "Etcd is bootstrapped on Machine %s; the Kubernetes API server has not answered yet", record.Machine)
	}

	if p.ControlPlane.ServedElsewhere {
		return p.served()
	}

	if record != nil {
		return p.callAgain(*record, complete)
	}

	candidate := p.candidate()
	if candidate == nil {
		return wait(controlplanev1.PlanWaitingForMachineReason, "Machine %s has not come up: %s", p.live[0].Name, p.live[0].notUp())
	}

	if d := cmp.Or(p.unproven(), p.unkept(), p.served()); d != nil {
		return d
	}

	return do(RecordBootstrap{BootstrapRecord{Machine: candidate.Name}}, controlplanev1.PlanRecordingReason,
		"Etcd is about to be bootstrapped on Machine %s", candidate.Name)
}

// callAgain calls Bootstrap on the machine of the record: for the first time, or because nobody knows whether the call was made.
func (p *planner) callAgain(record BootstrapRecord, complete bool) *Decision {
	m := p.machine(record.Machine)

	switch {
	case m == nil: // a user removes the record from one place after the other: it is not copied back
		return wait(controlplanev1.PlanBootstrapMachineGoneReason,
			"Etcd was to be bootstrapped on Machine %s, which does not exist any more. If nothing of it is left, remove the annotation %s from TalosControlPlane %s and from the Secret of the cluster's bundle; etcd is then bootstrapped on another machine",
			record.Machine, controlplanev1.BootstrapAnnotation, p.ControlPlane.Name)
	case !complete:
		return do(RecordBootstrap{record}, controlplanev1.PlanRecordingReason, "Etcd is about to be bootstrapped on Machine %s", record.Machine)
	case m.Deletion != nil:
		return nil // leave lets it go, and then the user is asked
	case !m.BootstrapCalled.IsZero() && p.Now.Before(m.BootstrapCalled.Add(BootstrapWait)):
		return wait(controlplanev1.PlanBootstrappingReason,
			"Machine %s was asked to bootstrap etcd and is starting it; if it still has no etcd data after %s it is asked again", m.Name, minutes(BootstrapWait))
	}

	if d := cmp.Or(p.unproven(), p.unkept()); d != nil {
		return d
	}

	if !m.empty() {
		return wait(controlplanev1.PlanWaitingForMachineReason, "Machine %s, on which etcd is to be bootstrapped, has not come up: %s", m.Name, m.notUp())
	}

	if d := p.served(); d != nil {
		return d
	}

	if !m.BootstrapCalled.IsZero() {
		return do(Bootstrap{m.Name}, controlplanev1.PlanBootstrappingReason,
			"Machine %s was asked to bootstrap etcd more than %s ago and says that it has no etcd data, as every other that has had an address: it is asked again", m.Name, minutes(BootstrapWait))
	}

	return do(Bootstrap{m.Name}, controlplanev1.PlanBootstrappingReason, "Every machine that has had an address says that it has no etcd data: etcd is bootstrapped on Machine %s", m.Name)
}

// badRecord stops everything when the records cannot be trusted.
func (p *planner) badRecord() *Decision {
	own, bundle := p.ControlPlane.Bootstrap, p.ControlPlane.BundleBootstrap

	switch {
	case own.Problem != "":
		return wait(controlplanev1.PlanBootstrapRecordInvalidReason, "The annotation %s on TalosControlPlane %s cannot be used: %s. Correct it, or remove it if etcd was never bootstrapped",
			controlplanev1.BootstrapAnnotation, p.ControlPlane.Name, own.Problem)
	case bundle.Problem != "":
		return wait(controlplanev1.PlanBootstrapRecordInvalidReason, "The annotation %s on the Secret of the cluster's bundle cannot be used: %s. Correct it, or remove it if etcd was never bootstrapped",
			controlplanev1.BootstrapAnnotation, bundle.Problem)
	case own.Set && bundle.Set && own.Record.Machine != bundle.Record.Machine:
		return wait(controlplanev1.PlanBootstrapRecordInvalidReason, "The annotation %s names Machine %s on TalosControlPlane %s and Machine %s on the Secret of the cluster's bundle. Correct the one that is wrong",
			controlplanev1.BootstrapAnnotation, own.Record.Machine, p.ControlPlane.Name, bundle.Record.Machine)
	default:
		return nil
	}
}

// record is the record, and whether both places have it.
func (p *planner) record() (*BootstrapRecord, bool) {
	own, bundle := p.ControlPlane.Bootstrap, p.ControlPlane.BundleBootstrap

	switch {
	case own.Set && bundle.Set:
		return &BootstrapRecord{Machine: own.Record.Machine, Done: own.Record.Done && bundle.Record.Done}, own.Record == bundle.Record
	case own.Set:
		return &own.Record, false
	case bundle.Set:
		return &bundle.Record, false
	default:
		return nil, false
	}
}

// recordDone completes the record once the API server has answered: it outlasts status. Without the Secret of the bundle half of it has no
// place; nothing is bootstrapped then either.
func (p *planner) recordDone() *Decision {
	record, complete := p.record()
	if (record != nil && record.Done && complete) || p.ControlPlane.SecretsProblem != "" {
		return nil
	}

	var machine string

	switch holder := p.holder(); {
	case record != nil:
		machine = record.Machine
	case holder != nil:
		machine = holder.Name
	case len(p.ours) > 0:
		machine = p.ours[0].Name
	default:
		return nil
	}

	return do(RecordBootstrap{BootstrapRecord{Machine: machine, Done: true}}, controlplanev1.PlanRecordingReason,
		"The control plane is initialized: etcd is never bootstrapped again")
}

func (p *planner) recordedOr(record *BootstrapRecord, machine string) string {
	if record != nil {
		return record.Machine
	}

	return machine
}

// holder is a machine of whoever's that has etcd data for certain.
func (p *planner) holder() *Machine {
	for i := range p.Machines {
		if m := &p.Machines[i]; m.hasData() {
			return m
		}
	}

	return nil
}

// candidate is the oldest machine that can be bootstrapped.
func (p *planner) candidate() *Machine {
	for _, m := range p.live {
		if m.empty() {
			return m
		}
	}

	return nil
}

// unproven names the machines that may have etcd data.
func (p *planner) unproven() *Decision {
	var doubtful []string

	for i := range p.Machines {
		if m := &p.Machines[i]; (m.HadAddress || len(m.RecordedMembers) > 0) && !m.empty() {
			doubtful = append(doubtful, fmt.Sprintf("%s (%s)", m.Name, m.notUp()))
		}
	}

	if len(doubtful) == 0 {
		return nil
	}

	return wait(controlplanev1.PlanBootstrapUnprovenReason,
		"Etcd is not bootstrapped as long as a machine that has had an address does not say whether it has etcd data. Mend it, or delete its Machine if there is nothing of it: %s",
		prose.Named(doubtful))
}

// unkept names the machines that are going and that nothing of ours keeps: with nothing in etcd yet they were let go. As long as such a node
// runs it joins the etcd that is bootstrapped on another, and takes its vote with it when it goes.
func (p *planner) unkept() *Decision {
	var going []string

	for i := range p.Machines {
		if m := &p.Machines[i]; m.Deletion != nil && !m.Hook {
			going = append(going, m.Name)
		}
	}

	if len(going) == 0 {
		return nil
	}

	return wait(controlplanev1.PlanMachineDeletingReason,
		"Etcd is not bootstrapped as long as a Machine that is being deleted is not gone: its node would join, and its vote would be lost with it. Its condition Deleting says what it waits for: %s", prose.Names(going))
}

// served keeps etcd from being bootstrapped, and the first machine from being made, beside a control plane of this cluster whose Machines are
// not here. That it has answered once is noted down: when it does not the next time it may be out of reach for a moment.
func (p *planner) served() *Decision {
	switch {
	case p.ControlPlane.ServedElsewhere:
		return wait(controlplanev1.PlanServedElsewhereReason,
			"A Kubernetes API server of this cluster has answered at its endpoint, and no Machine here runs it: etcd is not bootstrapped beside its own. Bring the Machines of that control plane. If it is gone for good, remove the annotation %s from TalosControlPlane %s",
			controlplanev1.ServedElsewhereAnnotation, p.ControlPlane.Name)
	case p.ControlPlane.Serving:
		return do(RecordServing{}, controlplanev1.PlanServedElsewhereReason,
			"A Kubernetes API server of this cluster answers at its endpoint, and no Machine here runs it: etcd is not bootstrapped beside its own")
	default:
		return nil
	}
}

// Begins says whether the decision is to make the first machine of a cluster or to bootstrap its etcd. Before that is done the observer asks
// whether an API server of the cluster answers at the endpoint already. The answer of none says nothing.
func Begins(s Snapshot) bool {
	p := newPlanner(&s)
	if p.initialized {
		return false
	}

	action := p.plan().Action
	if record, is := action.(RecordBootstrap); is {
		return !record.Record.Done && p.holder() == nil
	}

	_, creates := action.(CreateMachine)
	_, bootstraps := action.(Bootstrap)

	return creates || bootstraps
}

// empty is the node's own word that it has no etcd data.
func (m *Machine) empty() bool {
	return m.Etcd.Answered && m.Etcd.Data == etcd.DataAbsent && m.Etcd.Self == 0
}

// hasData is the node's own word that it has.
func (m *Machine) hasData() bool {
	return m.Etcd.Answered && (m.Etcd.Data == etcd.DataPresent || m.Etcd.Self != 0)
}

// notUp says what keeps a machine from being bootstrapped. One without an address cannot have been asked: what Cluster API says of its config and
// of its infrastructure comes first, since a machine that has no config yet is not made, and has no address for that reason.
func (m *Machine) notUp() string {
	unmade := m.unmade()

	switch {
	case len(m.Addresses) == 0 && unmade != "":
		return unmade
	case m.Etcd.Problem != "":
		return m.Etcd.Problem
	case len(m.Addresses) == 0:
		return "it has no address yet (its infrastructure machine reports none in status.addresses)"
	case !m.Etcd.Answered:
		return "its Talos API does not answer yet"
	default:
		return "it does not say yet whether it has etcd data"
	}
}

// unmade says why a machine has not been made; empty when Cluster API does not say that it is not.
func (m *Machine) unmade() string {
	for _, each := range []struct{ condition, what string }{
		{clusterv1.MachineBootstrapConfigReadyCondition, "its machine config is not there yet"},
		{clusterv1.MachineInfrastructureReadyCondition, "its infrastructure machine is not ready"},
	} {
		if c := meta.FindStatusCondition(m.Conditions, each.condition); c != nil && c.Status == metav1.ConditionFalse {
			return joined(each.what, prose.Shorten(strings.Join(strings.Fields(c.Message), " ")))
		}
	}

	return ""
}
