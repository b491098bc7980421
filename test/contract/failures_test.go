// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// What FAILURES.md lists and no test elsewhere shows with Machines that Cluster API makes.

// A Kubernetes version that the cluster's Talos does not run is a hard fail: the Machine says why, and boots from nothing.
func TestUnsupportedKubernetesIsAHardFail(t *testing.T) {
	w := newWorld(t)
	w.cluster()
	w.create(workers())
	w.running(0)

	deployment := &clusterv1.MachineDeployment{}
	w.change(deployment, "workers", func() {
		deployment.Spec.Replicas = new(int32(1))
		deployment.Spec.Template.Spec.Version = "v1.28.3"
		// Otherwise Cluster API would not even make the Machine.
		deployment.Annotations = map[string]string{clusterv1.MachineSetSkipPreflightChecksAnnotation: string(clusterv1.MachineSetPreflightCheckAll)}
	})

	machines := &clusterv1.MachineList{}
	w.Eventually(func(g Gomega) {
		g.Expect(w.admin.List(t.Context(), machines, client.InNamespace(w.namespace), client.MatchingLabels{"role": "worker"})).To(Succeed())
		g.Expect(machines.Items).To(HaveLen(1))

		condition := conditions.Get(&machines.Items[0], clusterv1.MachineBootstrapConfigReadyCondition)
		g.Expect(condition).NotTo(BeNil())
		g.Expect(condition.Message).To(And(ContainSubstring("v1.28.3"), ContainSubstring("v1.14.1")))
	}).Should(Succeed())

	machine := &machines.Items[0]
	w.Expect(machine.Spec.Bootstrap.DataSecretName).To(BeNil())

	name := client.ObjectKey{Namespace: w.namespace, Name: machine.Spec.Bootstrap.ConfigRef.Name}
	w.Expect(apierrors.IsNotFound(w.admin.Get(t.Context(), name, &corev1.Secret{}))).To(BeTrue())

	config := &bootstrapv1.TalosConfig{}
	w.get(config, name.Name)
	w.Expect(conditions.IsFalse(config, bootstrapv1.TalosConfigReadyCondition)).To(BeTrue(), describe(config))
}

// The version of the format is no version to install, and nothing is installed unless a disk is named: a machine that boots from an
// image of its platform is not told to install itself on a disk "".
func TestNoInstallationWithoutADisk(t *testing.T) {
	w := newWorld(t)
	w.cluster()
	w.create(workers())
	w.scale(1)

	for name, machine := range w.running(1) {
		config := string(machine.data.Data["value"])
		for _, word := range []string{"UnattendedInstallConfig", "install:", "installer"} {
			w.Expect(config).NotTo(ContainSubstring(word), name)
		}
	}
}

// The talosconfig has the cluster's authority and no address that more than one machine answers at.
func TestTalosconfigNamesNoSharedAddress(t *testing.T) {
	w := newWorld(t)
	w.cluster()
	w.running(0)

	secret := &corev1.Secret{}
	w.get(secret, secrets.TalosconfigName("c"))
	w.Expect(secret.Data).To(HaveLen(1))

	for _, content := range secret.Data {
		talosconfig, err := clientconfig.FromBytes(content)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(talosconfig.Contexts).To(HaveKey("c"))
		w.Expect(talosconfig.Contexts["c"].Endpoints).NotTo(ContainElement(ContainSubstring("c.example.com")))
		w.Expect(talosconfig.Contexts["c"].CA).NotTo(BeEmpty())
	}
}

// The log says what was done for which object, by the names that Cluster API's logs use.
func TestLogsSayWhatWasDone(t *testing.T) {
	w := newWorld(t)
	w.cluster()
	w.running(0)

	var said []string

	for line := range strings.Lines(logs.String()) {
		if strings.Contains(line, `"Rendered the machine config" `) && strings.Contains(line, w.namespace) {
			said = append(said, line)
		}
	}

	w.Expect(said).To(HaveLen(1))
	w.Expect(said[0]).To(And(ContainSubstring(`TalosConfig="`+w.namespace+`/c-control-plane"`),
		ContainSubstring(`Machine="`+w.namespace+`/c-control-plane"`), ContainSubstring(`Cluster="`+w.namespace+`/c"`)))
}
