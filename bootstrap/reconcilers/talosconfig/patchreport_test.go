// SPDX-License-Identifier: Apache-2.0

package talosconfig_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
)

// patchSays waits until a TalosConfigPatch has the condition, and has been looked at in its present generation.
func (w *world) patchSays(name, conditionType, status, reason string, message ...types.GomegaMatcher) {
	w.t.Helper()
	w.Eventually(func(g Gomega) {
		patch := &bootstrapv1.TalosConfigPatch{}
		g.Expect(admin.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, patch)).To(Succeed())
		g.Expect(patch.Status.ObservedGeneration).To(Equal(patch.Generation))

		got := ptr.Deref(conditions.Get(patch, conditionType), metav1.Condition{})
		g.Expect(fmt.Sprintf("%s %s", got.Status, got.Reason)).To(Equal(status+" "+reason), "%+v", patch.Status.Conditions)
		g.Expect(got.Message).To(And(message...))
	}).Should(Succeed())
}

// counts waits for the numbers of machines.
func (w *world) counts(name string, selected, applied int32) {
	w.t.Helper()
	w.Eventually(func(g Gomega) {
		patch := &bootstrapv1.TalosConfigPatch{}
		g.Expect(admin.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, patch)).To(Succeed())
		g.Expect(patch.Status.Machines).To(Equal(bootstrapv1.PatchMachinesStatus{Selected: &selected, Applied: &applied}))
	}).Should(Succeed())
}

// runs notes down which generation of the patch sysctls a machine's node runs.
func (w *world) runs(name string, generation int) {
	w.t.Helper()

	machine := &clusterv1.Machine{}
	w.change(machine, name, func() {
		metav1.SetMetaDataAnnotation(&machine.ObjectMeta, bootstrapv1.RunningInputsAnnotation,
			fmt.Sprintf(`[{"kind":"TalosConfigPatch","name":"sysctls","generation":%d,"layer":"Cluster"}]`, generation))
	})
}

// A patch says on how many machines it is, what it does there, and what keeps it from it.
func TestPatchReport(t *testing.T) {
	w := newWorld(t)
	w.bundle()
	w.cluster()
	w.create(clusterConfigYAML)
	w.create(patchYAML)
	w.patchSays("sysctls", "Valid", "True", "Valid")
	w.patchSays("sysctls", "Effective", "Unknown", "NoMachines")
	w.counts("sysctls", 0, 0)

	// Two workers that differ by nothing but their names, and a control plane.
	w.machine("w-1", worker, `hostname: {source: MachineName}`)
	w.machine("w-2", worker, `hostname: {source: MachineName}`)
	w.machine("cp-1", controlPlane, "")
	w.ready("w-1")
	w.counts("sysctls", 3, 0)
	w.patchSays("sysctls", "Ready", "True", "Ready")
	w.patchSays("sysctls", "Effective", "True", "Effective")

	// What a patch says a second time changes nothing.
	w.create(`
apiVersion: bootstrap.ichor.maesh.dev/v1alpha1
kind: TalosConfigPatch
metadata: {name: again}
spec:
  layer: Pool
  clusterName: c
  machineSelector: {matchLabels: {role: worker}}
  documents:
  - kind: SysctlConfig
    sysctlConfig: {params: {vm.max_map_count: "262144"}}
`)
	w.counts("again", 2, 0)
	w.patchSays("again", "Effective", "False", "ChangesNothing", Equal("Changes nothing on Machine w-1 and 1 like it"))
	w.patchSays("again", "Ready", "True", "Ready")

	// A machine that has joined runs what it was given, as long as nothing else is known of it.
	joined := &clusterv1.Machine{}
	w.changeStatus(joined, "w-1", func() { joined.Status.NodeRef.Name = "w-1" })
	w.counts("sysctls", 3, 1)
	w.counts("again", 2, 0)

	// What is noted down of its node goes before. One that runs the patch as it is now counts; one that runs another generation does not.
	for i, name := range []string{"w-1", "w-2"} {
		w.runs(name, 2-i)
		w.counts("sysctls", 3, int32(i))
	}

	// A change after which the patch leaves a machine out.
	machine := &clusterv1.Machine{}
	w.change(machine, "w-2", func() { delete(machine.Labels, "role") })
	w.counts("again", 1, 0)

	// Nothing writes any more.
	w.rests()

	before := len(traffic.in(w.namespace))

	patch := &bootstrapv1.TalosConfigPatch{}
	w.change(patch, "again", func() { metav1.SetMetaDataAnnotation(&patch.ObjectMeta, "test.example.com/again", "1") })
	w.Consistently(func() []string { return traffic.in(w.namespace)[before:] }, 3*settle).Should(BeEmpty())
}

// A fault names the machine, the layer, the patch, the document and the field; another's fault is told as that.
func TestPatchFaults(t *testing.T) {
	w := newWorld(t)
	w.bundle()
	w.cluster()
	w.create(clusterConfigYAML)
	w.create(patchYAML)
	w.machine("w-1", worker, "")
	w.ready("w-1")
	w.create(`
apiVersion: bootstrap.ichor.maesh.dev/v1alpha1
kind: TalosConfigPatch
metadata: {name: tunnel}
spec:
  layer: Pool
  clusterName: c
  documents:
  - kind: WireguardConfig
    wireguardConfig:
      name: wg0
      privateKeySecretRef: {name: wireguard, key: private}
`)
	w.patchSays("tunnel", "Valid", "False", "Invalid",
		ContainSubstring("Machine w-1: Pool layer: TalosConfigPatch tunnel spec.documents[0]: WireguardConfig"), ContainSubstring(`secret "wireguard" does not exist`))
	w.patchSays("tunnel", "Ready", "False", "NotReady")
	w.patchSays("sysctls", "Valid", "False", "MachinesNotRendered", ContainSubstring("TalosConfigPatch tunnel"))

	w.secret("wireguard", map[string]string{"private": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="})
	w.patchSays("tunnel", "Valid", "True", "Valid")
	w.patchSays("sysctls", "Valid", "True", "Valid")

	// A move takes along what it refers to.
	w.Eventually(func() map[string]string {
		secret := &corev1.Secret{}
		w.get(secret, "wireguard")

		return secret.Labels
	}).Should(HaveKey(moveLabel))
}
