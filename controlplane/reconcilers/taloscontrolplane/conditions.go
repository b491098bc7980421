// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/etcd"
	"github.com/maesh-dev/ichor/internal/prose"
	"github.com/maesh-dev/ichor/internal/rollout"
)

// setConditions sets the conditions of the control plane. They go by the conditions of the Machines, so that a node which is out of reach
// for a short time changes none.
func (r *Reconciler) setConditions(ctx context.Context, seen *observation, decision rollout.Decision) {
	tcp, machines := seen.controlPlane, seen.own()
	members := rollout.EtcdOf(seen.snapshot)

	for _, condition := range []metav1.Condition{
		initializedCondition(seen),
		certificatesCondition(seen),
		etcdCondition(seen, members),
		componentsCondition(machines),
		rollingOutCondition(machines),
		scalingUpCondition(seen, decision),
		scalingDownCondition(seen, decision),
		remediatingCondition(machines, decision),
		deletingCondition(tcp, decision),
		aggregate(ctx, machines, clusterv1.MachineReadyCondition, metav1.Condition{Type: controlplanev1.MachinesReadyCondition},
			controlplanev1.MachinesNotReadyReason, controlplanev1.MachinesReadyUnknownReason, controlplanev1.MachinesReadyReason),
		aggregate(ctx, reported(machines), clusterv1.MachineUpToDateCondition, metav1.Condition{Type: controlplanev1.MachinesUpToDateCondition},
			controlplanev1.MachinesNotUpToDateReason, controlplanev1.MachinesUpToDateUnknownReason, controlplanev1.MachinesUpToDateReason),
	} {
		conditions.Set(tcp, condition)
	}

	conditions.Set(tcp, availableCondition(seen, members))
}

func initializedCondition(seen *observation) metav1.Condition {
	if seen.initialized() {
		return yes(controlplanev1.InitializedCondition, controlplanev1.InitializedReason, "")
	}

	return no(controlplanev1.InitializedCondition, controlplanev1.NotInitializedReason, "The Kubernetes API server has not answered yet")
}

func certificatesCondition(seen *observation) metav1.Condition {
	condition := controlplanev1.CertificatesAvailableCondition

	switch {
	case seen.secretsFault != nil:
		return no(condition, seen.secretsFault.Reason, sentence(prose.Shorten(seen.secretsFault.Error())))
	case seen.bundle == nil:
		return no(condition, controlplanev1.CertificatesNotCreatedReason, "The cluster's secrets are made with its first machine config")
	case !seen.kubeconfigLooked && conditions.GetReason(seen.controlPlane, condition) == controlplanev1.KubeconfigNotAvailableReason:
		return *conditions.Get(seen.controlPlane, condition)
	case seen.kubeconfigFault != nil:
		return no(condition, controlplanev1.KubeconfigNotAvailableReason, sentence(prose.Shorten(seen.kubeconfigFault.Error())))
	default:
		return yes(condition, controlplanev1.CertificatesAvailableReason, "")
	}
}

// etcdCondition goes by the members, and by the conditions of their Machines.
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

	var problems []string

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
		case !member.Healthy() && !seen.says(member.Host, controlplanev1.MachineEtcdMemberHealthyCondition):
			problems, told[member.ID] = append(problems, fmt.Sprintf("member %s %s", member, member.Problem)), true
		}
	}

	for _, alarm := range members.Alarms {
		if !told[alarm.Member] {
			problems = append(problems, fmt.Sprintf("%s has the alarm %s", alarm.Of(), alarm))
		}
	}

	if len(problems) > 0 {
		return no(condition, controlplanev1.EtcdClusterNotHealthyReason, sentence(prose.Named(problems)))
	}

	return yes(condition, controlplanev1.EtcdClusterHealthyReason, "")
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}

	return text
}

