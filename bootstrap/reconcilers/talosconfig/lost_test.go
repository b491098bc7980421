// SPDX-License-Identifier: Apache-2.0

package talosconfig_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// A bundle that is lost while machines carry its secrets is never made again, whatever the Cluster's status says.
func TestLostBundle(t *testing.T) {
	t.Parallel()

	tests := map[string]func(*world){
		"before the control plane answers": func(*world) {},
		"after a move, which drops the status": func(w *world) {
			owner := &clusterv1.Cluster{}
			w.changeStatus(owner, "c", func() { owner.Status.Initialization.ControlPlaneInitialized = new(true) })
			w.changeStatus(owner, "c", func() { owner.Status = clusterv1.ClusterStatus{} })
		},
	}

	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.bundle()
			w.cluster()
			w.create(clusterConfigYAML)
			w.machine("w-1", worker, "")
			first := w.ready("w-1")

			w.Eventually(func() string {
				machine := &clusterv1.Machine{}
				w.get(machine, "w-1")

				return ptr.Deref(machine.Spec.Bootstrap.DataSecretName, "")
			}).Should(Equal("w-1"))

			prepare(w)
			w.delete(&corev1.Secret{}, "c-talos")
			w.machine("w-2", worker, "")
			w.condition("w-2", bundleOK, "Missing", contains("secret c-talos does not exist", "Machine w-1", "restore the Secret from a backup")...)

			w.reports("c", "SecretsBundleAvailable", "False", "Missing", ContainSubstring("Machine w-1 of Cluster c has bootstrap data already"))
			w.reports("c", "Ready", "False", "NotReady", ContainSubstring("restore the Secret from a backup"))

			// Nor does the machine that carries them get others, should its data be lost, too.
			w.delete(&corev1.Secret{}, "w-1")
			w.condition("w-1", bundleOK, "Missing", contains("Machine w-1")...)

			w.bundle()
			w.ready("w-2")
			w.Expect(w.ready("w-1").Data).To(Equal(first.Data))
		})
	}
}
