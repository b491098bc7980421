// SPDX-License-Identifier: Apache-2.0

package harness_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/test/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/test/harness"
)

const (
	namespace = "default"
	patience  = time.Minute
	interval  = 100 * time.Millisecond
)

func TestManagementCluster(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "management")
	start := time.Now()
	mc := harness.ForTest(t, harness.Options{
		Dir:      dir,
		CAPICore: true,
		CRDs:     harness.InfrastructureCRDs(),
	})
	t.Logf("started in %s", time.Since(start).Round(100*time.Millisecond))

	t.Run("users have their own rights", func(t *testing.T) { testUsers(t, mc) })
	t.Run("garbage collection", func(t *testing.T) { testGarbageCollection(t, mc) })
	t.Run("namespaces", func(t *testing.T) { testNamespace(t, mc) })
	t.Run("core webhooks", func(t *testing.T) { testCoreWebhooks(t, mc) })
	t.Run("core reconcilers", func(t *testing.T) { testCoreReconcilers(t, mc) })
	t.Run("aggregated rights", func(t *testing.T) { testAggregatedRights(t, mc) })
	t.Run("manifests", func(t *testing.T) { testManifests(t, mc) })

	// Last, since it ends the cluster.
	t.Run("stop leaves nothing behind", func(t *testing.T) {
		g := NewWithT(t)
		before, err := processesOf(dir)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(before).To(ConsistOf("etcd", "kube-apiserver", "kube-controller-manager", "capi-core-manager"))
		g.Expect(mc.Stop()).To(Succeed())
		g.Expect(mc.Stop()).To(Succeed(), "a second stop")
		after, err := processesOf(dir)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(after).To(BeEmpty())
		g.Expect(dir).To(BeADirectory(), "a directory that the caller named stays")
	})
}

func TestRefusesUsedDirectory(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	g.Expect(os.WriteFile(filepath.Join(dir, "precious"), nil, 0o600)).To(Succeed())

	_, err := harness.StartManagementCluster(t.Context(), harness.Options{Dir: dir})

	g.Expect(err).To(MatchError(ContainSubstring("is not empty")))
	g.Expect(filepath.Join(dir, "precious")).To(BeAnExistingFile())
}

func testUsers(t *testing.T, mc *harness.ManagementCluster) {
	g, ctx := NewWithT(t), t.Context()
	config, err := mc.UserConfig("reader", "readers")
	g.Expect(err).NotTo(HaveOccurred())
	reader, err := client.New(config, client.Options{Scheme: harness.NewScheme()})
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(apierrors.IsForbidden(reader.List(ctx, &corev1.SecretList{}))).To(BeTrue())

	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "readers"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list"}}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "readers"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "readers"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "readers"}},
	}
	g.Expect(mc.Client().Create(ctx, role)).To(Succeed())
	g.Expect(mc.Client().Create(ctx, binding)).To(Succeed())
	g.Eventually(func() error { return reader.List(ctx, &corev1.SecretList{}) }, patience, interval).Should(Succeed())
}

func testGarbageCollection(t *testing.T, mc *harness.ManagementCluster) {
	g, ctx, c := NewWithT(t), t.Context(), mc.Client()
	owner := genericMachine("gc-owner")
	g.Expect(c.Create(ctx, owner)).To(Succeed())
	dependent := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "gc-dependent",
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(),
		}},
	}}
	g.Expect(c.Create(ctx, dependent)).To(Succeed())

	g.Expect(c.Delete(ctx, owner)).To(Succeed())

	g.Eventually(gone(ctx, c, dependent), patience, interval).Should(Succeed())
}

func testNamespace(t *testing.T, mc *harness.ManagementCluster) {
	g, ctx, c := NewWithT(t), t.Context(), mc.Client()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "short-lived"}}
	g.Expect(c.Create(ctx, ns)).To(Succeed())
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "default"}}
	g.Eventually(func() error { return c.Get(ctx, client.ObjectKeyFromObject(account), account) }, patience, interval).
		Should(Succeed(), "the service account controller makes the account")

	g.Expect(c.Delete(ctx, ns)).To(Succeed())

	g.Eventually(gone(ctx, c, ns), patience, interval).Should(Succeed())
}

func testCoreWebhooks(t *testing.T, mc *harness.ManagementCluster) {
	g, ctx, c := NewWithT(t), t.Context(), mc.Client()
	defaulted := machine("defaulted", "webhooks")
	defaulted.Spec.Version = "1.36.3"
	g.Expect(c.Create(ctx, defaulted)).To(Succeed())
	g.Expect(defaulted.Spec.Version).To(Equal("v1.36.3"), "the mutating webhook adds the v")
	g.Expect(defaulted.Labels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, "webhooks"))

	invalid := machine("invalid", "webhooks")
	invalid.Spec.Version = "v1.x"
	err := c.Create(ctx, invalid)
	g.Expect(apierrors.IsInvalid(err) || apierrors.IsForbidden(err)).To(BeTrue(), "got: %v", err)
	g.Expect(err).To(MatchError(And(
		ContainSubstring("validation.machine.cluster.x-k8s.io"), ContainSubstring("spec.version"))))

	g.Expect(c.Delete(ctx, defaulted)).To(Succeed())
}

