// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/validation"
)

// What Cluster API refuses of every Machine is refused of what Machines are made from.
func TestTaints(t *testing.T) {
	for key, want := range map[string]string{
		"example.com/a":                           "",
		"node.kubernetes.io/out-of-service":       "",
		"node-role.kubernetes.io/control-plane":   "",
		"node-role.kubernetes.io/master":          "is no longer used by Kubernetes",
		"node.kubernetes.io/not-ready":            "belongs to Kubernetes",
		"node.cloudprovider.kubernetes.io/x":      "belongs to Kubernetes",
		"node.cluster.x-k8s.io/uninitialized":     "belongs to Cluster API",
		"node.cluster.x-k8s.io/outdated-revision": "belongs to Cluster API",
	} {
		object := &controlplanev1.TalosControlPlane{}
		object.Spec.MachineTemplate.Spec.Taints = []clusterv1.MachineTaint{
			{Key: key, Effect: corev1.TaintEffectNoSchedule, Propagation: clusterv1.MachineTaintPropagationAlways},
		}

		var got string

		for _, fault := range validation.TalosControlPlane(object).Faults {
			if text := fault.Error().Error(); strings.HasPrefix(text, "spec.machineTemplate.spec.taints[0].key: ") {
				got = text
			}
		}

		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
	}
}
