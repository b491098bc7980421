// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/etcd"
	"github.com/maesh-dev/ichor/internal/prose"
)

// etcdCondition goes by the members, and by the conditions of their Machines. As with the other components, a member whose node has told
// nothing for longer than the grace period is not known to be ill: it may well vote, out of our reach.
//
//nolint:gocyclo // One case for each thing that may be said of a member.
func etcdCondition(seen *observation, members etcd.Cluster) metav1.Condition {
	condition := controlplanev1.EtcdClusterHealthyCondition

	if members.Agreement != etcd.Agreed {
		// As long as no Machine is taken for unhealthy, nodes are merely out of reach.
		if before := conditions.Get(seen.controlPlane, condition); before != nil && before.Status == metav1.ConditionTrue && seen.allSay(controlplanev1.MachineEtcdMemberHealthyCondition) {
			return *before
		}

		if members.Agreement == etcd.NoMembers || members.Agreement == etcd.NoQuorum {
			return unknown(condition, controlplanev1.EtcdClusterUnknownReason, sentence(orElse(members.Problem, "no node reports etcd members")))
		}

		return no(condition, controlplanev1.EtcdClusterNotHealthyReason, sentence(members.Problem))
	}

	var problems, silent []string

	// Alarms are among the problems of their member, of which they are told once.
	told := map[etcd.MemberID]bool{}

	for _, member := range members.Members {
		switch {
		case member.Evidence < etcd.ByNameAndAddress:
			problems = append(problems, fmt.Sprintf("member %s is on no Machine", member))
		case member.Name == "":
			problems, told[member.ID] = append(problems, fmt.Sprintf("member %s %s", member, member.Problem)), true
		case member.Learner:
			problems = append(problems, fmt.Sprintf("member %s is a learner, and has no vote before it has caught up", member))
		case member.Healthy():
		case seen.etcdOf(member.Host) == metav1.ConditionTrue: // out of reach, for a short time
		case seen.etcdOf(member.Host) == metav1.ConditionUnknown && !alarmed(members, member.ID):
			silent = append(silent, fmt.Sprintf("member %s %s", member, member.Problem))
		default:
			problems, told[member.ID] = append(problems, fmt.Sprintf("member %s %s", member, member.Problem)), true
		}
	}

	for _, alarm := range members.Alarms {
		if !told[alarm.Member] {
			problems = append(problems, fmt.Sprintf("%s has the alarm %s", alarm.Of(), alarm))
		}
	}

	switch {
	case len(problems) > 0:
		return no(condition, controlplanev1.EtcdClusterNotHealthyReason, sentence(prose.Named(slices.Concat(problems, silent))))
	case len(silent) > 0:
		return unknown(condition, controlplanev1.EtcdClusterHealthUnknownReason, sentence(prose.Named(silent)))
	default:
		return yes(condition, controlplanev1.EtcdClusterHealthyReason, "")
	}
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}

	return text
}

// etcdOf is what the condition of a Machine says of its etcd member; empty when it has none.
func (o *observation) etcdOf(name string) metav1.ConditionStatus {
	m, err := o.machine(name)
	if err != nil {
		return ""
	}

	if c := conditions.Get(m.object, controlplanev1.MachineEtcdMemberHealthyCondition); c != nil {
		return c.Status
	}

	return ""
}

func alarmed(members etcd.Cluster, id etcd.MemberID) bool {
	return slices.ContainsFunc(members.Alarms, func(alarm etcd.Alarm) bool { return alarm.Member == id })
}

// allSay is true when there are Machines and a condition is true of each.
func (o *observation) allSay(condition string) bool {
	machines := o.own()

	return len(machines) > 0 && !slices.ContainsFunc(machines, func(m *clusterv1.Machine) bool { return !conditions.IsTrue(m, condition) })
}

