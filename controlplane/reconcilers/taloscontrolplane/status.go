// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/collections"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/patch"
	capiversion "sigs.k8s.io/cluster-api/util/version"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/prose"
	"github.com/maesh-dev/ichor/internal/rollout"
)

// afterAction is when to look again after an action: what it has changed on nodes is not watched.
const afterAction = time.Second

// report writes what has been found out into the status of the Machines and of the control plane, each in one patch if it has changed, and
// says when to look again.
func (r *Reconciler) report(ctx context.Context, seen *observation, decision rollout.Decision, fault error) (ctrl.Result, error) {
	if seen.released {
		return ctrl.Result{}, nil
	}

	faults := []error{r.reportMachines(ctx, seen, decision)}

	tcp := seen.controlPlane
	before := tcp.DeepCopy()
	r.setStatus(ctx, seen, decision, fault)

	conflict := false

	if !equality.Semantic.DeepEqual(before.Status, tcp.Status) {
		err := r.Client.Status().Patch(ctx, tcp, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))

		switch {
		case err == nil:
			r.deferrer.DeferNextReconcileUntilCacheUpToDate(tcp, controlPlaneGVK, tcp.ResourceVersion)
		case apierrors.IsConflict(err):
			conflict = true
		case !apierrors.IsNotFound(err):
			faults = append(faults, fmt.Errorf("report: %w", err))
		}
	}

	if conflict {
		return ctrl.Result{RequeueAfter: conflictPause}, errors.Join(faults...)
	}

	return ctrl.Result{RequeueAfter: r.next(seen, decision)}, errors.Join(faults...)
}

// blindAfter is how many times in a row the look at a control plane must have failed before its plan says so. One failure is often over with
// the next try.
const blindAfter = 2

// reportBlind says in the plan that nothing is known. Whoever reads a plan of yesterday takes it for today's. It is written once, in words that
// are always the same: what the API server has said is in the log.
func (r *Reconciler) reportBlind(ctx context.Context, tcp *controlplanev1.TalosControlPlane) error {
	key := client.ObjectKeyFromObject(tcp)
	if tcp.Status.Plan.Reason == controlplanev1.PlanObservationFailedReason || r.retries.NumRequeues(key) < blindAfter {
		return nil
	}

	// The look may have taken all the time that there is.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookBound)
	defer cancel()

	before := tcp.DeepCopy()

	setPlan(tcp, rollout.Decision{
		Action: rollout.Wait{}, Reason: controlplanev1.PlanObservationFailedReason,
		Message: "What there is of the control plane cannot be read from the API server, so that nothing is decided; the log of the control-plane manager says why. It is tried again",
	}, "", r.Clock.Now())

	err := r.Client.Status().Patch(ctx, tcp, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))

	switch {
	case err == nil:
		r.deferrer.DeferNextReconcileUntilCacheUpToDate(tcp, controlPlaneGVK, tcp.ResourceVersion)

		return nil
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return nil // it is tried again
	default:
		counted(actionReport, err)

		return fmt.Errorf("report: %w", err)
	}
}

// next is when to look again although nothing that is watched has changed.
func (r *Reconciler) next(seen *observation, decision rollout.Decision) time.Duration {
	_, rests := decision.Action.(rollout.Rest)
	seen.plane.settled = rests

	if acts(decision.Action) {
		for uid, last := range seen.plane.views {
			last.at = time.Time{}
			seen.plane.views[uid] = last
		}

		return afterAction
	}

	interval := r.PollInterval
	if rests {
		interval = r.HealthInterval
	}

	if decision.RetryAfter > 0 {
		return min(interval, decision.RetryAfter)
	}

	return interval
}

// reportMachines writes the conditions of the Machines.
func (r *Reconciler) reportMachines(ctx context.Context, seen *observation, decision rollout.Decision) error {
	var faults []error

	for i, m := range seen.machines {
		if !seen.snapshot.Machines[i].Ours {
			continue
		}

		owned := machineConditions

		if remediated := remediation(m.object, decision.Remediation); remediated != nil {
			owned = append(slices.Clone(owned), controlplanev1.MachineOwnerRemediatedCondition)
			remediated(m.object)
		}

		if equality.Semantic.DeepEqual(m.stored.Status.Conditions, m.object.Status.Conditions) {
			continue
		}

		helper, err := patch.NewHelper(m.stored, r.Client)
		if err != nil {
			faults = append(faults, err)

			continue
		}

		if err := helper.Patch(ctx, m.object, patch.WithOwnedConditions{Conditions: owned}); err != nil && !gone(err) {
			faults = append(faults, fmt.Errorf("machine %s: report: %w", m.object.Name, err))
		}
	}

	return errors.Join(faults...)
}

// gone says whether all that is wrong is that the object does not exist any more.
func gone(err error) bool {
	if apierrors.IsNotFound(err) {
		return true
	}

	all, ok := err.(interface{ Errors() []error })

	return ok && !slices.ContainsFunc(all.Errors(), func(part error) bool { return !gone(part) })
}

