// SPDX-License-Identifier: Apache-2.0

package talosconfig

import (
	"context"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
	"github.com/maesh-dev/ichor/internal/inputs"
)

// Of a cluster "a" with a control-plane machine and two workers, one of them a GPU node, and a cluster "b" with a worker,
// all wait but for the worker "a-done" and the
// MachinePool "a-pool" of GPU nodes, which have their data Secrets.
func watchedWorld(t *testing.T) client.Client {
	t.Helper()

	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
	g.Expect(bootstrapv1.AddToScheme(scheme)).To(Succeed())
	g.Expect(corev1.AddToScheme(scheme)).To(Succeed())

	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", Labels: map[string]string{"site": "lab"}}},
		&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b"}},
		&bootstrapv1.TalosClusterConfig{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"},
			Spec: bootstrapv1.TalosClusterConfigSpec{
				ClusterTargeting: bootstrapv1.ClusterTargeting{ClusterName: "a"},
				Registries:       []bootstrapv1.Registry{{Host: "r.example.com", AuthSecretRef: &corev1.LocalObjectReference{Name: "registry"}}},
				SecretsRef:       &corev1.LocalObjectReference{Name: "mine"},
			},
		},
	)

	add := func(cluster, name string, labels map[string]string, done bool, refs ...bootstrapv1.PatchReference) {
		machine := &clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "uid", Labels: labels},
			Spec: clusterv1.MachineSpec{ClusterName: cluster, Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: bootstrapv1.GroupVersion.Group, Kind: "TalosConfig", Name: name,
			}}},
		}
		config := &bootstrapv1.TalosConfig{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: cluster},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: name, UID: "uid"}},
			},
			Spec: bootstrapv1.TalosConfigSpec{PatchRefs: refs},
		}

		if done {
			config.Status = bootstrapv1.TalosConfigStatus{
				DataSecretName: name,
				Initialization: bootstrapv1.TalosConfigInitializationStatus{DataSecretCreated: new(true)},
			}
		}

		builder.WithObjects(machine, config)
	}

	add("a", "a-cp", map[string]string{clusterv1.MachineControlPlaneLabel: ""}, false)
	add("a", "a-gpu", map[string]string{"pool": "gpu"}, false, bootstrapv1.PatchReference{Name: "by-reference"})
	add("a", "a-worker", nil, false)
	add("a", "a-done", map[string]string{"pool": "gpu"}, true, bootstrapv1.PatchReference{Name: "by-reference"})
	add("b", "b-worker", nil, false)

	pool := &clusterv1.MachinePool{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a-pool", UID: "uid"}}
	pool.Spec.ClusterName = "a"
	pool.Spec.Template.Labels = map[string]string{"pool": "gpu"}

	builder.WithObjects(pool, &bootstrapv1.TalosConfig{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "a-pool", Labels: map[string]string{clusterv1.ClusterNameLabel: "a"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachinePool", Name: "a-pool", UID: "uid"}},
		},
		Spec: bootstrapv1.TalosConfigSpec{PatchRefs: []bootstrapv1.PatchReference{{Name: "by-reference"}}},
		Status: bootstrapv1.TalosConfigStatus{
			DataSecretName: "a-pool", Initialization: bootstrapv1.TalosConfigInitializationStatus{DataSecretCreated: new(true)},
		},
	})

	tunnel := patchFor("by-reference", bootstrapv1.ClusterTargeting{}, bootstrapv1.MachineTargeting{}, "")
	tunnel.UID = "tunnel"
	tunnel.Spec.Documents = []machineconfigv1alpha1.Document{{
		Kind: machineconfigv1alpha1.KindWireguardConfig,
		WireguardConfig: &machineconfigv1alpha1.WireguardConfig{
			Name: "wg0", PrivateKeySecretRef: &machineconfigv1alpha1.SecretKeyReference{Name: "wireguard", Key: "private"},
		},
	}}

	return builder.WithObjects(tunnel).Build()
}

