// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
)

// Who changes an object that a move would fail at is told so, and not kept from it.
func TestChangeOfClusterConfig(t *testing.T) {
	g := NewWithT(t)

	object := &bootstrapv1.TalosClusterConfig{}
	object.Spec.ClusterSelector = &metav1.LabelSelector{}
	object.Spec.SecretsRef = &corev1.LocalObjectReference{Name: "mine"}

	errs, warnings := changeOfClusterConfig(admission.Request{}, object, object)
	g.Expect(errs).To(BeEmpty())
	g.Expect(warnings).To(ConsistOf(And(HavePrefix("spec.secretsRef: "), ContainSubstring("clusterctl move"))))

	object.Spec.ClusterSelector, object.Spec.ClusterName = nil, "c"
	_, warnings = changeOfClusterConfig(admission.Request{}, object, object)
	g.Expect(warnings).To(BeEmpty())
}
