// SPDX-License-Identifier: Apache-2.0

package operations_test

import (
	"context"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/test/builder"
)

// tenant is a namespace with the Cluster "c", in which the test plays Cluster API.
type tenant struct {
	*WithT

	t         *testing.T
	namespace string
}

// newTenant makes the namespace and the Cluster, whose infrastructure is there.
func newTenant(t *testing.T, namespace string) *tenant {
	t.Helper()

	w := &tenant{WithT: NewWithT(t), t: t, namespace: namespace}
	w.SetDefaultEventuallyTimeout(patience)
	w.SetDefaultEventuallyPollingInterval(interval)

	// The namespace of the overlays is that of several tests.
	made := admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	w.Expect(client.IgnoreAlreadyExists(made)).To(Succeed())
	w.create(builder.GenericCluster("c").Config(func(config *bootstrapv1.TalosClusterConfigSpec) {
		config.Registries = []bootstrapv1.Registry{{
			Host: "registry.example.com", Username: "ichor", AuthSecretRef: &corev1.LocalObjectReference{Name: "registry"},
		}}
	}))

	owner := &clusterv1.Cluster{}
	w.get(owner, "c")
	owner.Status.Initialization.InfrastructureProvisioned = new(true)
	w.Expect(admin.Status().Update(t.Context(), owner)).To(Succeed())

	return w
}

func (w *tenant) create(builders ...builder.Builder) {
	w.t.Helper()

	for _, object := range builder.Objects(builders...) {
		object.SetNamespace(w.namespace)
		w.Expect(admin.Create(w.t.Context(), object)).To(Succeed(), "%T %s", object, object.GetName())
	}
}

func (w *tenant) get(object client.Object, name string) {
	w.t.Helper()
	w.Expect(admin.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, object)).To(Succeed())
}

// secret creates a Secret, or replaces its values.
func (w *tenant) secret(name string, values map[string]string) {
	w.t.Helper()

	for key, value := range values {
		search.Wrote(value, name+" "+key)
	}

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	w.Eventually(func() error {
		err := admin.Get(w.t.Context(), client.ObjectKeyFromObject(secret), secret)
		if client.IgnoreNotFound(err) != nil {
			return err
		}

		secret.Data, secret.StringData = nil, values

		if err == nil {
			return admin.Update(w.t.Context(), secret)
		}

		return admin.Create(w.t.Context(), secret)
	}).Should(Succeed())
}

// labelled sets a label of a TalosConfig that is to be created.
func labelled(key, value string) func(*bootstrapv1.TalosConfig) {
	return func(config *bootstrapv1.TalosConfig) { config.Labels[key] = value }
}

// machine creates a Machine and the TalosConfig that it owns.
func (w *tenant) machine(name string, change ...func(*bootstrapv1.TalosConfig)) {
	w.t.Helper()
	w.owned(builder.Machine("c", name).On(builder.Generic{}), change...)
}

// pool is machine for a MachinePool.
func (w *tenant) pool(name string, change ...func(*bootstrapv1.TalosConfig)) {
	w.t.Helper()
	w.owned(builder.Pool("c", name, 1).On(builder.Generic{}), change...)
}

// owned creates the objects of a builder, whose last is the owner of the TalosConfig: nobody plays Cluster API, which would say so.
func (w *tenant) owned(of builder.Builder, change ...func(*bootstrapv1.TalosConfig)) {
	w.t.Helper()

	objects := of.Objects()
	slices.Reverse(objects)

	owner := objects[0]
	kind := owner.GetObjectKind().GroupVersionKind() // which the API server's answer does not have

	for _, object := range objects {
		if config, ok := object.(*bootstrapv1.TalosConfig); ok {
			config.Labels = map[string]string{clusterv1.ClusterNameLabel: "c"}
			config.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)}

			for _, each := range change {
				each(config)
			}
		}

		object.SetNamespace(w.namespace)
		w.Expect(admin.Create(w.t.Context(), object)).To(Succeed(), "%T %s", object, object.GetName())
	}
}

// ready waits until the TalosConfig is ready, and returns its data Secret.
func (w *tenant) ready(name string) *corev1.Secret {
	w.t.Helper()

	config := &bootstrapv1.TalosConfig{}
	w.Eventually(func(g Gomega) {
		g.Expect(admin.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, config)).To(Succeed())
		g.Expect(conditions.IsTrue(config, bootstrapv1.TalosConfigReadyCondition)).To(BeTrue(), "%v", config.Status.Conditions)
	}).Should(Succeed())

	secret := &corev1.Secret{}
	w.get(secret, config.Status.DataSecretName)

	return secret
}

// faulty waits until the config cannot be rendered, for the reason and with the words.
func (w *tenant) faulty(name, reason, words string) {
	w.t.Helper()
	w.Eventually(func(g Gomega) {
		config := &bootstrapv1.TalosConfig{}
		g.Expect(admin.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, config)).To(Succeed())

		condition := conditions.Get(config, bootstrapv1.TalosConfigConfigRenderedCondition)
		g.Expect(condition).NotTo(BeNil())
		g.Expect(condition.Reason).To(Equal(reason))
		g.Expect(condition.Message).To(ContainSubstring(words))
	}).Should(Succeed())
}

// untouched says that no manager has written to the TalosConfig, nor for it.
func (w *tenant) untouched(name string) {
	w.t.Helper()

	config := &bootstrapv1.TalosConfig{}
	w.get(config, name)
	w.Expect(config.Status).To(Equal(bootstrapv1.TalosConfigStatus{}), name)

	err := admin.Get(context.WithoutCancel(w.t.Context()), client.ObjectKey{Namespace: w.namespace, Name: name}, &corev1.Secret{})
	w.Expect(client.IgnoreNotFound(err)).To(Succeed())
	w.Expect(err).To(HaveOccurred(), name)
}
