// SPDX-License-Identifier: Apache-2.0

package talosconfig_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
)

const moveLabel = "clusterctl.cluster.x-k8s.io/move"

// reports waits until a TalosClusterConfig has the condition, and has been looked at in its present generation.
func (w *world) reports(name, conditionType, status, reason string, message ...types.GomegaMatcher) {
	w.t.Helper()
	w.Eventually(func(g Gomega) {
		config := &bootstrapv1.TalosClusterConfig{}
		g.Expect(admin.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, config)).To(Succeed())
		g.Expect(config.Status.ObservedGeneration).To(Equal(config.Generation))

		got := conditions.Get(config, conditionType)
		g.Expect(got).NotTo(BeNil())
		g.Expect(got.Status+" "+metav1.ConditionStatus(got.Reason)).To(Equal(metav1.ConditionStatus(status+" "+reason)), "%+v", config.Status.Conditions)
		g.Expect(got.Message).To(And(message...))
	}).Should(Succeed())
}

// A TalosClusterConfig says by itself what no machine could be rendered with, before there is a machine.
func TestClusterConfigReport(t *testing.T) {
	w := newWorld(t)
	w.cluster()
	w.create(registryYAML)
	w.reports("c", "RegistriesResolved", "False", "Invalid",
		ContainSubstring(`spec.registries[registry.example.com]: authSecretRef: secret "registry" does not exist in the namespace`))
	w.reports("c", "Ready", "False", "NotReady", ContainSubstring(`"registry"`))
	w.reports("c", "SecretsBundleAvailable", "False", "NotCreated", ContainSubstring("c-talos"))

	w.secret("registry", map[string]string{"password": registryPassword, "auth": "also"})
	w.reports("c", "RegistriesResolved", "False", "Invalid", ContainSubstring("exactly one is allowed"), Not(ContainSubstring(registryPassword)))

	changeRegistry(map[string]string{"password": registryPassword})(w)
	w.reports("c", "RegistriesResolved", "True", "Resolved")
	w.reports("c", "Ready", "True", "Ready")

	// A move takes the Secret along.
	w.Eventually(func() map[string]string {
		secret := &corev1.Secret{}
		w.get(secret, "registry")

		return secret.Labels
	}).Should(HaveKey(moveLabel))

	config := &bootstrapv1.TalosClusterConfig{}
	w.change(config, "c", func() {
		config.Spec.Registries[0].Endpoints = []bootstrapv1.RegistryEndpoint{{URL: "https://mirror.example.com"}}
	})
	w.reports("c", "RegistriesResolved", "True", "Resolved", ContainSubstring("host mirror.example.com has no entry of its own"))

	w.machine("w-1", worker, "")
	w.ready("w-1")
	w.reports("c", "SecretsBundleAvailable", "True", "Available")

	// The user's bundle is copied once. It may go afterwards, but not differ.
	w.change(config, "c", func() { config.Spec.SecretsRef = &corev1.LocalObjectReference{Name: "mine"} })
	w.reports("c", "Ready", "True", "Ready")
	w.secret("mine", map[string]string{"bundle": "nonsense"})
	w.reports("c", "SecretsBundleAvailable", "False", "Invalid", ContainSubstring("mine"), Not(ContainSubstring("nonsense")))
	w.reports("c", "Ready", "False", "NotReady")

	other, err := newBundle()
	w.Expect(err).NotTo(HaveOccurred())

	secret := &corev1.Secret{}
	w.change(secret, "mine", func() { secret.Data["bundle"] = []byte(encode(w, other)) })
	w.reports("c", "SecretsBundleAvailable", "False", "Mismatch", ContainSubstring("c-talos"))
}

// More than one for a Cluster is an error on all of them until one is left.
func TestClusterConfigsForOneCluster(t *testing.T) {
	w := newWorld(t)
	w.cluster()
	w.create(clusterConfigYAML)
	w.reports("c", "Ready", "True", "Ready")

	second := &bootstrapv1.TalosClusterConfig{Spec: bootstrapv1.TalosClusterConfigSpec{ClusterTargeting: bootstrapv1.ClusterTargeting{
		ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"site": "lab"}},
	}}}
	w.named(second, "second")
	w.Expect(admin.Create(context.Background(), second)).To(Succeed())

	for _, name := range []string{"c", "second"} {
		w.reports(name, "Ready", "False", "AmbiguousTalosClusterConfig", ContainSubstring("Cluster c: 2 TalosClusterConfigs target the cluster: c, second"))
	}

	w.rests()

	before := len(traffic.in(w.namespace))
	w.change(second, "second", func() { metav1.SetMetaDataAnnotation(&second.ObjectMeta, "test.example.com/again", "1") })
	w.delete(second, "second")
	w.reports("c", "Ready", "True", "Ready")
	// A request is noted when it has been answered, which may be after what it has written is seen.
	w.Eventually(func() []string { return traffic.in(w.namespace)[before:] }).Should(ConsistOf("PATCH talosclusterconfigs/c/status"))
}
