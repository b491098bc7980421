// SPDX-License-Identifier: Apache-2.0

package builder

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
)

// ControlPlaneBuilder builds a TalosControlPlane and the template of its machines' infrastructure.
type ControlPlaneBuilder struct {
	controlPlane   *controlplanev1.TalosControlPlane
	infrastructure Infrastructure
	template       string
}

// ControlPlane is that of a Cluster, on simulated machines. Give it to ClusterBuilder.ControlPlane.
func ControlPlane(cluster, name string, replicas int32) *ControlPlaneBuilder {
	return &ControlPlaneBuilder{
		controlPlane: &controlplanev1.TalosControlPlane{
			TypeMeta:   metav1.TypeMeta{APIVersion: controlplanev1.GroupVersion.String(), Kind: "TalosControlPlane"},
			ObjectMeta: named(name, cluster),
			Spec: controlplanev1.TalosControlPlaneSpec{
				Replicas: &replicas, Version: KubernetesVersion, TalosConfigSpec: configSpec(),
			},
		},
		infrastructure: Sim{}, template: name,
	}
}

// On is the infrastructure.
func (b *ControlPlaneBuilder) On(infrastructure Infrastructure) *ControlPlaneBuilder {
	b.infrastructure = infrastructure

	return b
}

// With changes the TalosControlPlane as built so far.
func (b *ControlPlaneBuilder) With(change func(*controlplanev1.TalosControlPlane)) *ControlPlaneBuilder {
	change(b.controlPlane)

	return b
}

// Objects are the template and the TalosControlPlane.
func (b *ControlPlaneBuilder) Objects() []client.Object {
	template := b.infrastructure.Template(b.template)

	controlPlane := b.controlPlane.DeepCopy()
	controlPlane.Spec.MachineTemplate.Spec.InfrastructureRef = referenceTo(template)

	return []client.Object{template, controlPlane}
}
