// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/etcd"
	"github.com/maesh-dev/ichor/internal/prose"
	"github.com/maesh-dev/ichor/internal/rollout"
	"github.com/maesh-dev/ichor/internal/talos"
)

// machineConditions are the conditions of Machines that are ours.
var machineConditions = []string{
	controlplanev1.MachineUpToDateCondition,
	controlplanev1.MachineAPIServerPodHealthyCondition,
	controlplanev1.MachineControllerManagerPodHealthyCondition,
	controlplanev1.MachineSchedulerPodHealthyCondition,
	controlplanev1.MachineEtcdMemberHealthyCondition,
	controlplanev1.MachineTalosHealthyCondition,
}

// readinessGates are the conditions that every Machine of a control plane needs to be ready.
var readinessGates = []clusterv1.MachineReadinessGate{
	{ConditionType: controlplanev1.MachineAPIServerPodHealthyCondition},
	{ConditionType: controlplanev1.MachineControllerManagerPodHealthyCondition},
	{ConditionType: controlplanev1.MachineSchedulerPodHealthyCondition},
	{ConditionType: controlplanev1.MachineEtcdMemberHealthyCondition},
	{ConditionType: controlplanev1.MachineTalosHealthyCondition},
}

// components are the static pods of a control-plane machine, by the condition that tells of each.
var components = map[string]string{
	controlplanev1.MachineAPIServerPodHealthyCondition:         "kube-apiserver",
	controlplanev1.MachineControllerManagerPodHealthyCondition: "kube-controller-manager",
	controlplanev1.MachineSchedulerPodHealthyCondition:         "kube-scheduler",
}

// judge sets the conditions of the Machines by what their nodes say, and those that decisions are made by.
func (r *Reconciler) judge(seen *observation) {
	if !seen.etcdMatters() {
		return
	}

	members := rollout.EtcdOf(seen.snapshot)
	mute := seen.muteFor()
	ready := seen.readyNodes()

	for i, m := range seen.machines {
		out := &seen.snapshot.Machines[i]
		if !out.Ours {
			continue
		}

		say(m.object, upToDate(m.object, out.Differences), maxMachineMessage)

		last, asked := seen.plane.views[m.object.UID]
		asked = asked && seen.nodes != nil
		node := seen.answerOf(last, asked)
		now := health(out.Name, node, members, ready > 0 && (ready > 1 || !nodeReady(node)))
		out.Steady = node.Err == nil && (node.Stage == runningStage || node.Stage == bootingStage)

		if m.config != nil {
			noteHostname(now, misnamed(&m.config.Spec, out.Name, node))
		}

		silent := mute
		if asked {
			silent = last.silent(seen.snapshot.Now)
		}

		for _, each := range now {
			say(m.object, r.graced(each, conditions.Get(m.stored, each.Type), silent), maxMachineMessage)
		}

		// Who is out of reach for a short time is not unhealthy, and yet no other is to be disturbed meanwhile.
		out.Conditions = slices.Clone(m.object.Status.Conditions)

		for _, each := range now {
			replace(out.Conditions, each)
		}
	}
}

func replace(all []metav1.Condition, by metav1.Condition) {
	for i := range all {
		if all[i].Type == by.Type {
			all[i] = by
		}
	}
}

// muteFor is for how long nobody has been able to ask the nodes, and zero when somebody can. It counts from the first reconcile that finds it
// so.
func (o *observation) muteFor() time.Duration {
	switch {
	case o.nodes != nil:
		o.plane.mute = time.Time{}

		return 0
	case o.plane.mute.IsZero():
		o.plane.mute = o.snapshot.Now
	}

	return o.snapshot.Now.Sub(o.plane.mute)
}

// answerOf is what a node has said, or why it has said nothing.
func (o *observation) answerOf(last view, asked bool) talos.Node {
	switch {
	case asked:
		return last.node
	case o.disconnected != "":
		return talos.Node{Err: fmt.Errorf("the nodes cannot be asked: %s", o.disconnected)}
	case o.nodes == nil && o.secretsFault != nil:
		return talos.Node{Err: fmt.Errorf("the nodes cannot be asked: see the condition %s of the TalosControlPlane", controlplanev1.CertificatesAvailableCondition)}
	default:
		return talos.Node{Err: errors.New("the node has not been asked yet")}
	}
}

// graced leaves a condition as it was as long as the node has not been out of reach for longer than the grace period.
func (r *Reconciler) graced(now metav1.Condition, before *metav1.Condition, silent time.Duration) metav1.Condition {
	never := before == nil || before.Reason == controlplanev1.MachineNotInspectedReason

	switch {
	case now.Reason != controlplanev1.MachineNotInspectedReason, never:
		return now
	case silent <= r.GracePeriod:
		return *before
	default:
		now.Reason = controlplanev1.MachineConnectionDownReason

		return now
	}
}