// remediation is the change of a Machine's OwnerRemediated condition: what is done about it, or that it is healthy again. Nil leaves it.
func remediation(machine *clusterv1.Machine, note *rollout.RemediationNote) func(*clusterv1.Machine) {
	asked := conditions.IsFalse(machine, controlplanev1.MachineOwnerRemediatedCondition)

	switch {
	case note != nil && note.Machine == machine.Name && asked:
		return func(machine *clusterv1.Machine) {
			say(machine, no(controlplanev1.MachineOwnerRemediatedCondition, note.Reason, note.Message), maxMachineMessage)
		}
	case asked && conditions.IsTrue(machine, clusterv1.MachineHealthCheckSucceededCondition) && machine.DeletionTimestamp.IsZero():
		return func(machine *clusterv1.Machine) {
			conditions.Delete(machine, controlplanev1.MachineOwnerRemediatedCondition)
		}
	default:
		return nil
	}
}

// setStatus fills in the status of the control plane.
func (r *Reconciler) setStatus(ctx context.Context, seen *observation, decision rollout.Decision, fault error) {
	tcp := seen.controlPlane
	status := &tcp.Status
	machines := seen.own()

	status.ObservedGeneration = tcp.Generation
	if seen.clusterName != "" {
		status.Selector = collections.ControlPlaneSelectorForCluster(seen.clusterName).String()
	}

	status.Replicas = new(int32(len(machines)))
	status.ReadyReplicas = counting(machines, clusterv1.MachineReadyCondition)
	status.AvailableReplicas = counting(machines, clusterv1.MachineAvailableCondition)
	status.UpToDateReplicas = counting(machines, clusterv1.MachineUpToDateCondition)

	status.Versions = versionsOf(machines)
	status.Version = ""

	if len(status.Versions) > 0 {
		status.Version = status.Versions[0].Version
	}

	if seen.initialized() {
		status.Initialization.ControlPlaneInitialized = new(true)
	}

	setLastRemediation(seen)

	problem := orElse(orElse(seen.missing, seen.disconnected), seen.unreadable())
	if fault != nil && !apierrors.IsConflict(fault) {
		problem = fault.Error()
	}

	setPlan(tcp, decision, problem, seen.snapshot.Now)
	r.setConditions(ctx, seen, decision)
}

// own are the control plane's Machines.
func (o *observation) own() []*clusterv1.Machine {
	var out []*clusterv1.Machine

	for i, m := range o.machines {
		if o.snapshot.Machines[i].Ours {
			out = append(out, m.object)
		}
	}

	return out
}

func counting(machines []*clusterv1.Machine, condition string) *int32 {
	n := int32(0)

	for _, machine := range machines {
		if conditions.IsTrue(machine, condition) {
			n++
		}
	}

	return &n
}

// setPlan writes the decision down. Since says since when action and reason are what they are.
func setPlan(tcp *controlplanev1.TalosControlPlane, decision rollout.Decision, problem string, now time.Time) {
	plan := controlplanev1.PlanStatus{
		Action: rollout.Name(decision.Action), Reason: decision.Reason, Message: decision.Message, Since: metav1.NewTime(now.Truncate(time.Second)),
	}

	if problem != "" && !strings.Contains(plan.Message, problem) {
		plan.Message = joined(plan.Message, problem)
	}

	plan.Message = prose.ShortenTo(plan.Message, maxMessage)

	if last := tcp.Status.Plan; last.Action == plan.Action && last.Reason == plan.Reason {
		plan.Since = last.Since
	}

	tcp.Status.Plan = plan
}

// setLastRemediation tells of the newest remediation that is known of. What is known no longer stays in status.
func setLastRemediation(seen *observation) {
	last := seen.snapshot.ControlPlane.Remediation

	for i := range seen.snapshot.Machines {
		if made := seen.snapshot.Machines[i].RemediationFor; made != nil && (last == nil || made.Timestamp.After(last.Timestamp)) {
			last = made
		}
	}

	if last == nil {
		return
	}

	seen.controlPlane.Status.LastRemediation = controlplanev1.LastRemediationStatus{
		Machine: last.Machine, Time: metav1.NewTime(last.Timestamp), RetryCount: new(int32(last.RetryCount)),
	}
}

// versionsOf are the Kubernetes versions of machines, the oldest first: what the kubelet says, else what is wanted. Cluster API takes
// them for wrong in any other order.
func versionsOf(machines []*clusterv1.Machine) []clusterv1.StatusVersion {
	counts := map[string]int32{}

	for _, machine := range machines {
		version := machine.Spec.Version
		if info := machine.Status.NodeInfo; info != nil && info.KubeletVersion != "" {
			version = info.KubeletVersion
		}

		if version != "" {
			counts[version]++
		}
	}

	if len(counts) == 0 {
		return nil
	}

	out := make([]clusterv1.StatusVersion, 0, len(counts))
	for version, n := range counts {
		out = append(out, clusterv1.StatusVersion{Version: version, Replicas: n})
	}

	slices.SortFunc(out, func(a, b clusterv1.StatusVersion) int {
		one, oneErr := semver.ParseTolerant(a.Version)
		other, otherErr := semver.ParseTolerant(b.Version)

		if oneErr == nil && otherErr == nil {
			if order := capiversion.Compare(one, other, capiversion.WithBuildTags()); order == -1 || order == 1 {
				return order
			}
		}

		return strings.Compare(a.Version, b.Version)
	})

	return out
}
