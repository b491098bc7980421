// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"reflect"
	"time"

	"github.com/maesh-dev/ichor/internal/etcd"
)

// Decision is what happens next.
type Decision struct {
	// Action to take. It is never nil: Rest and Wait are actions too.
	Action Action

	// Reason is one of the Plan...Reason constants of the TalosControlPlane's API.
	Reason string

	// Message says what happens and why, or what blocks it and what helps. It has no secrets and no relative times, is the same as long as
	// the facts are, and fits into status.plan.message.
	Message string

	// RetryAfter is when to look again although nothing that is watched has changed. It is never zero: nobody watches what nodes and etcd
	// do, and periods of grace, certificates and spec.rollout.after come due by themselves.
	RetryAfter time.Duration

	// Remediation says what is done about an unhealthy machine, for its OwnerRemediated condition. Nil when there is none.
	Remediation *RemediationNote
}

// RemediationNote is the status of an unhealthy machine's remediation.
type RemediationNote struct {
	Machine string

	// Reason is one of the MachineRemediation...Reason constants of the TalosControlPlane's API.
	Reason  string
	Message string
}

// Action is one thing that changes something outside, or Rest or Wait.
//
//sumtype:decl
type Action interface{ isAction() }

type (
	// Rest is when everything is as it should be.
	Rest struct{}

	// Wait is when something has to happen first.
	Wait struct{}

	// AdoptMachine makes the control plane the controller of a Machine that has none.
	AdoptMachine struct{ Machine string }

	// AddHook puts our pre-terminate hook on a Machine.
	AddHook struct{ Machine string }

	// RecordAddress notes down on a Machine that it has had an address, with HadAddressAnnotation.
	RecordAddress struct{ Machine string }

	// RecordMember notes down on a Machine which etcd member its node says it is.
	RecordMember struct {
		Machine string
		Member  etcd.MemberID
	}

	// RecordBootstrap writes the record of the bootstrap, to the secrets bundle's Secret first and then to the control plane, each only
	// if what is there is still what the Snapshot has. It is not asked for while the secrets cannot be used.
	RecordBootstrap struct{ Record BootstrapRecord }

	// RecordServing notes down on the control plane, with ServedElsewhereAnnotation, that an API server of the cluster answers at the
	// endpoint which no Machine runs.
	RecordServing struct{}

	// Bootstrap calls Talos' Bootstrap on a machine. An answer that there is data already is a success: the record is the machine's.
	Bootstrap struct{ Machine string }

	// CreateMachine makes infrastructure machine, TalosConfig and Machine, with our hook on it.
	CreateMachine struct {
		// FailureDomain to make it in; empty when the Cluster has none.
		FailureDomain string

		// Remediation is the record to put on the Machine when it replaces an unhealthy one.
		Remediation *RemediationRecord
	}

	// DeleteMachine deletes a Machine. Its hook keeps its infrastructure until its etcd member has left.
	DeleteMachine struct{ Machine string }

	// RecordRemediation notes down on the control plane which Machine is about to be replaced.
	RecordRemediation struct{ Record RemediationRecord }

	// ClearRemediation removes that note.
	ClearRemediation struct{}

	// ForwardLeadership has an etcd leader give up leadership. Talos chooses the heir; To is the one that would be best.
	ForwardLeadership struct {
		Machine  string
		From, To etcd.MemberID
	}

	// LeaveEtcd has a node's own member leave etcd.
	LeaveEtcd struct {
		Machine string
		Member  etcd.MemberID
	}

	// RemoveEtcdMember removes a member by its ID, through the node of another. Machine is empty for an orphan.
	RemoveEtcdMember struct {
		Machine string
		Member  etcd.MemberID

		// Through is the Machine whose node is asked to do it: that of a healthy voter.
		Through string
	}

	// ReleaseHook takes our pre-terminate hook off a Machine.
	ReleaseHook struct{ Machine string }

	// ReleaseHooks takes it off several, because the whole control plane goes.
	ReleaseHooks struct{ Machines []string }

	// DeleteMachines deletes several, because the whole control plane goes.
	DeleteMachines struct{ Machines []string }

	// ReleaseControlPlane removes the finalizer: no Machine is left.
	ReleaseControlPlane struct{}
)

func (Rest) isAction()                {}
func (Wait) isAction()                {}
func (AdoptMachine) isAction()        {}
func (AddHook) isAction()             {}
func (RecordAddress) isAction()       {}
func (RecordMember) isAction()        {}
func (RecordBootstrap) isAction()     {}
func (RecordServing) isAction()       {}
func (Bootstrap) isAction()           {}
func (CreateMachine) isAction()       {}
func (DeleteMachine) isAction()       {}
func (RecordRemediation) isAction()   {}
func (ClearRemediation) isAction()    {}
func (ForwardLeadership) isAction()   {}
func (LeaveEtcd) isAction()           {}
func (RemoveEtcdMember) isAction()    {}
func (ReleaseHook) isAction()         {}
func (ReleaseHooks) isAction()        {}
func (DeleteMachines) isAction()      {}
func (ReleaseControlPlane) isAction() {}

// Name is an action's name in status and events: that of its type, and None for Rest.
func Name(a Action) string {
	if _, rests := a.(Rest); rests {
		return "None"
	}

	return reflect.TypeOf(a).Name()
}

// acts is true for actions that change something.
func acts(a Action) bool {
	switch a.(type) {
	case Rest, Wait:
		return false
	case AdoptMachine, AddHook, RecordAddress, RecordMember, RecordBootstrap, RecordServing, Bootstrap, CreateMachine, DeleteMachine,
		RecordRemediation, ClearRemediation, ForwardLeadership, LeaveEtcd, RemoveEtcdMember, ReleaseHook, ReleaseHooks, DeleteMachines, ReleaseControlPlane:
		return true
	}

	return true
}