// componentsCondition leaves out machines that have not been provisioned: there is nothing on them yet.
func componentsCondition(machines []*clusterv1.Machine) metav1.Condition {
	condition := controlplanev1.ControlPlaneComponentsHealthyCondition

	var unhealthy, silent []string

	for _, machine := range machines {
		if machine.Spec.ProviderID == "" {
			continue
		}

		for name := range components {
			switch c := conditions.Get(machine, name); {
			case c == nil || c.Status == metav1.ConditionUnknown:
				silent = append(silent, "Machine "+machine.Name)
			case c.Status == metav1.ConditionFalse:
				unhealthy = append(unhealthy, joined("Machine "+machine.Name, c.Message))
			}
		}
	}

	switch {
	case len(unhealthy) > 0:
		return no(condition, controlplanev1.ControlPlaneComponentsNotHealthyReason, prose.Named(unhealthy))
	case len(silent) > 0:
		return unknown(condition, controlplanev1.ControlPlaneComponentsUnknownReason, "Not known of "+prose.Names(silent))
	case !slices.ContainsFunc(machines, func(m *clusterv1.Machine) bool { return m.Spec.ProviderID != "" }):
		return unknown(condition, controlplanev1.ControlPlaneComponentsUnknownReason, "No machine is provisioned")
	default:
		return yes(condition, controlplanev1.ControlPlaneComponentsHealthyReason, "")
	}
}

// availableCondition is true when etcd has a quorum and a machine has a whole Kubernetes control plane.
//
//nolint:gocyclo // One sum for each kind of answer.
func availableCondition(seen *observation, members etcd.Cluster) metav1.Condition {
	condition := controlplanev1.AvailableCondition

	switch {
	case seen.snapshot.ControlPlane.Deleting:
		return no(condition, controlplanev1.NotAvailableReason, "The control plane is being deleted")
	case !seen.initialized():
		return no(condition, controlplanev1.NotAvailableReason, "The Kubernetes API server has not answered yet")
	case seen.secretsFault != nil:
		return no(condition, controlplanev1.NotAvailableReason, "See the condition "+controlplanev1.CertificatesAvailableCondition)
	}

	serving, maybe := 0, 0
	healthy, doubtful := 0, 0

	for _, machine := range seen.own() {
		switch worst(machine, readinessGates[:3]) {
		case metav1.ConditionTrue:
			serving++
		case metav1.ConditionUnknown:
			maybe++
		case metav1.ConditionFalse:
		}

		switch worst(machine, readinessGates[3:4]) {
		case metav1.ConditionTrue:
			healthy++
		case metav1.ConditionUnknown:
			doubtful++
		case metav1.ConditionFalse:
		}
	}

	voters := members.Voters()
	if members.Agreement < etcd.Unsettled {
		voters = len(seen.own())
	}

	quorum := etcd.Quorum(max(voters, 1))

	var problems []string

	if healthy < quorum {
		problems = append(problems, fmt.Sprintf("%d of %d etcd members are healthy, and %d are needed", healthy, voters, quorum))
	}

	if serving == 0 {
		problems = append(problems, "no machine has API server, controller manager and scheduler healthy")
	}

	switch message := sentence(strings.Join(problems, "; ")); {
	case len(problems) == 0:
		return yes(condition, controlplanev1.AvailableReason, "")
	case healthy+doubtful >= quorum && serving+maybe > 0:
		return unknown(condition, controlplanev1.AvailableUnknownReason, message)
	default:
		return no(condition, controlplanev1.NotAvailableReason, message)
	}
}

// worst is the worst of some conditions of a Machine.
func worst(machine *clusterv1.Machine, gates []clusterv1.MachineReadinessGate) metav1.ConditionStatus {
	out := metav1.ConditionTrue

	for _, gate := range gates {
		switch c := conditions.Get(machine, gate.ConditionType); {
		case c == nil || c.Status == metav1.ConditionUnknown:
			if out == metav1.ConditionTrue {
				out = metav1.ConditionUnknown
			}
		case c.Status == metav1.ConditionFalse:
			out = metav1.ConditionFalse
		}
	}

	return out
}
