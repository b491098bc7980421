// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/prose"
	"github.com/maesh-dev/ichor/internal/rollout"
)

// setConditions sets the conditions of the control plane. They go by the conditions of the Machines, so that a node which is out of reach
// for a short time changes none.
func (r *Reconciler) setConditions(ctx context.Context, seen *observation, decision rollout.Decision) {
	tcp, machines := seen.controlPlane, seen.own()
	members := rollout.EtcdOf(seen.snapshot)

	for _, condition := range []metav1.Condition{
		initializedCondition(seen, decision),
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
		say(tcp, condition, maxMessage)
	}

	say(tcp, availableCondition(seen, members), maxMessage)
}

// How long a message may be, in bytes. The API server refuses a status in which one has more than 32768 characters, and with it all that the
// status says. Cluster API puts those of a Machine's readiness gates together in one, and those of the Machines.
const (
	maxMessage        = 8192
	maxMachineMessage = 2048
)

// say sets a condition, with a message that is not too long.
func say(of conditions.Setter, condition metav1.Condition, most int) {
	condition.Message = prose.ShortenTo(condition.Message, most)
	conditions.Set(of, condition)
}

func initializedCondition(seen *observation, decision rollout.Decision) metav1.Condition {
	if seen.initialized() {
		return yes(controlplanev1.InitializedCondition, controlplanev1.InitializedReason, "")
	}

	if decision.Reason == controlplanev1.PlanServedElsewhereReason {
		return no(controlplanev1.InitializedCondition, controlplanev1.ServedElsewhereReason, decision.Message)
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
	case !seen.kubeconfigLooked && slices.Contains(ofKubeconfig, conditions.GetReason(seen.controlPlane, condition)):
		return *conditions.Get(seen.controlPlane, condition)
	case seen.kubeconfigFault != nil:
		return no(condition, controlplanev1.KubeconfigNotAvailableReason, sentence(prose.Shorten(seen.kubeconfigFault.Error())))
	default:
		return yes(condition, controlplanev1.CertificatesAvailableReason, seen.kubeconfigNote)
	}
}

// ofKubeconfig are the reasons of CertificatesAvailable by which it tells of the kubeconfig, too.
var ofKubeconfig = []string{controlplanev1.KubeconfigNotAvailableReason, controlplanev1.CertificatesAvailableReason}

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