func TestWatches(t *testing.T) {
	named := func(name string, labels ...string) metav1.ObjectMeta {
		meta := metav1.ObjectMeta{Namespace: "ns", Name: name}
		for _, cluster := range labels {
			metav1.SetMetaDataLabel(&meta, clusterv1.ClusterNameLabel, cluster)
		}

		return meta
	}
	lab := bootstrapv1.ClusterTargeting{ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"site": "lab"}}}
	gpu := bootstrapv1.MachineTargeting{MachineSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"pool": "gpu"}}}
	invalid := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: "Near"}}}
	world := watchedWorld(t)
	r := &Reconciler{Client: world, Inputs: inputs.NewReader(world, world, world)}

	tests := map[string]struct {
		forObject mapFunc
		object    client.Object
		want      []string
	}{
		"Machine": {r.forMachine, &clusterv1.Machine{ObjectMeta: named("m"), Spec: clusterv1.MachineSpec{Bootstrap: clusterv1.Bootstrap{
			ConfigRef: clusterv1.ContractVersionedObjectReference{APIGroup: bootstrapv1.GroupVersion.Group, Kind: "TalosConfig", Name: "x"},
		}}}, []string{"x"}},
		"Machine of another provider": {r.forMachine, &clusterv1.Machine{ObjectMeta: named("m"), Spec: clusterv1.MachineSpec{Bootstrap: clusterv1.Bootstrap{
			ConfigRef: clusterv1.ContractVersionedObjectReference{APIGroup: "bootstrap.cluster.x-k8s.io", Kind: "TalosConfig", Name: "x"},
		}}}, nil},
		"Cluster": {r.forCluster, &clusterv1.Cluster{ObjectMeta: named("a")}, []string{"a-cp", "a-done", "a-gpu", "a-pool", "a-worker"}},

		"carrier of a cluster without a bundle": {r.forCarrier, &clusterv1.Machine{
			ObjectMeta: named("m"), Spec: clusterv1.MachineSpec{ClusterName: "b"},
		}, []string{"b-worker"}},
		"carrier of no cluster": {r.forCarrier, &corev1.Secret{ObjectMeta: named("m", "b")}, nil},

		"TalosClusterConfig by name":     {r.forClusterConfig, clusterConfigFor(bootstrapv1.ClusterTargeting{ClusterName: "b"}), []string{"b-worker"}},
		"TalosClusterConfig by selector": {r.forClusterConfig, clusterConfigFor(lab), []string{"a-cp", "a-gpu", "a-pool", "a-worker"}},
		"TalosClusterConfig that cannot select": {
			r.forClusterConfig, clusterConfigFor(bootstrapv1.ClusterTargeting{ClusterSelector: invalid}), []string{"a-cp", "a-gpu", "a-pool", "a-worker", "b-worker"},
		},

		"TalosStorage": {r.forStorage, &bootstrapv1.TalosStorage{
			ObjectMeta: named("s"), Spec: bootstrapv1.TalosStorageSpec{ClusterTargeting: lab, MachineTargeting: gpu},
		}, []string{"a-gpu", "a-pool"}},

		"patch of a cluster":    {r.forPatch, patchFor("p", lab, bootstrapv1.MachineTargeting{}, ""), []string{"a-cp", "a-gpu", "a-pool", "a-worker"}},
		"patch of a role":       {r.forPatch, patchFor("p", lab, bootstrapv1.MachineTargeting{}, bootstrapv1.MachineRoleControlPlane), []string{"a-cp"}},
		"patch of a pool":       {r.forPatch, patchFor("p", lab, gpu, ""), []string{"a-gpu", "a-pool"}},
		"patch by reference":    {r.forPatch, patchFor("by-reference", bootstrapv1.ClusterTargeting{}, bootstrapv1.MachineTargeting{}, ""), []string{"a-gpu", "a-pool"}},
		"patch in both ways":    {r.forPatch, patchFor("by-reference", bootstrapv1.ClusterTargeting{ClusterName: "b"}, bootstrapv1.MachineTargeting{}, ""), []string{"a-gpu", "a-pool", "b-worker"}},
		"patch without targets": {r.forPatch, patchFor("p", bootstrapv1.ClusterTargeting{}, bootstrapv1.MachineTargeting{}, ""), nil},

		"data Secret":                        {r.forLabelledSecret, &corev1.Secret{ObjectMeta: named("a-done", "a")}, []string{"a-done"}},
		"bundle":                             {r.forLabelledSecret, &corev1.Secret{ObjectMeta: named("a-talos", "a")}, []string{"a-cp", "a-gpu", "a-pool", "a-worker"}},
		"kubeconfig":                         {r.forLabelledSecret, &corev1.Secret{ObjectMeta: named("a-kubeconfig", "a")}, nil},
		"bundle without label":               {r.forSecretMetadata, metadataOf(named("b-talos")), []string{"b-worker"}},
		"bundle with label, as metadata":     {r.forSecretMetadata, metadataOf(named("b-talos", "b")), nil},
		"registry credentials":               {r.forSecretMetadata, metadataOf(named("registry")), []string{"a-cp", "a-gpu", "a-pool", "a-worker"}},
		"registry credentials with label":    {r.forSecretMetadata, metadataOf(named("registry", "a")), []string{"a-cp", "a-gpu", "a-pool", "a-worker"}},
		"user's bundle":                      {r.forSecretMetadata, metadataOf(named("mine")), []string{"a-cp", "a-gpu", "a-pool", "a-worker"}},
		"Secret in the way of a TalosConfig": {r.forSecretMetadata, metadataOf(named("b-worker")), []string{"b-worker"}},
		"any other Secret":                   {r.forSecretMetadata, metadataOf(named("unrelated")), nil},
		"Secret of a patch":                  {r.forSecretMetadata, metadataOf(named("wireguard")), []string{"a-gpu", "a-pool"}},
		"ConfigMap of the name":              {r.forConfigMapMetadata, metadataOf(named("wireguard")), nil},
		"any other ConfigMap":                {r.forConfigMapMetadata, metadataOf(named("unrelated")), nil},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			keys, err := test.forObject(t.Context(), test.object)
			g.Expect(err).NotTo(HaveOccurred())

			var got []string
			for _, key := range keys {
				g.Expect(key.Namespace).To(Equal("ns"))
				got = append(got, key.Name)
			}

			slices.Sort(got)
			g.Expect(got).To(Equal(test.want))
		})
	}
}

