// SPDX-License-Identifier: Apache-2.0

package talosconfigpatch

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
)

// report writes the status, if it changed, in one patch.
func (r *Reconciler) report(ctx context.Context, before *bootstrapv1.TalosConfigPatch, found survey) error {
	patch := before.DeepCopy()
	patch.Status.ObservedGeneration = patch.Generation
	patch.Status.Machines = bootstrapv1.PatchMachinesStatus{Selected: &found.selected, Applied: &found.applied}

	valid := validCondition(found)
	ready := condition(bootstrapv1.TalosConfigPatchReadyCondition, metav1.ConditionTrue, bootstrapv1.TalosConfigPatchReadyReason, "")

	if valid.Status != metav1.ConditionTrue {
		ready = condition(bootstrapv1.TalosConfigPatchReadyCondition, metav1.ConditionFalse, bootstrapv1.TalosConfigPatchNotReadyReason, valid.Message)
	}

	for _, each := range []metav1.Condition{valid, effectiveCondition(found), ready} {
		conditions.Set(patch, each)
	}

	if equality.Semantic.DeepEqual(before.Status, patch.Status) {
		return nil
	}

	err := r.Client.Status().Patch(ctx, patch, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		// The cache was behind. The newer object is on its way into it, and wakes this one.
		return nil
	}

	if err != nil {
		return fmt.Errorf("patch the status: %w", err)
	}

	return nil
}

func validCondition(found survey) metav1.Condition {
	of := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return condition(bootstrapv1.TalosConfigPatchValidCondition, status, reason, message)
	}

	switch {
	case len(found.alone) > 0:
		return of(metav1.ConditionFalse, bootstrapv1.TalosConfigPatchInvalidReason, named(found.alone))
	case len(found.own) > 0:
		return of(metav1.ConditionFalse, bootstrapv1.TalosConfigPatchInvalidReason, named(found.own))
	case len(found.foreign) > 0:
		return of(metav1.ConditionFalse, bootstrapv1.TalosConfigPatchMachinesNotRenderedReason, named(found.foreign))
	}

	message := ""
	if found.skipped > 0 {
		message = fmt.Sprintf("Rendered %d of %d kinds of machines", found.rendered, found.rendered+found.skipped)
	}

	return of(metav1.ConditionTrue, bootstrapv1.TalosConfigPatchValidReason, message)
}

func effectiveCondition(found survey) metav1.Condition {
	of := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return condition(bootstrapv1.TalosConfigPatchEffectiveCondition, status, reason, message)
	}

	switch {
	case len(found.ineffective) > 0:
		return of(metav1.ConditionFalse, bootstrapv1.TalosConfigPatchIneffectiveReason, "Changes nothing on "+named(found.ineffective))
	case found.rendered == 0 || len(found.own)+len(found.foreign) > 0:
		return of(metav1.ConditionUnknown, bootstrapv1.TalosConfigPatchNoMachinesReason, "No machine to tell from")
	}

	return of(metav1.ConditionTrue, bootstrapv1.TalosConfigPatchEffectiveReason, "")
}

func condition(conditionType string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message}
}

const (
	// maxNamed is how many faults or machines a message names.
	maxNamed = 5

	// maxLength bounds one of them: the message of a condition may have 32768 characters.
	maxLength = 1024
)

// named is the parts, sorted and capped: the same faults give the same message.
func named(parts []string) string {
	parts = slices.Clone(parts)
	for i, part := range parts {
		if len(part) > maxLength {
			parts[i] = strings.ToValidUTF8(part[:maxLength], "") + "..."
		}
	}

	slices.Sort(parts)
	parts = slices.Compact(parts)

	if rest := len(parts) - maxNamed; rest > 0 {
		return fmt.Sprintf("%s; and %d more", strings.Join(parts[:maxNamed], "; "), rest)
	}

	return strings.Join(parts, "; ")
}
