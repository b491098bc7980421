// SPDX-License-Identifier: Apache-2.0

package talosclusterconfig

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/bootstrap/reporting"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/prose"
	"github.com/maesh-dev/ichor/internal/validation"
)

// report sets the conditions.
func report(config *bootstrapv1.TalosClusterConfig, seen observation, found judgement) {
	registries := reporting.Condition(bootstrapv1.RegistriesResolvedCondition, metav1.ConditionTrue,
		bootstrapv1.RegistriesResolvedReason, prose.Named(found.warnings))
	if len(found.registries) > 0 {
		registries = reporting.Condition(bootstrapv1.RegistriesResolvedCondition, metav1.ConditionFalse,
			bootstrapv1.RegistriesInvalidReason, prose.Named(found.registries))
	}

	bundle, bundleFault := bundleCondition(seen, found)

	for _, each := range []metav1.Condition{registries, bundle, readyCondition(seen, found, bundleFault)} {
		conditions.Set(config, each)
	}
}

// bundleCondition is the worst that is said of a bundle, with the messages of all that are at fault. The fault is empty when none keeps
// machines from being rendered.
func bundleCondition(seen observation, found judgement) (condition metav1.Condition, fault string) {
	of := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return reporting.Condition(bootstrapv1.SecretsBundleAvailableCondition, status, reason, message)
	}

	var faults, pending prose.Findings

	reason := ""

	for _, finding := range found.bundles {
		if finding.reason == bootstrapv1.SecretsBundleNotCreatedReason {
			pending.Add("Cluster "+finding.cluster, finding.message)

			continue
		}

		faults.Add("Cluster "+finding.cluster, finding.message)

		if reason == "" {
			reason = finding.reason
		}
	}

	switch {
	case !faults.Empty():
		return of(metav1.ConditionFalse, reason, faults.String()), faults.String()
	case !pending.Empty():
		return of(metav1.ConditionFalse, bootstrapv1.SecretsBundleNotCreatedReason, pending.String()), ""
	case len(seen.clusters) == 0:
		return of(metav1.ConditionFalse, bootstrapv1.SecretsBundleNoClusterReason,
			reporting.NoCluster(seen.config.Spec.ClusterTargeting, seen.config.Namespace, seen.others)), ""
	}

	return of(metav1.ConditionTrue, bootstrapv1.SecretsBundleAvailableReason, found.notices.String()), ""
}

// orNotCreatable is what is said of moves when the object itself can be created anew, and otherwise that it cannot.
func orNotCreatable(config *bootstrapv1.TalosClusterConfig, movable *metav1.Condition) *metav1.Condition {
	fault := validation.NotCreatable(config)
	if fault == "" {
		return movable
	}

	messages := []string{fault}
	if movable != nil && movable.Status == metav1.ConditionFalse {
		messages = append(messages, movable.Message)
	}

	return new(reporting.Condition(bootstrapv1.MovableCondition, metav1.ConditionFalse, bootstrapv1.MoveNotCreatableReason, prose.InOrder(messages)))
}

// readyCondition is false for what keeps machines from being rendered.
func readyCondition(seen observation, found judgement, bundleFault string) metav1.Condition {
	reason := bootstrapv1.TalosClusterConfigNotReadyReason

	var faults []string

	for _, fault := range seen.faults {
		faults = append(faults, fault.Error())

		if machineconfig.ReasonOf(fault) == machineconfig.ReasonAmbiguousClusterConfig {
			reason = bootstrapv1.TalosClusterConfigAmbiguousReason
		}
	}

	faults = slices.Concat(faults, found.registries, found.other)
	if bundleFault != "" {
		faults = append(faults, bundleFault)
	}

	if len(faults) == 0 {
		return reporting.Condition(bootstrapv1.TalosClusterConfigReadyCondition, metav1.ConditionTrue, bootstrapv1.TalosClusterConfigReadyReason, "")
	}

	return reporting.Condition(bootstrapv1.TalosClusterConfigReadyCondition, metav1.ConditionFalse, reason, prose.Named(faults))
}