// health is what a node says of its machine, or that it says nothing. othersReady says whether the Node of another machine is ready.
func health(name string, node talos.Node, members etcd.Cluster, othersReady bool) []metav1.Condition {
	if node.Err != nil {
		message := sentence(prose.Shorten(node.Err.Error()))

		out := make([]metav1.Condition, 0, len(readinessGates))
		for _, gate := range readinessGates {
			out = append(out, unknown(gate.ConditionType, controlplanev1.MachineNotInspectedReason, message))
		}

		return out
	}

	return []metav1.Condition{
		podHealth(controlplanev1.MachineAPIServerPodHealthyCondition, node),
		podHealth(controlplanev1.MachineControllerManagerPodHealthyCondition, node),
		podHealth(controlplanev1.MachineSchedulerPodHealthyCondition, node),
		memberHealth(name, node, members),
		talosHealth(node, othersReady),
	}
}

func podHealth(condition string, node talos.Node) metav1.Condition {
	component := components[condition]
	pod, there := node.StaticPod(component)

	switch {
	case there && pod.Ready:
		return yes(condition, controlplanev1.MachineComponentRunningReason, "")
	case there:
		return no(condition, controlplanev1.MachineComponentNotReadyReason, joined(component+" is not ready", pod.Problem))
	case !node.PodsKnown:
		return unknown(condition, controlplanev1.MachineInspectionFailedReason, "The node does not say which static pods it runs")
	default:
		return no(condition, controlplanev1.MachineComponentMissingReason, "The node runs no "+component)
	}
}

func memberHealth(name string, node talos.Node, members etcd.Cluster) metav1.Condition {
	condition := controlplanev1.MachineEtcdMemberHealthyCondition
	own := members.MembersOf(name)

	at := slices.IndexFunc(own, func(m etcd.MemberState) bool { return m.Evidence == etcd.BySelf })
	if at < 0 && len(own) > 0 {
		at = 0
	}

	switch {
	case members.Agreement == etcd.Divided, members.Agreement == etcd.NoQuorum && !follows(node, members):
		return no(condition, controlplanev1.MachineNotHealthyReason, sentence(members.Problem))
	case at < 0:
		return no(condition, controlplanev1.MachineEtcdMemberMissingReason, joined("The machine has no etcd member", node.Etcd.Problem))
	case own[at].Name == "":
		return no(condition, controlplanev1.MachineNotHealthyReason, fmt.Sprintf("Etcd member %s %s. %s", own[at].ID, own[at].Problem, ifItLasts))
	case own[at].Learner:
		return no(condition, controlplanev1.MachineNotHealthyReason,
			fmt.Sprintf("Etcd member %s is a learner, and has no vote before it has caught up with the others. %s", own[at].ID, ifItLasts))
	case !own[at].Healthy():
		return no(condition, controlplanev1.MachineNotHealthyReason, fmt.Sprintf("Etcd member %s %s", own[at].ID, own[at].Problem))
	default:
		return yes(condition, controlplanev1.MachineHealthyReason, "")
	}
}

// follows is true for a node whose member votes and follows a leader that does. A leader without a quorum steps down, so etcd has one then, whoever
// else is out of reach: it is not this node that is not well.
func follows(node talos.Node, members etcd.Cluster) bool {
	leader, known := members.Member(node.Etcd.Leader)
	self, votes := members.Member(node.Etcd.Self)

	return node.Etcd.Answered && known && votes && !leader.Learner && !self.Learner
}

// ifItLasts is what to do about a member that does not come to vote.
const ifItLasts = "If that lasts, look at the log of etcd on its node (talosctl logs etcd), or delete the Machine to have another made"

// upToDate is the condition that Cluster API and people read. Each line of the message is a difference, as Cluster API has them.
func upToDate(machine *clusterv1.Machine, differences []rollout.Difference) metav1.Condition {
	condition := controlplanev1.MachineUpToDateCondition

	if len(differences) > 0 {
		lines := make([]string, 0, len(differences))
		for _, d := range differences {
			lines = append(lines, "* "+d.Message)
		}

		return no(condition, controlplanev1.MachineNotUpToDateReason, strings.Join(lines, "\n"))
	}

	if info := machine.Status.NodeInfo; info != nil && info.KubeletVersion != "" && info.KubeletVersion != machine.Spec.Version {
		return no(condition, controlplanev1.MachineUpToDateUpdatingReason,
			fmt.Sprintf("* Kubelet has version %s, %s required", info.KubeletVersion, machine.Spec.Version))
	}

	return yes(condition, controlplanev1.MachineUpToDateReason, "")
}

func yes(condition, reason, message string) metav1.Condition {
	return metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

func no(condition, reason, message string) metav1.Condition {
	return metav1.Condition{Type: condition, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

func unknown(condition, reason, message string) metav1.Condition {
	return metav1.Condition{Type: condition, Status: metav1.ConditionUnknown, Reason: reason, Message: message}
}

func joined(what, why string) string {
	if why == "" {
		return what
	}

	return what + ": " + why
}

// sentence begins with a capital.
func sentence(text string) string {
	if text == "" {
		return text
	}

	return strings.ToUpper(text[:1]) + text[1:]
}
