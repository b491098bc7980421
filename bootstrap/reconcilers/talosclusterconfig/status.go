// SPDX-License-Identifier: Apache-2.0

package talosclusterconfig

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
	"github.com/maesh-dev/ichor/internal/machineconfig"
)

// maxNamed is how many faults a message names.
const maxNamed = 5

// report writes the status, if it changed, in one patch.
func (r *Reconciler) report(ctx context.Context, seen observation, found judgement) error {
	before, config := seen.config, seen.config.DeepCopy()
	config.Status.ObservedGeneration = config.Generation

	registries := condition(bootstrapv1.RegistriesResolvedCondition, metav1.ConditionTrue, bootstrapv1.RegistriesResolvedReason, named(found.warnings))
	if len(found.registries) > 0 {
		registries = condition(bootstrapv1.RegistriesResolvedCondition, metav1.ConditionFalse, bootstrapv1.RegistriesInvalidReason, named(found.registries))
	}

	bundle, bundleFaults := bundleCondition(seen, found)

	for _, each := range []metav1.Condition{registries, bundle, readyCondition(seen, found, bundleFaults)} {
		conditions.Set(config, each)
	}

	if equality.Semantic.DeepEqual(before.Status, config.Status) {
		return nil
	}

	err := r.Client.Status().Patch(ctx, config, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		// The cache was behind. The newer object is on its way into it, and wakes this one.
		return nil
	}

	if err != nil {
		return fmt.Errorf("patch the status: %w", err)
	}

	return nil
}

// bundleCondition is the worst that is said of a bundle, with the messages of all that are at fault.
func bundleCondition(seen observation, found judgement) (metav1.Condition, []string) {
	of := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return condition(bootstrapv1.SecretsBundleAvailableCondition, status, reason, message)
	}

	var faults, pending []string

	reason := ""

	for _, finding := range found.bundles {
		if finding.reason == bootstrapv1.SecretsBundleNotCreatedReason {
			pending = append(pending, finding.message)

			continue
		}

		faults = append(faults, finding.message)

		if reason == "" {
			reason = finding.reason
		}
	}

	switch {
	case len(faults) > 0:
		return of(metav1.ConditionFalse, reason, named(faults)), faults
	case len(pending) > 0:
		return of(metav1.ConditionFalse, bootstrapv1.SecretsBundleNotCreatedReason, named(pending)), nil
	case len(seen.clusters) == 0:
		return of(metav1.ConditionFalse, bootstrapv1.SecretsBundleNoClusterReason, "No Cluster of the namespace is targeted"), nil
	}

	return of(metav1.ConditionTrue, bootstrapv1.SecretsBundleAvailableReason, ""), nil
}

// readyCondition is false for what keeps machines from being rendered.
func readyCondition(seen observation, found judgement, bundleFaults []string) metav1.Condition {
	reason := bootstrapv1.TalosClusterConfigNotReadyReason

	var faults []string

	for _, fault := range seen.faults {
		faults = append(faults, fault.Error())

		if machineconfig.ReasonOf(fault) == machineconfig.ReasonAmbiguousClusterConfig {
			reason = bootstrapv1.TalosClusterConfigAmbiguousReason
		}
	}

	faults = slices.Concat(faults, found.registries, found.other, bundleFaults)
	if len(faults) == 0 {
		return condition(bootstrapv1.TalosClusterConfigReadyCondition, metav1.ConditionTrue, bootstrapv1.TalosClusterConfigReadyReason, "")
	}

	return condition(bootstrapv1.TalosClusterConfigReadyCondition, metav1.ConditionFalse, reason, named(faults))
}

func condition(conditionType string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message}
}

// maxLength bounds one part of a message: a condition's may have 32768 characters.
const maxLength = 1024

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