// says is true when a condition of a Machine is true.
func (o *observation) says(name, condition string) bool {
	m, err := o.machine(name)

	return err == nil && conditions.IsTrue(m.object, condition)
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

func rollingOutCondition(machines []*clusterv1.Machine) metav1.Condition {
	count := 0

	var lines []string

	for _, machine := range machines {
		c := conditions.Get(machine, controlplanev1.MachineUpToDateCondition)
		if c == nil || c.Status != metav1.ConditionFalse {
			continue
		}

		count++

		if c.Message != "" {
			lines = append(lines, strings.Split(c.Message, "\n")...)
		}
	}

	if count == 0 {
		return no(controlplanev1.RollingOutCondition, controlplanev1.NotRollingOutReason, "")
	}

	// Cluster API wants the version first.
	slices.SortFunc(lines, func(a, b string) int {
		if av, bv := strings.HasPrefix(a, "* Version"), strings.HasPrefix(b, "* Version"); av != bv {
			if av {
				return -1
			}

			return 1
		}

		return strings.Compare(a, b)
	})

	message := strings.Join(append([]string{fmt.Sprintf("Rolling out %d not up-to-date replicas", count)}, slices.Compact(lines)...), "\n")

	return yes(controlplanev1.RollingOutCondition, controlplanev1.RollingOutReason, message)
}

// wanted is how many machines there should be.
func (o *observation) wanted() int {
	if o.snapshot.ControlPlane.Deleting {
		return 0
	}

	if n := o.controlPlane.Spec.Replicas; n != nil {
		return int(*n)
	}

	return 1
}

func scalingUpCondition(seen *observation, decision rollout.Decision) metav1.Condition {
	have, want := len(seen.own()), seen.wanted()

	if have >= want {
		message := ""
		if seen.missing != "" {
			message = "Scaling up would be blocked: " + seen.missing
		}

		return no(controlplanev1.ScalingUpCondition, controlplanev1.NotScalingUpReason, message)
	}

	return yes(controlplanev1.ScalingUpCondition, controlplanev1.ScalingUpReason, scaling("up", have, want, decision, seen.missing))
}

func scalingDownCondition(seen *observation, decision rollout.Decision) metav1.Condition {
	have, want := len(seen.own()), seen.wanted()
	if have <= want {
		return no(controlplanev1.ScalingDownCondition, controlplanev1.NotScalingDownReason, "")
	}

	return yes(controlplanev1.ScalingDownCondition, controlplanev1.ScalingDownReason, scaling("down", have, want, decision, ""))
}

// scaling is the message of a condition: how far it is, and the plan's sentence when it waits.
func scaling(direction string, have, want int, decision rollout.Decision, missing string) string {
	message := fmt.Sprintf("Scaling %s from %d to %d replicas", direction, have, want)

	var blocks []string

	if missing != "" {
		blocks = append(blocks, "* "+missing)
	}

	if _, waits := decision.Action.(rollout.Wait); waits {
		blocks = append(blocks, "* "+decision.Message)
	}

	if len(blocks) == 0 {
		return message
	}

	return shorten(message+" is blocked because:\n"+strings.Join(blocks, "\n"), maxPlanMessage)
}

func remediatingCondition(machines []*clusterv1.Machine, decision rollout.Decision) metav1.Condition {
	var waiting, unhealthy []string

	for _, machine := range machines {
		if !conditions.IsFalse(machine, clusterv1.MachineHealthCheckSucceededCondition) {
			continue
		}

		if c := conditions.Get(machine, controlplanev1.MachineOwnerRemediatedCondition); c != nil && c.Status == metav1.ConditionFalse {
			message := c.Message
			if note := decision.Remediation; note != nil && note.Machine == machine.Name {
				message = note.Message
			}

			waiting = append(waiting, joined("Machine "+machine.Name, message))
		} else {
			unhealthy = append(unhealthy, "Machine "+machine.Name)
		}
	}

	switch {
	case len(waiting) > 0:
		return yes(controlplanev1.RemediatingCondition, controlplanev1.RemediatingReason, prose.Named(waiting))
	case len(unhealthy) > 0:
		return no(controlplanev1.RemediatingCondition, controlplanev1.NotRemediatingReason,
			prose.Names(unhealthy)+" not healthy, and not to be remediated by the control plane")
	default:
		return no(controlplanev1.RemediatingCondition, controlplanev1.NotRemediatingReason, "")
	}
}

func deletingCondition(tcp *controlplanev1.TalosControlPlane, decision rollout.Decision) metav1.Condition {
	if tcp.DeletionTimestamp.IsZero() {
		return no(controlplanev1.DeletingCondition, controlplanev1.NotDeletingReason, "")
	}

	return yes(controlplanev1.DeletingCondition, controlplanev1.DeletingReason, decision.Message)
}

// reported are the Machines that say whether they are up to date: one that has just been made does so a moment later.
func reported(machines []*clusterv1.Machine) []*clusterv1.Machine {
	return slices.DeleteFunc(slices.Clone(machines), func(m *clusterv1.Machine) bool {
		return !conditions.Has(m, controlplanev1.MachineUpToDateCondition)
	})
}

// aggregate makes one condition of those of the Machines, as Cluster API does.
func aggregate(ctx context.Context, machines []*clusterv1.Machine, of string, into metav1.Condition, bad, doubtful, good string) metav1.Condition {
	if len(machines) == 0 {
		return yes(into.Type, controlplanev1.NoReplicasReason, "")
	}

	made, err := conditions.NewAggregateCondition(machines, of, conditions.TargetConditionType(into.Type), conditions.CustomMergeStrategy{
		MergeStrategy: conditions.DefaultMergeStrategy(conditions.ComputeReasonFunc(conditions.GetDefaultComputeMergeReasonFunc(bad, doubtful, good))),
	})
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot aggregate a condition of the Machines", "condition", of)

		return unknown(into.Type, doubtful, "The conditions of the Machines cannot be aggregated")
	}

	return *made
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
