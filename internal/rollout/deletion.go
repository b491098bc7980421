// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/prose"
)

// deletion of the whole control plane. Etcd is of no interest any more. Workers go first, since their drain needs the API server; without
// a Cluster object nobody drains them, and nobody waits.
func (p *planner) deletion() *Decision {
	if !p.ControlPlane.Deleting {
		return nil
	}

	// Machines that are to stay must not be deleted because they still have us for an owner. When that is over the garbage collector has taken it off,
	// and a cache that has not seen so yet deletes nothing: what is deleted must be what was looked at.
	if p.ControlPlane.Orphaning {
		return wait(controlplanev1.PlanDeletingReason,
			"TalosControlPlane %s is deleted and its Machines stay (--cascade=orphan): it goes when the garbage collector of the management cluster has let them go", p.ControlPlane.Name)
	}

	// One that has no Machine, or no longer, serves nobody.
	if p.Cluster != nil && len(p.Workers) > 0 && len(p.ours) > 0 {
		// A Machine that a user has deleted before leaves etcd as ever: the workers still need it.
		if d := p.leave(); d != nil && acts(d.Action) {
			return d
		}

		return wait(controlplanev1.PlanWaitingForWorkersReason, "The control plane serves until the workers are gone: %s", prose.Names(p.Workers))
	}

	hooked := p.hooked()

	var undeleted []string

	for _, m := range p.ours {
		if m.Deletion == nil {
			undeleted = append(undeleted, m.Name)
		}
	}

	switch {
	case len(hooked) > 0:
		return do(ReleaseHooks{hooked}, controlplanev1.PlanDeletingReason, "The control plane is being deleted: %s need not leave etcd", prose.Names(hooked))
	case len(undeleted) > 0:
		return do(DeleteMachines{undeleted}, controlplanev1.PlanDeletingReason, "The control plane is being deleted, and %s with it", prose.Names(undeleted))
	case len(p.ours) > 0 && p.Cluster == nil:
		return wait(controlplanev1.PlanMachineDeletingReason,
			"Machines are being deleted: %s. Cluster API deletes no Machine whose Cluster does not exist: create the Cluster again, with the name that it had, until they are gone",
			prose.Names(namesOf(p.ours)))
	case len(p.ours) > 0:
		return wait(controlplanev1.PlanMachineDeletingReason, "Machines are being deleted: %s", prose.Names(namesOf(p.ours)))
	default:
		return do(ReleaseControlPlane{}, controlplanev1.PlanDeletingReason, "No Machine of the control plane is left")
	}
}

// hooked are the Machines that have our hook. What has lost its owner, as with --cascade=orphan, is nobody else's to let go.
func (p *planner) hooked() []string {
	var out []string

	for i := range p.Machines {
		if m := &p.Machines[i]; m.Hook && (m.Ours || m.Orphan) {
			out = append(out, m.Name)
		}
	}

	return out
}

// beforeInfrastructure is true as long as Cluster API has not begun to delete what the Machine runs on.
func (d *Deletion) beforeInfrastructure() bool {
	switch d.Stage {
	case "", clusterv1.MachineNotDeletingReason, clusterv1.MachineDeletingReason, clusterv1.MachineDeletingInternalErrorReason,
		clusterv1.MachineDeletingWaitingForPreDrainHookReason, clusterv1.MachineDeletingDrainingNodeReason,
		clusterv1.MachineDeletingWaitingForVolumeDetachReason, clusterv1.MachineDeletingWaitingForPreTerminateHookReason:
		return true
	default:
		return false
	}
}