func testCoreReconcilers(t *testing.T, mc *harness.ManagementCluster) {
	g, ctx, c := NewWithT(t), t.Context(), mc.Client()
	// Core's webhook wants one of controlPlaneRef, infrastructureRef and topology. The test plays the provider.
	infraCluster := genericObject(builder.GenericInfrastructureClusterKind, "plain")
	g.Expect(unstructured.SetNestedMap(infraCluster.Object,
		map[string]any{"host": "127.0.0.1", "port": int64(6443)}, "spec", "controlPlaneEndpoint")).To(Succeed())
	g.Expect(c.Create(ctx, infraCluster)).To(Succeed())
	g.Expect(unstructured.SetNestedField(infraCluster.Object, true, "status", "initialization", "provisioned")).To(Succeed())
	g.Expect(c.Status().Update(ctx, infraCluster)).To(Succeed())
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "plain"}}
	cluster.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: builder.InfrastructureGroupVersion.Group,
		Kind:     builder.GenericInfrastructureClusterKind,
		Name:     infraCluster.GetName(),
	}
	g.Expect(c.Create(ctx, cluster)).To(Succeed())
	g.Eventually(func(g Gomega) {
		g.Expect(c.Get(ctx, client.ObjectKeyFromObject(cluster), cluster)).To(Succeed())
		g.Expect(cluster.Finalizers).To(ContainElement(clusterv1.ClusterFinalizer))
		g.Expect(cluster.Status.ObservedGeneration).To(Equal(cluster.Generation))
		g.Expect(ptr.Deref(cluster.Status.Initialization.InfrastructureProvisioned, false)).To(BeTrue())
		g.Expect(cluster.Spec.ControlPlaneEndpoint).To(Equal(clusterv1.APIEndpoint{Host: "127.0.0.1", Port: 6443}))
	}, patience, interval).Should(Succeed())

	infrastructure := genericMachine("plain-0")
	g.Expect(c.Create(ctx, infrastructure)).To(Succeed())
	owned := machine("plain-0", cluster.Name)
	g.Expect(c.Create(ctx, owned)).To(Succeed())
	g.Eventually(func(g Gomega) {
		g.Expect(c.Get(ctx, client.ObjectKeyFromObject(infrastructure), infrastructure)).To(Succeed())
		controller := metav1.GetControllerOf(infrastructure)
		g.Expect(controller).NotTo(BeNil(), "core makes the Machine the owner of what its contract label lets it find")
		g.Expect(controller.UID).To(Equal(owned.UID))
		g.Expect(c.Get(ctx, client.ObjectKeyFromObject(owned), owned)).To(Succeed())
		g.Expect(meta.FindStatusCondition(owned.Status.Conditions, clusterv1.MachineInfrastructureReadyCondition)).NotTo(BeNil())
	}, patience, interval).Should(Succeed())
}

func testAggregatedRights(t *testing.T, mc *harness.ManagementCluster) {
	g, ctx, c := NewWithT(t), t.Context(), mc.Client()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{
			Name:   "provider-for-core",
			Labels: map[string]string{"cluster.x-k8s.io/aggregate-to-manager": "true"},
		},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"bootstrap.example.org"}, Resources: []string{"*"}, Verbs: []string{"get"},
		}},
	}
	g.Expect(c.Create(ctx, role)).To(Succeed())
	g.Eventually(func(g Gomega) {
		aggregated := &rbacv1.ClusterRole{}
		g.Expect(c.Get(ctx, client.ObjectKey{Name: "capi-aggregated-manager-role"}, aggregated)).To(Succeed())
		g.Expect(aggregated.Rules).To(ContainElement(role.Rules[0]))
	}, patience, interval).Should(Succeed())
}

func testManifests(t *testing.T, mc *harness.ManagementCluster) {
	g, ctx := NewWithT(t), t.Context()
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good.yaml"), filepath.Join(dir, "bad.yaml")
	g.Expect(os.WriteFile(good, []byte(`# a comment alone
---
apiVersion: v1
kind: ConfigMap
metadata: {name: from-file, namespace: default}
data: {a: b}
---
`), 0o600)).To(Succeed())
	g.Expect(os.WriteFile(bad, []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Bad_Name, namespace: default}\n"),
		0o600)).To(Succeed())

	g.Expect(mc.ApplyFiles(ctx, good)).To(Succeed())
	g.Expect(mc.ApplyFiles(ctx, good)).To(Succeed(), "applying again")
	applied := &corev1.ConfigMap{}
	g.Expect(mc.Client().Get(ctx, client.ObjectKey{Namespace: "default", Name: "from-file"}, applied)).To(Succeed())
	g.Expect(applied.Data).To(Equal(map[string]string{"a": "b"}))

	g.Expect(mc.ApplyFiles(ctx, bad)).To(MatchError(And(
		ContainSubstring(bad), ContainSubstring("ConfigMap default/Bad_Name"))))
}

func machine(name, cluster string) *clusterv1.Machine {
	return &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: clusterv1.MachineSpec{
			ClusterName: cluster,
			Version:     "v1.36.3",
			Bootstrap:   clusterv1.Bootstrap{DataSecretName: new(name)},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: builder.InfrastructureGroupVersion.Group,
				Kind:     builder.GenericInfrastructureMachineKind,
				Name:     name,
			},
		},
	}
}

func genericMachine(name string) *unstructured.Unstructured {
	return genericObject(builder.GenericInfrastructureMachineKind, name)
}

func genericObject(kind, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	object.SetGroupVersionKind(builder.InfrastructureGroupVersion.WithKind(kind))
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

func gone(ctx context.Context, c client.Client, object client.Object) func() error {
	return func() error {
		err := c.Get(ctx, client.ObjectKeyFromObject(object), object)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		return fmt.Errorf("%s is still there", object.GetName())
	}
}

// processesOf names the programs on this machine that have dir in their arguments.
func processesOf(dir string) ([]string, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, errors.New("no process information under /proc")
	}
	var names []string
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			continue // The process has ended since.
		}
		arguments := strings.Split(string(content), "\x00")
		if strings.Contains(strings.Join(arguments[1:], "\x00"), dir) {
			names = append(names, filepath.Base(arguments[0]))
		}
	}
	return names, nil
}
