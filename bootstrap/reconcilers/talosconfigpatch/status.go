// SPDX-License-Identifier: Apache-2.0

package talosconfigpatch

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/bootstrap/reporting"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/prose"
	"github.com/maesh-dev/ichor/internal/targeting"
)

// report sets conditions and counts. Unread is what is to be said of machines that could not be judged, empty when all could. The Clusters are those of
// the namespace.
func report(patch *bootstrapv1.TalosConfigPatch, found *findings, unread string, clusters []clusterv1.Cluster) {
	patch.Status.Machines = bootstrapv1.PatchMachinesStatus{Selected: new(found.selected), Applied: new(found.applied)}

	valid := validCondition(found, unread)
	ready := reporting.Condition(bootstrapv1.TalosConfigPatchReadyCondition, metav1.ConditionTrue, bootstrapv1.TalosConfigPatchReadyReason, valid.Message)

	// That too many machines differ for all to be rendered is no fault: tools that wait for what they have applied would wait for ever.
	switch {
	case valid.Status == metav1.ConditionFalse:
		ready.Status, ready.Reason = metav1.ConditionFalse, bootstrapv1.TalosConfigPatchNotReadyReason
	case unread != "":
		ready.Status, ready.Reason = metav1.ConditionUnknown, bootstrapv1.NotReadReason
	}

	for _, each := range []metav1.Condition{valid, effectiveCondition(patch, found, unread, clusters), ready} {
		conditions.Set(patch, each)
	}
}

func validCondition(found *findings, unread string) metav1.Condition {
	of := func(status metav1.ConditionStatus, reason string, messages ...string) metav1.Condition {
		messages = slices.DeleteFunc(append(messages, unread, found.unrendered()), func(message string) bool { return message == "" })

		return reporting.Condition(bootstrapv1.TalosConfigPatchValidCondition, status, reason, strings.Join(messages, "; "))
	}

	var alone []string
	for _, fault := range machineconfig.Errors(found.parsed.Check()) {
		alone = append(alone, fault.Error())
	}

	switch {
	case len(alone) > 0:
		return of(metav1.ConditionFalse, bootstrapv1.TalosConfigPatchInvalidReason, prose.Named(alone))
	case !found.own.Empty():
		return of(metav1.ConditionFalse, bootstrapv1.TalosConfigPatchInvalidReason, found.own.String())
	case !found.foreign.Empty():
		return of(metav1.ConditionFalse, bootstrapv1.TalosConfigPatchMachinesNotRenderedReason, found.foreign.String())
	case unread != "":
		return of(metav1.ConditionUnknown, bootstrapv1.NotReadReason)
	case found.skipped > 0:
		return of(metav1.ConditionUnknown, bootstrapv1.TalosConfigPatchNotAllRenderedReason)
	}

	return of(metav1.ConditionTrue, bootstrapv1.TalosConfigPatchValidReason)
}

// unrendered says how many machines were too many to be rendered; it is empty when none was.
func (f *findings) unrendered() string {
	if f.skipped == 0 {
		return ""
	}

	return fmt.Sprintf("The machines differ in %d ways: %d of %d machines, in %d ways, were rendered, and nothing is known of the others",
		f.groups+f.skipped, f.rendered, f.selected, f.groups)
}

func effectiveCondition(patch *bootstrapv1.TalosConfigPatch, found *findings, unread string, clusters []clusterv1.Cluster) metav1.Condition {
	of := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return reporting.Condition(bootstrapv1.TalosConfigPatchEffectiveCondition, status, reason, message)
	}

	if found.selected == 0 && found.groups+found.skipped == 0 && unread == "" {
		reason, message := unselected(patch, clusters)

		return of(metav1.ConditionUnknown, reason, message)
	}

	switch {
	case len(found.ineffective) > 0:
		return of(metav1.ConditionFalse, bootstrapv1.TalosConfigPatchIneffectiveReason, "Changes nothing on "+prose.Names(found.ineffective))
	case unread != "":
		return of(metav1.ConditionUnknown, bootstrapv1.NotReadReason, unread)
	case found.failed > 0:
		return of(metav1.ConditionUnknown, bootstrapv1.TalosConfigPatchMachinesNotRenderedReason,
			fmt.Sprintf("%d of %d machines do not render, see the condition %s", found.failed, found.selected, bootstrapv1.TalosConfigPatchValidCondition))
	case found.skipped > 0:
		return of(metav1.ConditionUnknown, bootstrapv1.TalosConfigPatchNotAllRenderedReason, found.unrendered())
	}

	return of(metav1.ConditionTrue, bootstrapv1.TalosConfigPatchEffectiveReason, "")
}

// unselected says why the patch applies to no machine.
func unselected(patch *bootstrapv1.TalosConfigPatch, clusters []clusterv1.Cluster) (reason, message string) {
	spec := &patch.Spec
	if spec.ClusterName == "" && spec.ClusterSelector == nil {
		return bootstrapv1.TalosConfigPatchNoMachinesReason,
			"It has neither clusterName nor clusterSelector, and the TalosConfig of no machine refers to it by spec.patchRefs"
	}

	var targeted []string

	for i := range clusters {
		if ok, err := targeting.Cluster(spec.ClusterTargeting, patch.Namespace, &clusters[i]); ok && err == nil {
			targeted = append(targeted, clusters[i].Name)
		}
	}

	if len(targeted) == 0 {
		return bootstrapv1.TalosConfigPatchNoClusterReason, reporting.NoCluster(spec.ClusterTargeting, patch.Namespace, clusters)
	}

	selection := ""

	switch {
	case spec.Role != "" && spec.MachineSelector != nil:
		selection = fmt.Sprintf(" with role %s that machineSelector selects", spec.Role)
	case spec.Role != "":
		selection = fmt.Sprintf(" with role %s", spec.Role)
	case spec.MachineSelector != nil:
		selection = " that machineSelector selects"
	}

	return bootstrapv1.TalosConfigPatchNoMachinesReason, fmt.Sprintf("Cluster %s has no machine%s", prose.Names(targeted), selection)
}
