// SPDX-License-Identifier: Apache-2.0

package talosconfig_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
)

// A TalosConfig that came in although its data Secret would have the name of a cluster's own gets none, whichever cluster that is.
func TestReservedNames(t *testing.T) {
	w := newWorld(t)
	w.bundle()
	w.cluster()
	w.create(clusterConfigYAML)

	for _, name := range []string{"c-ca", "later-talos"} {
		w.machine(name, worker, "")
		w.condition(name, dataSecret, "NameReserved", contains("Secret "+name, "of a Secret of Cluster", "another name")...)
	}

	w.machine("w-1", worker, "")
	w.ready("w-1")
	w.agree()
	w.none("later-talos")
}

// A machine's config in the place of a cluster's secrets is told as what it is, and nothing is made of it or put into it.
func TestMachineInPlaceOfTheSecrets(t *testing.T) {
	t.Parallel()

	for _, name := range []string{"c-talos", "c-etcd"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create("{apiVersion: bootstrap.ichor.maesh.dev/v1alpha1, kind: TalosConfig, metadata: {name: " + name + "}}")

			secret := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: w.namespace, Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: "a"},
					OwnerReferences: []metav1.OwnerReference{ownerOf(w.config(name))},
				},
				Type: clusterv1.ClusterSecretType, StringData: map[string]string{"value": "version: v1alpha1"},
			}
			w.Expect(admin.Create(t.Context(), secret)).To(Succeed())

			w.cluster()
			w.create(clusterConfigYAML)
			w.machine("w-1", worker, "")
			w.condition("w-1", bundleOK, "Mismatch", contains("secret "+name, "holds the bootstrap data of TalosConfig "+name, "another name")...)

			after := &corev1.Secret{}
			w.get(after, name)
			w.Expect(after.ResourceVersion).To(Equal(secret.ResourceVersion))

			w.delete(&corev1.Secret{}, name)
			w.ready("w-1")
			w.agree()
		})
	}
}

// What a user has written for a machine to boot of is not Ichor's to own or to write over, with the label or without it.
func TestHandWrittenData(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		name, machine string
		labels        map[string]string
	}{
		"of a machine":                 {name: "w-1", machine: "Machine"},
		"of a machine, with the label": {name: "w-1", machine: "Machine", labels: map[string]string{clusterv1.ClusterNameLabel: "c"}},
		"of a pool":                    {name: "pool", machine: "MachinePool"},
		"of a pool, with the label":    {name: "pool", machine: "MachinePool", labels: map[string]string{clusterv1.ClusterNameLabel: "c"}},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.bundle()

			secret := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: test.name, Labels: test.labels},
				StringData: map[string]string{"value": "by hand"},
			}
			w.Expect(admin.Create(t.Context(), secret)).To(Succeed())

			w.cluster()
			w.create(clusterConfigYAML)

			if test.machine == "Machine" {
				w.create(handMachineYAML)
				w.ownedConfig(test.name, test.machine, &clusterv1.Machine{})
			} else {
				w.create(poolYAML)

				pool := &clusterv1.MachinePool{}
				w.change(pool, test.name, func() { pool.Spec.Template.Spec.Bootstrap.DataSecretName = new(test.name) })
				w.ownedConfig(test.name, test.machine, pool)
			}

			w.ready(test.name)
			w.reconcileAgain(test.name)
			w.Expect(conditions.GetReason(w.config(test.name), rendered)).To(Equal(bootstrapv1.TalosConfigAdoptedReason))

			after := &corev1.Secret{}
			w.get(after, test.name)
			w.Expect(after.ResourceVersion).To(Equal(secret.ResourceVersion))
		})
	}
}

const handMachineYAML = `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata: {name: w-1, labels: {cluster.x-k8s.io/cluster-name: c}}
spec:
  clusterName: c
  version: v1.36.1
  bootstrap:
    dataSecretName: w-1
    configRef: {apiGroup: bootstrap.ichor.maesh.dev, kind: TalosConfig, name: w-1}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: GenericInfrastructureMachine, name: w-1}
`

// The cache selects Secrets by their label. One that has lost it is there all the same.
func TestSecretWithoutLabel(t *testing.T) {
	w := newWorld(t)
	w.bundle()
	w.cluster()
	w.create(clusterConfigYAML)
	w.machine("w-1", worker, "")
	w.ready("w-1")

	machine := &clusterv1.Machine{}
	w.changeStatus(machine, "w-1", func() { machine.Status.NodeRef.Name = "w-1" })

	secret := &corev1.Secret{}
	w.change(secret, "w-1", func() { secret.Labels = nil })
	w.Eventually(func() map[string]string { w.get(secret, "w-1"); return secret.Labels }).Should(HaveKeyWithValue(clusterv1.ClusterNameLabel, "c"))
	w.Eventually(func() string { return conditions.GetReason(w.config("w-1"), dataSecret) }).Should(Equal("Available"))

	// What is refused is refused without a render, and without a try to create it.
	w.secret("w-2", map[string]string{"value": "somebody's"})
	w.machine("w-2", worker, "")
	w.condition("w-2", dataSecret, "ForeignSecret")

	posts := "POST /api/v1/namespaces/" + w.namespace + "/secrets"
	before := traffic.count(posts)
	w.reconcileAgain("w-2")
	w.Expect(traffic.count(posts)).To(Equal(before))
}
