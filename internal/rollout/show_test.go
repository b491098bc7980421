// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/etcd"
	"github.com/maesh-dev/ichor/internal/rollout"
)

// decide observes and decides.
func (w *world) decide() rollout.Decision {
	s := w.snapshot()
	s.ControlPlane.ServedElsewhere = w.noted
	s.ControlPlane.Serving = rollout.Begins(s) && w.serves()

	return rollout.PlanNoting(s, w.seeOrphans)
}

// snapshot is what a controller sees. It is good until the next one.
func (w *world) snapshot() rollout.Snapshot {
	s := rollout.Snapshot{
		Now: w.now,
		ControlPlane: rollout.ControlPlane{
			Name: "demo", Deleting: w.deleting, Paused: w.paused, Spec: w.spec, Initialized: w.initialized,
			Bootstrap: w.own, BundleBootstrap: w.bundle, Remediation: w.remediation,
		},
		Workers: w.workers,
		Orphans: w.orphans,
	}

	if !w.clusterGone {
		s.Cluster = &w.cluster
	}

	w.shown, w.shownNodes = w.shown[:0], w.shownNodes[:0]

	for _, n := range w.nodes {
		if !n.foreign {
			w.shown = append(w.shown, w.show(n))
		}

		if n.joined {
			w.shownNodes = append(w.shownNodes, rollout.Node{Name: n.Name, Addresses: n.Addresses, Ready: n.up})
		}
	}

	s.Machines, s.Nodes = w.shown, rollout.Nodes{Known: w.quorum(0), Items: w.shownNodes}

	return s
}

func (w *world) show(n *node) rollout.Machine {
	if made := [4]string{n.version, w.spec.Version, n.template, w.template}; n.differ != made {
		n.differ, n.Differences = made, differences(made)
	}

	m := n.Machine
	m.Version = n.version
	m.HadAddress = m.AddressRecorded || len(m.RecordedMembers) > 0 || len(m.Addresses) > 0 || m.NodeName != ""

	m.Deletion = nil
	if n.stage > 0 {
		m.Deletion = &rollout.Deletion{Since: n.Deletion.Since, Stage: stages[n.stage], AtHook: n.stage == atHook}
	}

	m.Conditions, m.Steady = w.conditions(n), n.up && n.reachable

	switch {
	case len(n.Addresses) == 0:
		m.Etcd = etcd.View{}
	case n.earlier != nil && w.rng.IntN(2) == 0:
		m.Etcd = *n.earlier
	default:
		m.Etcd = w.view(n)
	}

	return m
}

func differences(made [4]string) []rollout.Difference {
	var out []rollout.Difference

	if have, want := made[0], made[1]; have != want {
		out = append(out, rollout.Difference{Field: "version", Message: "Version " + have + ", " + want + " required", InPlace: true})
	}

	if have, want := made[2], made[3]; have != want {
		out = append(out, rollout.Difference{Field: "infrastructureRef", Message: "Made from " + have + ", " + want + " required"})
	}

	return out
}

// view is what a node says of etcd. A member lists the others only with a quorum, and a learner never does.
func (w *world) view(n *node) etcd.View {
	switch {
	case !n.provisioned:
		return etcd.View{}
	case !n.up || !n.reachable:
		return etcd.View{Problem: "no answer from its Talos API"}
	}

	v, m := etcd.View{Answered: true, Data: etcd.DataAbsent}, w.memberBy(n.member)
	if n.data && (m == nil || m.started) {
		v.Data = etcd.DataPresent
	}

	if m == nil || !m.started {
		return v // etcd has the member before the node has data
	}

	v.Self, v.Applied = n.member, 100

	if !w.quorum(0) {
		v.Errors = []string{"etcdserver: no leader"}

		return v
	}

	v.Leader = w.leader

	if !m.learner {
		v.Members = w.listed()
	}

	return v
}

// listed is the member list. It is made anew after each change, so that views of different moments have their own.
func (w *world) listed() []etcd.Member {
	if w.list == nil {
		w.list = make([]etcd.Member, 0, len(w.members))

		for _, m := range w.members {
			name := ""
			if m.started {
				name = m.host
			}

			w.list = append(w.list, etcd.Member{ID: m.id, Name: name, Learner: m.learner, PeerURLs: m.peers})
		}
	}

	return w.list
}

// conditionsOf are those of a machine of which all say the same.
func conditionsOf(status metav1.ConditionStatus, message string) []metav1.Condition {
	var out []metav1.Condition

	for _, name := range []string{
		controlplanev1.MachineAPIServerPodHealthyCondition, controlplanev1.MachineControllerManagerPodHealthyCondition,
		controlplanev1.MachineSchedulerPodHealthyCondition, controlplanev1.MachineEtcdMemberHealthyCondition, controlplanev1.MachineTalosHealthyCondition,
	} {
		out = append(out, metav1.Condition{Type: name, Status: status, Reason: "Model", Message: message})
	}

	return out
}

var (
	well    = conditionsOf(metav1.ConditionTrue, "")
	unknown = conditionsOf(metav1.ConditionUnknown, "Node does not answer")

	// Etcd and the Kubernetes control plane are well, and something else of Talos is not.
	ailing = append(conditionsOf(metav1.ConditionTrue, "")[:4:4], metav1.Condition{
		Type: controlplanev1.MachineTalosHealthyCondition, Status: metav1.ConditionFalse, Reason: "Model", Message: "It waits for what it does not have",
	})

	// So it is, and a MachineHealthCheck has lost patience.
	given = append(slices.Clone(ailing), lost[5:]...)

	// A MachineHealthCheck has lost patience.
	lost = append(conditionsOf(metav1.ConditionUnknown, "Node does not answer"),
		metav1.Condition{Type: clusterv1.MachineHealthCheckSucceededCondition, Status: metav1.ConditionFalse},
		metav1.Condition{Type: clusterv1.MachineOwnerRemediatedCondition, Status: metav1.ConditionFalse})
)

func (w *world) conditions(n *node) []metav1.Condition {
	switch {
	case n.forgotten > 0:
		return nil
	case n.dead && n.ill > 12: // six minutes
		return lost
	case !n.up || !n.reachable || n.NodeName == "" || w.memberBy(n.member) == nil:
		return unknown
	case n.ails && n.suffers:
		return given
	case n.ails:
		return ailing
	default:
		return well
	}
}
