// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
)

func (r *Report) clusterTargets(target bootstrapv1.ClusterTargeting) {
	spec := field.NewPath("spec")

	if target.ClusterName != "" {
		r.objectName(spec.Child("clusterName"), "Cluster", target.ClusterName)
	}

	r.selector(spec.Child("clusterSelector"), target.ClusterSelector)
}

func (r *Report) machineTargets(target bootstrapv1.MachineTargeting) {
	r.selector(field.NewPath("spec", "machineSelector"), target.MachineSelector)
}

// What a selector may have. Each value is checked by itself, and each fault told: with thousands that would be work for nothing.
const (
	maxRequirements   = 64
	maxSelectorValues = 256
)

func (r *Report) selector(path *field.Path, selector *metav1.LabelSelector) {
	if selector == nil {
		return
	}

	if n := len(selector.MatchLabels) + len(selector.MatchExpressions); n > maxRequirements {
		r.fail(path, fmt.Sprintf("has %d requirements, at most %d are allowed: give the objects a label for what they have in common, and select by that", n, maxRequirements))

		return
	}

	values := 0
	for _, requirement := range selector.MatchExpressions {
		values += len(requirement.Values)
	}

	if values > maxSelectorValues {
		r.fail(path.Child("matchExpressions"), fmt.Sprintf("has %d values, at most %d are allowed: give the objects a label for what they have in common, and select by that", values, maxSelectorValues))

		return
	}

	r.addErrors(metav1validation.ValidateLabelSelector(selector, metav1validation.LabelSelectorValidationOptions{}, path))
}

// objectName finds the name of an object that can never exist.
func (r *Report) objectName(path *field.Path, kind, name string) {
	if faults := validation.IsDNS1123Subdomain(name); len(faults) > 0 {
		r.fail(path, fmt.Sprintf("no %s can have this name: %s", kind, strings.Join(faults, "; ")))
	}
}
