// SPDX-License-Identifier: Apache-2.0

package builder

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
)

// PatchBuilder builds a TalosConfigPatch.
type PatchBuilder struct {
	patch *bootstrapv1.TalosConfigPatch
}

// Patch is one for all machines of a Cluster, with these documents.
func Patch(cluster, name string, documents ...machineconfigv1alpha1.Document) *PatchBuilder {
	return &PatchBuilder{patch: &bootstrapv1.TalosConfigPatch{
		TypeMeta:   metav1.TypeMeta{APIVersion: bootstrapv1.GroupVersion.String(), Kind: "TalosConfigPatch"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: bootstrapv1.TalosConfigPatchSpec{
			ClusterTargeting: bootstrapv1.ClusterTargeting{ClusterName: cluster},
			Layer:            bootstrapv1.PatchLayerCluster,
			Documents:        documents,
		},
	}}
}

// PoolPatch is one of layer Pool, which machines get that refer to it.
func PoolPatch(name string, documents ...machineconfigv1alpha1.Document) *PatchBuilder {
	return Patch("", name, documents...).With(func(patch *bootstrapv1.TalosConfigPatch) { patch.Spec.Layer = bootstrapv1.PatchLayerPool })
}

// Role has the patch be for machines of a role.
func (b *PatchBuilder) Role(role bootstrapv1.MachineRole) *PatchBuilder {
	b.patch.Spec.Layer, b.patch.Spec.Role = bootstrapv1.PatchLayerRole, role

	return b
}

// Pool has the patch be for machines with a label.
func (b *PatchBuilder) Pool(key, value string) *PatchBuilder {
	b.patch.Spec.Layer = bootstrapv1.PatchLayerPool
	b.patch.Spec.MachineSelector = &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}

	return b
}

// With changes the patch as built so far.
func (b *PatchBuilder) With(change func(*bootstrapv1.TalosConfigPatch)) *PatchBuilder {
	change(b.patch)

	return b
}

// Objects is the patch.
func (b *PatchBuilder) Objects() []client.Object { return []client.Object{b.patch.DeepCopy()} }