// The label that divides the work between managers.
// contract: --watch-filter selects by label.
func TestWatchFilter(t *testing.T) {
	g := NewWithT(t)
	r := &Reconciler{Client: watchedWorld(t), WatchFilter: "mine"}

	keys, err := r.forCluster(t.Context(), &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(keys).To(BeEmpty())

	config := &bootstrapv1.TalosConfig{}
	g.Expect(r.responsible(config)).To(BeFalse())

	config.Labels = map[string]string{clusterv1.WatchLabel: "mine"}
	g.Expect(r.responsible(config)).To(BeTrue())
	g.Expect((&Reconciler{}).responsible(config)).To(BeTrue())
}

func clusterConfigFor(target bootstrapv1.ClusterTargeting) *bootstrapv1.TalosClusterConfig {
	return &bootstrapv1.TalosClusterConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "changed"}, Spec: bootstrapv1.TalosClusterConfigSpec{ClusterTargeting: target},
	}
}

func patchFor(name string, target bootstrapv1.ClusterTargeting, machines bootstrapv1.MachineTargeting, role bootstrapv1.MachineRole) *bootstrapv1.TalosConfigPatch {
	return &bootstrapv1.TalosConfigPatch{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Spec:       bootstrapv1.TalosConfigPatchSpec{ClusterTargeting: target, MachineTargeting: machines, Role: role},
	}
}

func metadataOf(meta metav1.ObjectMeta) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: meta}
}

// An event of what targets clusters goes through the TalosConfigs of the namespace once, however many clusters it targets.
func TestTargetedListsOnce(t *testing.T) {
	g := NewWithT(t)

	base, ok := watchedWorld(t).(client.WithWatch)
	g.Expect(ok).To(BeTrue())

	lists := 0
	counting := interceptor.NewClient(base, interceptor.Funcs{
		List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, ok := list.(*bootstrapv1.TalosConfigList); ok {
				lists++
			}

			return api.List(ctx, list, options...)
		},
	})

	every := bootstrapv1.ClusterTargeting{ClusterSelector: &metav1.LabelSelector{}}
	none := bootstrapv1.ClusterTargeting{ClusterName: "nobody"}
	r := &Reconciler{Client: counting}

	keys, err := r.targeted(t.Context(), "ns", every, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(lists).To(Equal(1))

	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = key.Name
	}

	g.Expect(names).To(ConsistOf("a-cp", "a-gpu", "a-worker", "a-pool", "b-worker"))

	keys, err = r.targeted(t.Context(), "ns", none, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(keys).To(BeEmpty())
	g.Expect(lists).To(Equal(1))
}
